// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"slices"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
)

// onlyCoreEvents names Events in the core group, and no other resource.
func onlyCoreEvents(policy v1.MatchPolicyType) func(*v1.MutatingWebhook) {
	return func(w *v1.MutatingWebhook) {
		w.MatchPolicy = &policy
		w.Rules[0].Rule = v1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"events"}}
	}
}

func event(message string) *corev1.Event {
	return &corev1.Event{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}, ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Message: message,
	}
}

// asEventsGroup is an update of an Event through the group events.k8s.io.
func (c *cluster) asEventsGroup(t *testing.T) *resource.AdmissionRequest {
	t.Helper()
	r := c.write(t, "events.events.k8s.io", resource.Update, nil, nil)
	core := c.write(t, "events", resource.Update, nil, nil)
	for message, into := range map[string]*resource.Object{"new": &r.Object, "old": &r.Old} {
		obj, err := core.Resource.ConvertTo(t.Context(), event(message), r.Resource, "v1")
		if err != nil {
			t.Fatal(err)
		}
		*into = obj
	}
	return r
}

// attached is a connection to the subresource attach of a Pod.
func (c *cluster) attached(t *testing.T) *resource.AdmissionRequest {
	t.Helper()
	r := c.write(t, "pods", resource.Connect, nil, nil)
	version := *r.Version
	version.Subresources = append(slices.Clone(version.Subresources), resource.Subresource{
		Name: "attach", Kind: corev1.SchemeGroupVersion.WithKind("PodAttachOptions"),
	})
	r.Version, r.Subresource = &version, "attach"
	r.Options = &corev1.PodAttachOptions{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodAttachOptions"}, Container: "c", Stdin: true}
	return r
}

func TestReviewsHaveTheWriteAsKubeAPIServerSendsIt(t *testing.T) {
	t.Parallel()
	const (
		ofConfigMap = `
  kind: {group: "", version: v1, kind: ConfigMap}
  resource: {group: "", version: v1, resource: configmaps}
  requestKind: {group: "", version: v1, kind: ConfigMap}
  requestResource: {group: "", version: v1, resource: configmaps}
  name: x
  namespace: default
  userInfo: {username: jane}`
		objectB = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}, data: {a: b}}`
		objectC = `{apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default}, data: {a: c}}`
	)
	options := func(kind string) metav1.TypeMeta {
		return metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: kind}
	}
	for name, one := range map[string]struct {
		write  func(*cluster) *resource.AdmissionRequest
		change func(*v1.MutatingWebhook)
		want   string // the review, but for the uid
	}{
		"create": {
			write: func(c *cluster) *resource.AdmissionRequest {
				r := c.create(t)
				r.Options = &metav1.CreateOptions{TypeMeta: options("CreateOptions"), FieldManager: "m"}
				r.User = &auth.User{Name: "jane", UID: "1", Groups: []string{"g", "h"}, Extra: map[string][]string{"k": {"v", "w"}}}
				return r
			},
			want: `
kind: AdmissionReview
apiVersion: admission.k8s.io/v1
request:` + ofConfigMap[:len(ofConfigMap)-len("{username: jane}")] + `{username: jane, uid: "1", groups: [g, h], extra: {k: [v, w]}}
  operation: CREATE
  object: ` + objectB + `
  oldObject: null
  dryRun: false
  options: {kind: CreateOptions, apiVersion: meta.k8s.io/v1, fieldManager: m}
`,
		},
		"dry run of an update, in v1beta1": {
			write: func(c *cluster) *resource.AdmissionRequest {
				r := c.write(t, "configmaps", resource.Update, configMap("c"), configMap("b"))
				r.DryRun, r.Options = true, &metav1.UpdateOptions{TypeMeta: options("UpdateOptions"), DryRun: []string{"All"}}
				return r
			},
			change: func(w *v1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v9", "v1beta1", "v1"} },
			want: `
