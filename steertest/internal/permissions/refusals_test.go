// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package permissions

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
)

// answers is a way to a server that answers everything alike.
type answers struct {
	status int
	body   string
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Body: io.NopCloser(bytes.NewReader([]byte(a.body)))}, nil
}

func TestARefusedEscalationNamesTheVerbThatAllowsIt(t *testing.T) {
	t.Parallel()
	said := func(resource string) string {
		return `{"kind":"Status","message":"` + resource + `.rbac.authorization.k8s.io \"tenant\" is forbidden: user \"system:serviceaccount:s:operator\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"get\"]}","code":403}`
	}
	for body, want := range map[string]string{
		said("roles"):               "resources=roles,verbs=escalate",
		said("clusterroles"):        "resources=clusterroles,verbs=escalate",
		said("rolebindings"):        "resources=roles;clusterroles,verbs=bind",
		said("clusterrolebindings"): "resources=clusterroles,verbs=bind",
	} {
		f := NewRefusals(answers{http.StatusCreated, "{}"})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server/x", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := f.Wrap(answers{http.StatusForbidden, body}).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusCreated {
			t.Errorf("%s: the request is not let through: %d", want, resp.StatusCode)
		}
		advice := f.Advice()
		for _, part := range []string{"// +kubebuilder:rbac:groups=rbac.authorization.k8s.io," + want, "give it those rights instead"} {
			if !strings.Contains(advice, part) {
				t.Errorf("%q is missing in\n%s", part, advice)
			}
		}
	}
}
