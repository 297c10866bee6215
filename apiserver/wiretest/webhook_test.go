// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wiretest_test

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/steer-dev/steer/apiserver/wiretest"
)

// A conversation whose server passes the review on to a webhook and shows its answer.
const webhookConversation = `Webhooks.
@sent request.uid
-- patch.webhook --
response:
  patch:
  - {op: remove, path: /a}
-- refuse.webhook --
@status 403
@header X-Hook: yes

kind: Other
response: {allowed: false, uid: own}
-- raw.webhook --
@raw

not json
-- gone.webhook --
@hangup
-- convert.webhook --
@rename v1 spec.a v2 spec.nested.b
@overwrite metadata.labels=null
@lose 1
-- send-patch --
POST /?path=patch

{url: "${webhook_url}", ca: "${webhook_ca}", review: {apiVersion: a/v1, kind: AdmissionReview, request: {uid: x, name: thing}}}

-- send-refuse --
POST /?path=refuse
@sent

{url: "${webhook_url}", ca: "${webhook_ca}", review: {kind: AdmissionReview, request: {uid: x}}}

-- send-raw --
POST /?path=raw
@sent nothing

{url: "${webhook_url}", ca: "${webhook_ca}", review: {}}

-- send-gone --
POST /?path=gone

{url: "${webhook_url}", ca: "${webhook_ca}", review: {}}

-- send-unknown --
POST /?path=unknown

{url: "${webhook_url}", ca: "${webhook_ca}", review: {}}

-- send-expired --
POST /?path=patch

{url: "${webhook_expired_url}", ca: "${webhook_ca}", review: {}}

-- send-stranger --
POST /?path=patch

{url: "${webhook_url}", ca: "${webhook_other_ca}", review: {}}

-- to-v2 --
POST /?path=convert
@sent request.desiredAPIVersion

url: "${webhook_url}"
ca: "${webhook_ca}"
review:
  kind: ConversionReview
  request:
    desiredAPIVersion: g/v2
    objects:
    - {apiVersion: g/v1, metadata: {name: thing, labels: {}}, spec: {a: 1, c: ${webhook_port}}}
    - {apiVersion: g/v1}

-- to-v1 --
POST /?path=convert
@sent nothing

url: "${webhook_url}"
ca: "${webhook_ca}"
review: {kind: ConversionReview, request: {desiredAPIVersion: g/v1, objects: [{spec: {nested: {b: 1}}}, {}]}}

`

func webhookCaller(w http.ResponseWriter, r *http.Request) {
	answer, err := callWebhook(r)
	if err != nil {
		answer = []byte(err.Error())
	} else if json.Valid(answer) {
		w.Header().Set("Content-Type", "application/json")
	}
	_, _ = w.Write(answer)
}

func callWebhook(r *http.Request) ([]byte, error) {
	var order struct {
		URL    string
		CA     []byte
		Review json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(order.CA) {
		return nil, errors.New("no certificate")
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	answer, err := (&http.Client{Transport: transport}).Post(order.URL+"/"+r.URL.Query().Get("path"), "application/json", bytes.NewReader(order.Review))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK {
		body = fmt.Appendf(nil, "%d %s %s", answer.StatusCode, answer.Header.Get("X-Hook"), body)
	}
	return body, err
}

func TestWebhooksAnswerAsTheirSectionsSay(t *testing.T) {
	t.Parallel()
	got := replayScript(t, webhookConversation, http.HandlerFunc(webhookCaller))
	for _, want := range []string{
		"response:\n  allowed: true\n  patch: W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0=\n  patchType: JSONPatch\n  uid: x\n(sent to a webhook) POST /patch\nrequest:\n  uid: x\n-- send-refuse",
		`403 yes {"kind":"Other","response":{"allowed":false,"uid":"own"}}` + "\n(sent to a webhook) POST /refuse\nkind: AdmissionReview\nrequest:\n  uid: x\n",
		"\nnot json\n-- send-gone",
		"Post \"https://<host>/gone\": EOF\n(sent to a webhook) POST /gone\n",
		"404  404 page not found\n(sent to a webhook) POST /unknown\n",
		"is after 2021-01-01T00:00:00Z\n-- send-stranger",
		"certificate signed by unknown authority",
		"- apiVersion: g/v2\n    metadata:\n      name: thing\n    spec:\n      c: <port>\n      nested:\n        b: 1\n  result:\n    status: Success\n(sent to a webhook) POST /convert\nrequest:\n  desiredAPIVersion: g/v2\n",
		"- apiVersion: g/v1\n    metadata: {}\n    spec:\n      a: 1\n      nested: {}\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the answers lack %q:\n%s", want, got)
		}
	}
}