kind: AdmissionReview
apiVersion: admission.k8s.io/v1beta1
request:` + ofConfigMap + `
  operation: UPDATE
  object: ` + objectC + `
  oldObject: ` + objectB + `
  dryRun: true
  options: {kind: UpdateOptions, apiVersion: meta.k8s.io/v1, dryRun: [All]}
`,
		},
		"delete": {
			write: func(c *cluster) *resource.AdmissionRequest {
				r := c.write(t, "configmaps", resource.Delete, nil, configMap("b"))
				r.Options = &metav1.DeleteOptions{TypeMeta: options("DeleteOptions")}
				return r
			},
			want: `
kind: AdmissionReview
apiVersion: admission.k8s.io/v1
request:` + ofConfigMap + `
  operation: DELETE
  object: null
  oldObject: ` + objectB + `
  dryRun: false
  options: {kind: DeleteOptions, apiVersion: meta.k8s.io/v1}
`,
		},
		"connect": {
			write: func(c *cluster) *resource.AdmissionRequest { return c.attached(t) },
			want: `
kind: AdmissionReview
apiVersion: admission.k8s.io/v1
request:
  kind: {group: "", version: v1, kind: PodAttachOptions}
  resource: {group: "", version: v1, resource: pods}
  subResource: attach
  requestKind: {group: "", version: v1, kind: PodAttachOptions}
  requestResource: {group: "", version: v1, resource: pods}
  requestSubResource: attach
  name: x
  namespace: default
  userInfo: {username: jane}
  operation: CONNECT
  object: {apiVersion: v1, kind: PodAttachOptions, container: c, stdin: true}
  oldObject: null
  dryRun: false
  options: null
`,
		},
		"a Namespace is in itself": {
			write: func(c *cluster) *resource.AdmissionRequest {
				return c.write(t, "namespaces", resource.Delete, nil, nil)
			},
			want: `
kind: AdmissionReview
apiVersion: admission.k8s.io/v1
request:
  kind: {group: "", version: v1, kind: Namespace}
  resource: {group: "", version: v1, resource: namespaces}
  requestKind: {group: "", version: v1, kind: Namespace}
  requestResource: {group: "", version: v1, resource: namespaces}
  name: x
  namespace: x
  userInfo: {username: jane}
  operation: DELETE
  object: null
  oldObject: null
  dryRun: false
  options: null
`,
		},
		"scale": {
			write: func(c *cluster) *resource.AdmissionRequest {
				scale := &autoscalingv1.Scale{
					TypeMeta:   metav1.TypeMeta{APIVersion: "autoscaling/v1", Kind: "Scale"},
					ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}, Spec: autoscalingv1.ScaleSpec{Replicas: 3},
				}
				r := c.write(t, "deployments.apps", resource.Update, scale, nil)
				r.Subresource, r.Strategy = "scale", nil
				return r
			},
			want: `
kind: AdmissionReview
apiVersion: admission.k8s.io/v1
request:
  kind: {group: autoscaling, version: v1, kind: Scale}
  resource: {group: apps, version: v1, resource: deployments}
  subResource: scale
  requestKind: {group: autoscaling, version: v1, kind: Scale}
  requestResource: {group: apps, version: v1, resource: deployments}
  requestSubResource: scale
  name: x
  namespace: default
  userInfo: {username: jane}
  operation: UPDATE
  object: {apiVersion: autoscaling/v1, kind: Scale, metadata: {name: x, namespace: default}, spec: {replicas: 3}, status: {replicas: 0}}
  oldObject: null
  dryRun: false
  options: null
`,
		},
		"equivalent resource": {
			write:  func(c *cluster) *resource.AdmissionRequest { return c.asEventsGroup(t) },
			change: onlyCoreEvents(v1.Equivalent),
			want: `
