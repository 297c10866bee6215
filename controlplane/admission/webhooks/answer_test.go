// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
)

const patchA = `[{"op": "replace", "path": "/data/a", "value": "patched"}]`

// decided is what becomes of a creation.
type decided struct {
	Error string
	// Data is the value that the object has.
	Data     string
	Warnings []string
}

// decide has one webhook decide on the creation of a ConfigMap.
func (c *cluster) decide(t *testing.T, bucket string, w v1.MutatingWebhook) decided {
	t.Helper()
	c.configure(t, bucket, "one", w)
	r := c.create(t)
	err := c.admit(t.Context(), bucket, r)
	return decided{err, r.Object.(*corev1.ConfigMap).Data["a"], r.Warnings.Texts()}
}

func TestAnswersDecide(t *testing.T) {
	t.Parallel()
	const denied = `admission webhook "w" denied the request`
	for name, one := range map[string]struct {
		answer string
		want   decided
		// in is the bucket of the plugin; empty: both.
		in string
	}{
		"allowed":               {answer: response(`"allowed": true`), want: decided{Data: "b"}},
		"allowed with a status": {answer: response(`"allowed": true, "status": {"code": 403, "message": "m"}`), want: decided{Data: "b"}},
		"refused":               {answer: response(`"allowed": false`), want: decided{Error: "400 : " + denied + " without explanation", Data: "b"}},
		"refused by default":    {answer: response(`"warnings": []`), want: decided{Error: "400 : " + denied + " without explanation", Data: "b"}},
		"refused with a message": {answer: response(`"allowed": false, "status": {"message": "no", "reason": "Gone", "code": 410}`),
			want: decided{Error: "410 Gone: " + denied + ": no", Data: "b"}},
		"refused with a reason":  {answer: response(`"allowed": false, "status": {"reason": "Gone"}`), want: decided{Error: "400 Gone: " + denied + ": Gone", Data: "b"}},
		"refused with success":   {answer: response(`"allowed": false, "status": {"status": "Success", "code": 200}`), want: decided{Error: "400 : " + denied + " without explanation", Data: "b"}},
		"refused with odd code":  {answer: response(`"allowed": false, "status": {"code": 299}`), want: decided{Error: "400 : " + denied + " without explanation", Data: "b"}},
		"refused with high code": {answer: response(`"allowed": false, "status": {"code": 999}`), want: decided{Error: "999 : " + denied + " without explanation", Data: "b"}},
		"warnings": {answer: response(`"allowed": true, "warnings": ["one", "two", "one"]`),
			want: decided{Data: "b", Warnings: []string{"one", "two"}}},
		"refused with warnings": {answer: response(`"allowed": false, "warnings": ["one"]`),
			want: decided{Error: "400 : " + denied + " without explanation", Data: "b", Warnings: []string{"one"}}},
		"unknown members": {answer: response(`"allowed": true, "more": {"a": 1}`), want: decided{Data: "b"}},
		"patch":           {answer: patches(patchA), want: decided{Data: "patched"}, in: mutating},
		"refused with a patch": {answer: strings.Replace(patches(patchA), `"allowed": true`, `"allowed": false`, 1),
			want: decided{Error: "400 : " + denied + " without explanation", Data: "b"}, in: mutating},
		"patch of nothing": {answer: patches("[]"), want: decided{Data: "b"}, in: mutating},
	} {
		for _, bucket := range []string{mutating, validating} {
			if one.in != "" && one.in != bucket {
				continue
			}
			c := newCluster(t)
			c.answers("w", one.answer)
			equal(t, name, one.want, c.decide(t, bucket, hook("w")))
			equal(t, name+", ignoring failures", one.want, c.decide(t, bucket, hook("w", ignoring)))
		}
	}
}

