// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestValidatingWebhooksAreCalledAtOnce has each webhook wait until all have been called,
// and then has the last one answer first.
func TestValidatingWebhooksAreCalledAtOnce(t *testing.T) {
	t.Parallel()
	var (
		allow  = response(`"allowed": true, "warnings": ["allowed"]`)
		refuse = response(`"allowed": false`)
		broken = `{"response": {"uid": "review"}}`
	)
	const (
		failed = `500 InternalError: Internal error occurred: failed calling webhook "b": received invalid webhook response: ` +
			`expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind=`
	)
	for name, one := range map[string]struct {
		answers [3]string
		ignored bool // failures of the second
		want    string
	}{
		"all allow":                        {answers: [3]string{allow, allow, allow}},
		"the last refuses":                 {answers: [3]string{allow, allow, refuse}, want: `400 : admission webhook "c" denied the request without explanation`},
		"the first refusal wins":           {answers: [3]string{allow, refuse, refuse}, want: `400 : admission webhook "b" denied the request without explanation`},
		"all refuse":                       {answers: [3]string{refuse, refuse, refuse}, want: `400 : admission webhook "a" denied the request without explanation`},
		"a failure before a refusal":       {answers: [3]string{allow, broken, refuse}, want: failed},
		"a failure that is ignored":        {answers: [3]string{allow, broken, allow}, ignored: true},
		"a refusal after what is ignored":  {answers: [3]string{allow, broken, refuse}, ignored: true, want: `400 : admission webhook "c" denied the request without explanation`},
		"a refusal before what is ignored": {answers: [3]string{refuse, broken, refuse}, ignored: true, want: `400 : admission webhook "a" denied the request without explanation`},
	} {
		synctest.Test(t, func(t *testing.T) {
			c := newCluster(t)
			names := []string{"a", "b", "c"}
			// turns are closed from the last webhook to the first.
			turns := []chan struct{}{make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})}
			var hooks []v1.MutatingWebhook
			for i, of := range names {
				w := hook(of)
				if one.ignored && of == "b" {
					ignoring(&w)
				}
				hooks = append(hooks, w)
				c.on[of] = func(r call) (int, string, error) {
					select {
					case <-turns[i+1]:
						close(turns[i])
						return http.StatusOK, one.answers[i], nil
					case <-r.http.Context().Done():
						return 0, "", errors.New("the others have not been called")
					}
				}
			}
			c.configure(t, validating, "one", hooks[:2]...)
			c.configure(t, validating, "two", hooks[2])
			r := c.create(t)
			done := make(chan string)
			go func() { done <- c.admit(t.Context(), validating, r) }()
			synctest.Wait()
			called := c.called()
			slices.Sort(called)
			equal(t, name+": called", names, called)
			close(turns[3])
			equal(t, name, one.want, <-done)
		})
	}
}

func TestValidatingWebhooksSeeTheObjectAndDoNotChangeIt(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	matching := func(expression string) func(*v1.MutatingWebhook) {
		return func(w *v1.MutatingWebhook) {
			w.MatchConditions = []v1.MatchCondition{{Name: "c", Expression: expression}}
		}
	}
	c.configure(t, validating, "one",
		hook("selected", func(w *v1.MutatingWebhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
		}),
		hook("other", func(w *v1.MutatingWebhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "c"}}
		}),
		hook("holds", matching("object.data.a == 'b'")), hook("does-not-hold", matching("object.data.a == 'c'")),
		hook("fails-but-ignored", matching("object.data.x == 'c'"), ignoring),
	)
	r := c.create(t)
	r.Object.SetLabels(map[string]string{"a": "b"})
	before := r.Object.DeepCopyObject()
	equal(t, "error", "", c.admit(t.Context(), validating, r))
	called := c.called()
	slices.Sort(called)
	equal(t, "called", []string{"holds", "selected"}, called)
	equal(t, "object", before, r.Object.(*corev1.ConfigMap).DeepCopyObject())

	c.configure(t, validating, "two", hook("fails", matching("object.data.x == 'c'")))
	equal(t, "a condition that fails", `403 Forbidden: configmaps "x" is forbidden: expression 'object.data.x == 'c'' resulted in error: no such key: x`,
		c.admit(t.Context(), validating, r))
	equal(t, "called after that", []string{}, c.called())
}