kind: AdmissionReview
apiVersion: admission.k8s.io/v1
request:
  kind: {group: "", version: v1, kind: Event}
  resource: {group: "", version: v1, resource: events}
  requestKind: {group: events.k8s.io, version: v1, kind: Event}
  requestResource: {group: events.k8s.io, version: v1, resource: events}
  name: x
  namespace: default
  userInfo: {username: jane}
  operation: UPDATE
  object: ` + eventText("new") + `
  oldObject: ` + eventText("old") + `
  dryRun: false
  options: null
`,
		},
		"equivalent resource, but Exact": {
			write:  func(c *cluster) *resource.AdmissionRequest { return c.asEventsGroup(t) },
			change: onlyCoreEvents(v1.Exact),
		},
	} {
		for _, bucket := range []string{mutating, validating} {
			c := newCluster(t)
			w := hook("w")
			if one.change != nil {
				one.change(&w)
			}
			c.configure(t, bucket, "one", w)
			r := one.write(c)
			equal(t, name+": error", "", c.admit(t.Context(), bucket, r))
			var want, got []map[string]any
			if one.want != "" {
				want = append(want, parsed(t, one.want))
				want[0]["request"].(map[string]any)["uid"] = "review"
			}
			for _, call := range c.calls {
				got = append(got, parsed(t, string(call.review)))
			}
			equal(t, name, want, got)
		}
	}
}

func eventText(message string) string {
	return `{apiVersion: v1, kind: Event, metadata: {name: x, namespace: default}, involvedObject: {}, source: {}, ` +
		`firstTimestamp: null, lastTimestamp: null, eventTime: null, message: ` + message + `, reportingComponent: "", reportingInstance: ""}`
}

// parsed returns the content of YAML or JSON.
func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestReviewsAreNotMadeForWebhooksThatKnowNoVersion(t *testing.T) {
	t.Parallel()
	for _, bucket := range []string{mutating, validating} {
		c := newCluster(t)
		c.configure(t, bucket, "one", hook("w", func(w *v1.MutatingWebhook) { w.AdmissionReviewVersions = []string{"v2"} }))
		equal(t, bucket, `500 InternalError: Internal error occurred: failed calling webhook "w": could not create admission objects: `+
			`webhook does not accept known AdmissionReview versions (v1, v1beta1)`, c.admit(t.Context(), bucket, c.create(t)))
		equal(t, bucket+": calls", []string{}, c.called())
	}
}

func TestDryRunsDoNotCallWebhooksWithSideEffects(t *testing.T) {
	t.Parallel()
	class := func(s v1.SideEffectClass) *v1.SideEffectClass { return &s }
	const refused = `400 BadRequest: admission webhook "w" does not support dry run`
	for name, one := range map[string]struct {
		effects *v1.SideEffectClass
		policy  v1.FailurePolicyType
		want    string
		called  bool
	}{
		"none":                 {class(v1.SideEffectClassNone), v1.Fail, "", true},
		"none on dry run":      {class(v1.SideEffectClassNoneOnDryRun), v1.Fail, "", true},
		"some":                 {class(v1.SideEffectClassSome), v1.Fail, refused, false},
		"unknown":              {class(v1.SideEffectClassUnknown), v1.Fail, refused, false},
		"some, but ignored":    {class(v1.SideEffectClassSome), v1.Ignore, refused, false},
		"not set":              {nil, v1.Fail, `500 InternalError: Internal error occurred: failed calling webhook "w": Webhook SideEffects is nil`, false},
		"not set, but ignored": {nil, v1.Ignore, "", false},
	} {
		for _, bucket := range []string{mutating, validating} {
			c := newCluster(t)
			c.configure(t, bucket, "one", hook("w", func(w *v1.MutatingWebhook) { w.SideEffects, w.FailurePolicy = one.effects, &one.policy }))
			r := c.create(t)
			r.DryRun = true
			equal(t, name, one.want, c.admit(t.Context(), bucket, r))
			equal(t, name+": called", one.called, len(c.called()) > 0)
			equal(t, name+": without dry run", "", c.admit(t.Context(), bucket, c.create(t)))
		}
	}
}