// TestAnswersThatAreNoneFollowTheFailurePolicy has webhooks fail: the request fails with
// them, or goes on as if they had not been called.
func TestAnswersThatAreNoneFollowTheFailurePolicy(t *testing.T) {
	t.Parallel()
	const review = `{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"`
	noKind := func(of string) string {
		return `failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal ` + of +
			` into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }`
	}
	for name, one := range map[string]struct {
		status int // 0: 200
		answer string
		err    error
		in     string
		want   string // the error after the name of the webhook
		code   string // of the metrics
	}{
		"wrong uid":    {answer: strings.Replace(response(`"allowed": true`), "review", "other", 1), want: `received invalid webhook response: expected response.uid="review", got "other"`, code: "503"},
		"no uid":       {answer: review + `, "response": {"allowed": true}}`, want: `received invalid webhook response: expected response.uid="review", got ""`, code: "503"},
		"no response":  {answer: review + `}`, want: `received invalid webhook response: webhook response was absent`, code: "503"},
		"null":         {answer: review + `, "response": null}`, want: `received invalid webhook response: webhook response was absent`, code: "503"},
		"v1beta1":      {answer: beta(response(`"allowed": true`)), want: `failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion`, code: "503"},
		"another kind": {answer: `{"kind": "Pod", "apiVersion": "v1"}`, want: `failed to call webhook: no kind "Pod" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`, code: "503"},
		"another version": {answer: strings.Replace(response(`"allowed": true`), "k8s.io/v1", "k8s.io/v9", 1),
			want: `failed to call webhook: no kind "AdmissionReview" is registered for version "admission.k8s.io/v9" in scheme "pkg/runtime/scheme.go:111"`, code: "503"},
		"no kind":     {answer: `{"response": {"uid": "review", "allowed": true}}`, want: `received invalid webhook response: expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=`, code: "503"},
		"empty":       {answer: ``, want: `failed to call webhook: 0-length response with status code: 200 and content type: application/json`, code: "503"},
		"garbage":     {answer: `this is no JSON`, want: noKind("string"), code: "503"},
		"a list":      {answer: `[]`, want: noKind("array"), code: "503"},
		"cut":         {answer: review + `, "response": {"uid"`, want: `failed to call webhook: couldn't get version/kind; json parse error: unexpected end of JSON input`, code: "503"},
		"wrong type":  {answer: response(`"allowed": "yes"`), want: `failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool`, code: "503"},
		"no base64":   {answer: response(`"allowed": true, "patchType": "JSONPatch", "patch": "-"`), want: `failed to call webhook: illegal base64 data at input byte 0`, code: "503"},
		"a Status":    {answer: `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "told", "reason": "Gone", "code": 410}`, want: `failed to call webhook: converting (v1.Status) to (v1.AdmissionReview): unknown conversion`, code: "503"},
		"not found":   {status: http.StatusNotFound, want: `failed to call webhook: the server could not find the requested resource`, code: "404"},
		"unavailable": {status: http.StatusServiceUnavailable, answer: response(`"allowed": true`), want: `failed to call webhook: the server is currently unable to handle the request`, code: "503"},
		"redirect":    {status: http.StatusFound, answer: response(`"allowed": true`), want: `failed to call webhook: the webhook answers with a redirect (status 302), and redirects are not followed: configure the address that it leads to`, code: "503"},
		"a Status with status": {status: http.StatusInternalServerError, want: `failed to call webhook: told`, code: "410",
			answer: `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "told", "reason": "Gone", "code": 410}`},
		"no connection": {err: errors.New("refused"), want: `failed to call webhook: Post "https://hooks.default.svc:443/w?timeout=30s": refused`, code: "503"},

		"patch without type":     {answer: response(`"allowed": true, "patch": "W10="`), in: mutating, want: `received invalid webhook response: webhook returned response.patch but not response.patchType`, code: "503"},
		"type without patch":     {answer: response(`"allowed": true, "patchType": "JSONPatch"`), in: mutating, want: `received invalid webhook response: webhook returned response.patchType but not response.patch`, code: "503"},
		"empty type":             {answer: response(`"allowed": true, "patchType": "", "patch": "W10="`), in: mutating, want: `received invalid webhook response: webhook returned invalid response.patchType of ""`, code: "503"},
		"another type":           {answer: strings.Replace(patches(patchA), "JSONPatch", "Merge", 1), in: mutating, want: `unsupported patch type "Merge"`, code: "400"},
		"patch is no list":       {answer: patches(`{}`), in: mutating, want: `received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type jsonpatch.Patch`, code: "503"},
		"operation is no object": {answer: patches(`["x"]`), in: mutating, want: `received undecodable patch in webhook response: json: cannot unmarshal string into Go value of type jsonpatch.Operation`, code: "503"},
		"patch is no JSON":       {answer: patches(`nothing`), in: mutating, want: `received undecodable patch in webhook response: invalid character 'o' in literal null (expecting 'u')`, code: "503"},
		"patch of validating":    {answer: response(`"allowed": true, "patch": "W10="`), in: validating, want: `received invalid webhook response: validating webhook may not return response.patch`, code: "503"},
		"type of validating":     {answer: response(`"allowed": true, "patchType": "JSONPatch"`), in: validating, want: `received invalid webhook response: validating webhook may not return response.patchType`, code: "503"},
	} {
		for bucket, step := range map[string]string{mutating: "admit", validating: "validating"} {
			if one.in != "" && one.in != bucket {
				continue
			}
			c := newCluster(t)
			c.on["w"] = func(call) (int, string, error) { return max(one.status, http.StatusOK), one.answer, one.err }
			want := decided{Data: "b", Error: `500 InternalError: Internal error occurred: failed calling webhook "w": ` + one.want}
			equal(t, name, want, c.decide(t, bucket, hook("w")))
			equal(t, name+": counted", map[string]int{"code=" + one.code + " name=w operation=CREATE rejected=true type=" + step: 1},
				c.counted(t, "apiserver_admission_webhook_request_total"))
			equal(t, name+": rejections", map[string]int{"error_type=calling_webhook_error name=w operation=CREATE rejection_code=" + one.code + " type=" + step: 1},
				c.counted(t, "apiserver_admission_webhook_rejection_count"))
			equal(t, name+", ignoring failures", decided{Data: "b"}, c.decide(t, bucket, hook("w", ignoring)))
			equal(t, name+": passed over", map[string]int{"name=w type=" + step: 1}, c.counted(t, "apiserver_admission_webhook_fail_open_count"))
		}
	}
}