func TestWebhookSectionsWithUnknownDirectivesAreRefused(t *testing.T) {
	t.Parallel()
	for _, directive := range []string{"@unknown", "@status x", "@wait x", "@lose x", "@rename a b", "@overwrite a"} {
		if _, err := wiretest.Parse("s", []byte("-- w.webhook --\n"+directive+"\n")); err == nil {
			t.Errorf("%s: no error", directive)
		}
	}
}

func TestBackendsShowWhatTheyAreSent(t *testing.T) {
	t.Parallel()
	script, err := wiretest.Parse("backends", []byte(`Backends.
-- apis/a/v1/things.backend --
@status 201
@header X-Kind: thing

{kind: Thing}
-- apis/a/v1/stream.backend --
@upgrade
@raw

a stream
-- plain --
POST /apis/a/v1/things?b=c
@header X-Kind

{port: "${webhook_port}"}

-- absent --
GET /apis/a/v1/nothing

{port: "${webhook_port}"}

-- asked-by-aggregator --
GET /apis/a/v1/things
X-Remote-User: system:kube-aggregator

{port: "${webhook_port}"}

-- stream --
GET /apis/a/v1/stream
Connection: Upgrade
Upgrade: SPDY/3.1
@header Upgrade

{port: "${webhook_port}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	target := wiretest.Target{Base: "http://server", Client: &http.Client{Transport: toBackend{}}}
	answers, err := target.Run(t.Context(), script)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"201 Created\nContent-Type: application/json\nX-Kind: thing\n\nkind: Thing\n(sent to a backend) POST /apis/a/v1/things?b=c\nheader:\n  Accept: application/json\n  Content-Type: application/json\nprotocol: HTTP/1.1\n",
		"404 Not Found\nContent-Type: text/plain; charset=utf-8\n\n404 page not found\n(sent to a backend) GET /apis/a/v1/nothing\nheader:\n  Accept: application/json\n  Content-Type: application/json\nprotocol: HTTP/1.1\n",
		"201 Created\nContent-Type: application/json\n\nkind: Thing\n",
		"101 Switching Protocols\nUpgrade: SPDY/3.1\n\na stream\n(sent to a backend) GET /apis/a/v1/stream\nheader:\n  Accept: application/json\n  Connection: Upgrade\n  Content-Type: application/json\n  Upgrade: SPDY/3.1\nprotocol: HTTP/1.1\n",
	}
	for i, answer := range answers {
		if answer.Text != want[i] {
			t.Errorf("%s:\n%s\nwant:\n%s", answer.Step.Name, answer.Text, want[i])
		}
	}
	if !bytes.Contains(script.Format(), []byte("-- apis/a/v1/stream.backend --\n@upgrade\n")) {
		t.Errorf("the script is written back as\n%s", script.Format())
	}
}

// toBackend sends requests to the server whose port their body names.
type toBackend struct{}

func (toBackend) RoundTrip(r *http.Request) (*http.Response, error) {
	var body struct{ Port string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Body, out.ContentLength = "https", "127.0.0.1:"+body.Port, nil, 0
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} // a server of this test
	return transport.RoundTrip(out)
}
