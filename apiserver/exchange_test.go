// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
)

// reply is an answer, read completely.
type reply struct {
	code   int
	header http.Header
	body   string
}

// status decodes the Status in a reply.
func (r reply) status(t testing.TB) metav1.Status {
	t.Helper()
	var status metav1.Status
	if err := json.UnmarshalCaseSensitivePreserveInts([]byte(r.body), &status); err != nil {
		t.Fatalf("not a Status: %s: %v", r.body, err)
	}
	return status
}

// send sends a request and returns the answer. Headers are given as pairs.
func send(t testing.TB, rt http.RoundTripper, method, path, body string, header ...string) reply {
	t.Helper()
	r, err := http.NewRequest(method, "https://steer.invalid"+path, bytes.NewReader([]byte(body)))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := rt.RoundTrip(r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	_ = resp.Body.Close()
	return reply{resp.StatusCode, resp.Header, string(data)}
}

const mergePatch = "application/merge-patch+json"

// knownFailure reports whether a body is one of the few errors that kube-apiserver
// answers with 500.
func knownFailure(body string) bool {
	for _, text := range []string{"resourceVersion should not be set on objects to be created", "strconv.ParseUint", "failed to create typed", "failed to create manager"} {
		if strings.Contains(body, text) {
			return true
		}
	}
	return false
}

// A client names its request, as at kube-apiserver: the Audit-ID comes back as it was sent, and
// one without gets one of its own.
func TestAuditIDOfAClientIsReturned(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	rt := s.RoundTripper(nil)
	for _, id := range []string{"reconcile-7f3a", strings.Repeat("a", 64), strings.Repeat("b", 65)} {
		for _, path := range []string{"/version", "/apis/none"} {
			if got := send(t, rt, http.MethodGet, path, "", "Audit-ID", id).header["Audit-Id"]; len(got) != 1 || got[0] != id {
				t.Errorf("%s: %q was returned as %q", path, id, got)
			}
		}
	}
	first, second := send(t, rt, http.MethodGet, "/version", "").header.Get("Audit-Id"), send(t, rt, http.MethodGet, "/version", "").header.Get("Audit-Id")
	if len(first) != 36 || first == second {
		t.Errorf("requests without an ID have %q and %q", first, second)
	}
}