// TestAnswersInV1Beta1AreNotValidated: the rules of v1 came with v1.
func TestAnswersInV1Beta1AreNotValidated(t *testing.T) {
	t.Parallel()
	const failed = `500 InternalError: Internal error occurred: failed calling webhook "w": `
	for name, one := range map[string]struct {
		answer                    string
		whenMutating, whenChecked decided
	}{
		"no uid": {`{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1", "response": {"allowed": true, "warnings": ["one"]}}`,
			decided{Data: "b", Warnings: []string{"one"}}, decided{Data: "b", Warnings: []string{"one"}}},
		"refused": {beta(response(`"allowed": false, "status": {"message": "no"}`)),
			decided{Error: `400 : admission webhook "w" denied the request: no`, Data: "b"}, decided{Error: `400 : admission webhook "w" denied the request: no`, Data: "b"}},
		"patch":              {beta(patches(patchA)), decided{Data: "patched"}, decided{Data: "b"}},
		"patch without type": {strings.Replace(beta(patches(patchA)), `"patchType": "JSONPatch", `, "", 1), decided{Data: "patched"}, decided{Data: "b"}},
		"patch of any type":  {strings.Replace(beta(patches(patchA)), "JSONPatch", "Merge", 1), decided{Data: "patched"}, decided{Data: "b"}},
		"type without patch": {beta(response(`"allowed": true, "patchType": "JSONPatch"`)), decided{Data: "b"}, decided{Data: "b"}},
		"no response": {`{"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1beta1"}`,
			decided{Error: failed + `received invalid webhook response: webhook response was absent`, Data: "b"},
			decided{Error: failed + `received invalid webhook response: webhook response was absent`, Data: "b"}},
		"v1": {response(`"allowed": true`),
			decided{Error: failed + `failed to call webhook: converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion`, Data: "b"},
			decided{Error: failed + `failed to call webhook: converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion`, Data: "b"}},
	} {
		for bucket, want := range map[string]decided{mutating: one.whenMutating, validating: one.whenChecked} {
			c := newCluster(t)
			c.answers("w", one.answer)
			equal(t, name+": "+bucket, want, c.decide(t, bucket, hook("w", func(w *v1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v1beta1"} })))
		}
	}
}
