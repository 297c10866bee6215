// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"bufio"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
)

func writer() (*exchange.Writer, *httptest.ResponseRecorder) {
	recorder := httptest.NewRecorder()
	return &exchange.Writer{ResponseWriter: recorder, Warnings: &resource.Warnings{}}, recorder
}

func TestBodiesAreSentInOrderWhateverTheirPieces(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 40<<10)
	for name, pieces := range map[string][]string{
		"none": {}, "one": {"a"}, "few": {"a", "b"}, "many": {"a", "b", "", "c"}, "larger than a buffer": {"a", long, "b", long[:30<<10], long[:30<<10], "c"},
	} {
		for _, begin := range []string{"", "begin "} {
			b := exchange.NewBody(len(pieces))
			b.Begin([]byte("replaced"))
			b.Begin([]byte(begin))
			for _, p := range pieces {
				b.AddString(p)
			}
			b.AddPieces(wire.Pieces{Head: []byte("head"), Rest: [][]byte{[]byte("rest"), nil}})
			want := begin + strings.Join(pieces, "") + "headrest"
			if b.Len() != len(want) {
				t.Errorf("%s: %d bytes, want %d", name, b.Len(), len(want))
			}
			w, got := writer()
			exchange.Send(w, httptest.NewRequest(http.MethodGet, "/", nil), 200, "text/plain", b)
			if got.Body.String() != want || got.Header().Get("Content-Length") != strconv.Itoa(len(want)) {
				t.Errorf("%s: other bytes, or length %s", name, got.Header().Get("Content-Length"))
			}
			w, got = writer()
			exchange.Send(w, httptest.NewRequest(http.MethodHead, "/", nil), 200, "text/plain", b)
			if got.Body.Len() > 0 || got.Header().Get("Content-Length") != strconv.Itoa(len(want)) {
				t.Errorf("%s: HEAD is answered with %d bytes", name, got.Body.Len())
			}
		}
	}
}

func TestSendJSONWritesWhatTheClientAccepts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		choice         negotiation.Choice
		body, want     string
		err, mediaType string
	}{
		"JSON":        {choice: negotiation.Choice{}, body: `{"a":1}`, want: "{\"a\":1}\n", mediaType: "application/json"},
		"pretty":      {choice: negotiation.Choice{Pretty: true}, body: `{"a":1}`, want: "{\n  \"a\": 1\n}", mediaType: "application/json"},
		"YAML":        {choice: negotiation.Choice{Media: negotiation.YAML}, body: `{"a":1}`, want: "a: 1\n", mediaType: "application/yaml"},
		"broken":      {choice: negotiation.Choice{Pretty: true}, body: `{`, err: "unexpected end of JSON input"},
		"broken YAML": {choice: negotiation.Choice{Media: negotiation.YAML}, body: `{`, err: "yaml"},
	} {
		b := exchange.NewBody(3)
		b.Begin([]byte(c.body[:1]))
		b.AddString(c.body[1:])
		w, got := writer()
		err := exchange.SendJSON(w, httptest.NewRequest(http.MethodGet, "/", nil), 201, c.choice, b)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		if err == nil && (got.Body.String() != c.want || got.Code != 201 || got.Header().Get("Content-Type") != c.mediaType) {
			t.Errorf("%s: %d %s %q", name, got.Code, got.Header().Get("Content-Type"), got.Body)
		}
	}
}

func TestSendStatusSpeaksTheMediaTypeOfTheClient(t *testing.T) {
	t.Parallel()
	const text = `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"no","code":410}` + "\n"
	for accept, mediaType := range map[string]string{
		"": "application/json", "application/json": "application/json", "application/unknown": "application/json",
		"application/vnd.kubernetes.protobuf": "application/vnd.kubernetes.protobuf",
	} {
		w, got := writer()
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		exchange.SendStatus(w, r, 410, &metav1.Status{Status: "Failure", Message: "no", Code: 410})
		if got.Code != 410 || w.Code != 410 || got.Header().Get("Content-Type") != mediaType {
			t.Errorf("%s: %d %s", accept, got.Code, got.Header().Get("Content-Type"))
		}
		if mediaType == "application/json" {
			if got.Body.String() != text {
				t.Errorf("%s: %s", accept, got.Body)
			}
			continue
		}
		var envelope runtime.Unknown
		var status metav1.Status
		if err := envelope.Unmarshal(got.Body.Bytes()[4:]); err != nil {
			t.Fatal(err)
		}
		if err := status.Unmarshal(envelope.Raw); err != nil || envelope.Kind != "Status" || envelope.APIVersion != "v1" || status.Code != 410 {
			t.Errorf("%v, %v, %v", envelope.TypeMeta, &status, err)
		}
	}
}

// hijackable is an answer whose connection can be taken over.
type hijackable struct{ http.ResponseWriter }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) { return nil, nil, nil }

func TestUpgradesFindTheConnection(t *testing.T) {
	t.Parallel()
	for header, want := range map[string]bool{"": false, "close": false, "Upgrade": true, "keep-alive, upgrade": true} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Connection", header)
		if got := exchange.Upgrading(r); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
	inner := hijackable{httptest.NewRecorder()}
	if got, ok := exchange.Hijackable(&exchange.Writer{ResponseWriter: &exchange.Writer{ResponseWriter: inner}}); !ok || got != http.ResponseWriter(inner) {
		t.Errorf("%v, %v", got, ok)
	}
	if _, ok := exchange.Hijackable(&exchange.Writer{ResponseWriter: httptest.NewRecorder()}); ok {
		t.Error("an answer without a connection is taken over")
	}
}
