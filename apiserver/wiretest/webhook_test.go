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
