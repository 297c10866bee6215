// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// setting is an answer with a patch that sets a value of a ConfigMap.
func setting(key, value string) string {
	return patches(fmt.Sprintf(`[{"op": "add", "path": "/data/%s", "value": %q}]`, key, value))
}

func TestMutatingWebhooksAreCalledInOrderAndSeeEarlierPatches(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	// The configurations are called by name, their webhooks in their order.
	c.configure(t, mutating, "b", hook("third"))
	c.configure(t, mutating, "a", hook("second"), hook("first"))
	c.configure(t, mutating, "c", hook("fourth"))
	c.answers("second", setting("a", "1"))
	c.answers("third", setting("b", "2"))
	r := c.create(t)
	before := r.Object
	equal(t, "error", "", c.admit(t.Context(), mutating, r))
	var seen []string
	for _, one := range c.calls {
		obj := parsed(t, string(one.review))["request"].(map[string]any)["object"].(map[string]any)
		seen = append(seen, fmt.Sprint(one.hook, obj["data"]))
	}
	equal(t, "calls", []string{"second map[a:b]", "first map[a:1]", "third map[a:1]", "fourth map[a:1 b:2]"}, spaced(seen))
	equal(t, "object", map[string]string{"a": "1", "b": "2"}, r.Object.(*corev1.ConfigMap).Data)
	equal(t, "object of the caller", map[string]string{"a": "b"}, before.(*corev1.ConfigMap).Data)

	c.answers("second", response(`"allowed": false`))
	c.called()
	equal(t, "error of the first", `400 : admission webhook "second" denied the request without explanation`, c.admit(t.Context(), mutating, c.create(t)))
	equal(t, "calls after a refusal", []string{"second"}, c.called())
}

func spaced(of []string) []string {
	for i := range of {
		of[i] = strings.Replace(of[i], "map[", " map[", 1)
	}
	return of
}

func TestMutatingWebhooksAreReinvokedAfterLaterChanges(t *testing.T) {
	t.Parallel()
	again, none := true, []string(nil)
	type one struct {
		name   string
		again  bool
		values []string // that it sets with each call; none from then on
	}
	for name, test := range map[string]struct {
		hooks []one
		want  string
	}{
		"a later patch":                {[]one{{"a", again, none}, {"b", false, []string{"1"}}}, "a b a"},
		"a later patch, policy Never":  {[]one{{"a", false, none}, {"b", false, []string{"1"}}}, "a b"},
		"its own patch":                {[]one{{"a", again, []string{"1", "2"}}, {"b", again, none}}, "a b"},
		"an earlier patch":             {[]one{{"a", false, []string{"1"}}, {"b", again, none}}, "a b"},
		"a patch without effect":       {[]one{{"a", again, none}, {"b", false, []string{"b"}}}, "a b"},
		"both patch":                   {[]one{{"a", again, []string{"1"}}, {"b", again, []string{"2"}}}, "a b a"},
		"both patch each time":         {[]one{{"a", again, []string{"1", "3", "5"}}, {"b", again, []string{"2", "4", "6"}}}, "a b a b"},
		"between two":                  {[]one{{"a", again, none}, {"b", false, []string{"1"}}, {"c", again, none}}, "a b c a"},
		"two patches after it":         {[]one{{"a", again, none}, {"b", again, []string{"1"}}, {"c", false, []string{"2"}}}, "a b c a b"},
		"another one of the same name": {[]one{{"a", again, none}, {"a", false, []string{"b", "1"}}}, "a a a"},
	} {
		c := newCluster(t)
		var hooks []v1.MutatingWebhook
		for _, h := range test.hooks {
			w := hook(h.name)
			if h.again {
				reinvoked(&w)
			}
			hooks = append(hooks, w)
			values := h.values
			c.on[h.name] = func(call) (int, string, error) {
				if len(values) == 0 {
					return http.StatusOK, response(`"allowed": true`), nil
				}
				value := values[0]
				values = values[1:]
				return http.StatusOK, setting("a", value), nil
			}
		}
		c.configure(t, mutating, "one", hooks...)
		equal(t, name, "", c.admit(t.Context(), mutating, c.create(t)))
		equal(t, name+": calls", test.want, strings.Join(c.called(), " "))
	}
}

// builtIn is a plugin before the webhooks.
type builtIn struct {
	resource.Admission
	// asks for a second round, and changes the object in it.
	asks, changes bool
}

func (b builtIn) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

func (b builtIn) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	if b.asks {
		r.Round.Repeat()
	}
	if b.changes && r.Round.Second() {
		r.Object.(*corev1.ConfigMap).Data["built-in"] = "changed"
	}
	return nil
}

func TestMutatingWebhooksAreReinvokedAfterChangesOfBuiltInPlugins(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		before builtIn
		hooks  []v1.MutatingWebhook
		want   string
	}{
		"a change":                {builtIn{asks: true, changes: true}, []v1.MutatingWebhook{hook("a", reinvoked), hook("b")}, "a b a"},
		"a change, policy Never":  {builtIn{asks: true, changes: true}, []v1.MutatingWebhook{hook("a"), hook("b")}, "a b"},
		"a round without changes": {builtIn{asks: true}, []v1.MutatingWebhook{hook("a", reinvoked)}, "a"},
		"one round":               {builtIn{changes: true}, []v1.MutatingWebhook{hook("a", reinvoked)}, "a"},
	} {
		c := newCluster(t)
		c.configure(t, mutating, "one", one.hooks...)
		equal(t, name, "", c.admit(t.Context(), mutating, c.create(t), one.before))
		equal(t, name+": calls", one.want, strings.Join(c.called(), " "))
	}
}

// TestMutatingWebhooksAreNotReinvokedIfTheyNoLongerMatch has a patch take away the label
// that a webhook selects, and another one add a label that one would select.
func TestMutatingWebhooksAreNotReinvokedIfTheyNoLongerMatch(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	selecting := func(value string) func(*v1.MutatingWebhook) {
		return func(w *v1.MutatingWebhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"colour": value}}
		}
	}
	c.configure(t, mutating, "one", hook("red", reinvoked, selecting("red")), hook("blue", reinvoked, selecting("blue")), hook("paint"))
	c.answers("paint", patches(`[{"op": "replace", "path": "/metadata/labels/colour", "value": "blue"}]`))
	r := c.create(t)
	r.Object.SetLabels(map[string]string{"colour": "red"})
	equal(t, "error", "", c.admit(t.Context(), mutating, r))
	equal(t, "calls", []string{"red", "paint"}, c.called())
}

func TestMutatingWebhooksPatchWhatIsDefaultedAndPruned(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configure(t, mutating, "one", hook("w"), hook("after"))
	c.answers("w", patches(`[{"op": "remove", "path": "/spec/restartPolicy"}, {"op": "add", "path": "/spec/unknown", "value": 1}]`))
	r := c.write(t, "pods", resource.Create, &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever},
	}, nil)
	equal(t, "error", "", c.admit(t.Context(), mutating, r))
	equal(t, "restartPolicy", corev1.RestartPolicyAlways, r.Object.(*corev1.Pod).Spec.RestartPolicy)
	if sent := string(c.calls[1].review); !strings.Contains(sent, `"restartPolicy":"Always"`) || strings.Contains(sent, "unknown") {
		t.Errorf("the next one is sent %s", sent)
	}
}

func TestMutatingWebhooksPatchAnEquivalentResource(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configure(t, mutating, "one", hook("w", onlyCoreEvents(v1.Equivalent)), hook("after"))
	c.answers("w", patches(`[{"op": "replace", "path": "/message", "value": "patched"}]`))
	r := c.asEventsGroup(t)
	equal(t, "error", "", c.admit(t.Context(), mutating, r))
	got := r.Object.(*eventsv1.Event)
	equal(t, "object", []string{"events.k8s.io/v1", "patched"}, []string{got.APIVersion, got.Note})
	next := parsed(t, string(c.calls[1].review))["request"].(map[string]any)
	equal(t, "the next one is sent", []any{"events.k8s.io/v1", "patched", "old"}, []any{
		next["object"].(map[string]any)["apiVersion"], next["object"].(map[string]any)["note"], next["oldObject"].(map[string]any)["note"],
	})
}

// TestMutatingWebhooksOfSeveralKindsAreSentTheirs has one object seen in turn as another
// kind and as itself.
func TestMutatingWebhooksOfSeveralKindsAreSentTheirs(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configure(t, mutating, "one", hook("other", onlyCoreEvents(v1.Equivalent)), hook("own"), hook("again", onlyCoreEvents(v1.Equivalent)))
	equal(t, "error", "", c.admit(t.Context(), mutating, c.asEventsGroup(t)))
	var sent []any
	for _, one := range c.calls {
		sent = append(sent, parsed(t, string(one.review))["request"].(map[string]any)["object"].(map[string]any)["apiVersion"])
	}
	equal(t, "sent", []any{"v1", "events.k8s.io/v1", "v1"}, sent)
}

// TestMutatingWebhooksMayPatchNothing, also where there is nothing to patch.
func TestMutatingWebhooksMayPatchNothing(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configure(t, mutating, "one", hook("w"))
	c.answers("w", patches("[]"))
	equal(t, "error", "", c.admit(t.Context(), mutating, c.write(t, "configmaps", resource.Delete, nil, configMap("b"))))
}

func TestMutatingWebhooksPatchTheOptionsOfConnections(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configure(t, mutating, "one", hook("first", reinvoked), hook("w"), hook("after"))
	c.answers("w", patches(`[{"op": "replace", "path": "/container", "value": "patched"}]`))
	r := c.attached(t)
	options := r.Options
	equal(t, "error", "", c.admit(t.Context(), mutating, r))
	equal(t, "container", "patched", r.Options.(*corev1.PodAttachOptions).Container)
	equal(t, "options of the caller", "c", options.(*corev1.PodAttachOptions).Container)
	if sent := string(c.calls[2].review); !strings.Contains(sent, `"container":"patched"`) {
		t.Errorf("the next one is sent %s", sent)
	}
	equal(t, "calls", []string{"first", "w", "after", "first"}, c.called())
}

// TestMutatingWebhooksPatchesThatFailRefuse: the webhook has been called, so that its
// failure policy does not matter.
func TestMutatingWebhooksPatchesThatFailRefuse(t *testing.T) {
	t.Parallel()
	const internal = "500 InternalError: Internal error occurred: "
	for name, one := range map[string]struct {
		patch, want string
		write       func(*cluster) *resource.AdmissionRequest
	}{
		"test fails":    {patch: `[{"op": "test", "path": "/data/a", "value": "x"}]`, want: internal + `testing value /data/a failed: test failed`},
		"missing path":  {patch: `[{"op": "replace", "path": "/data/x/y", "value": "x"}]`, want: internal + `replace operation does not apply: doc is missing path: /data/x/y: missing value`},
		"unknown":       {patch: `[{"op": "invent", "path": "/data/a"}]`, want: internal + `Unexpected kind: invent`},
		"wrong type":    {patch: `[{"op": "replace", "path": "/data/a", "value": {}}]`, want: internal + `json: cannot unmarshal object into Go struct field ConfigMap.data of type string`},
		"another kind":  {patch: `[{"op": "replace", "path": "/kind", "value": "Secret"}]`, want: internal + `no kind "Secret" is registered for version "v1" in scheme "pkg/runtime/scheme.go:111"`},
		"another group": {patch: `[{"op": "replace", "path": "/apiVersion", "value": "v2"}]`, want: internal + `no kind "ConfigMap" is registered for version "v2" in scheme "pkg/runtime/scheme.go:111"`},
		"nothing to change": {
			write: func(c *cluster) *resource.AdmissionRequest {
				return c.write(t, "configmaps", resource.Delete, nil, configMap("b"))
			},
			patch: patchA, want: internal + `admission webhook "w" attempted to modify the object, which is not supported for this operation`,
		},
		"another version of a custom resource": {
			write: func(c *cluster) *resource.AdmissionRequest {
				return c.write(t, "configmaps", resource.Create, resource.NewDoc(map[string]any{
					"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"},
				}), nil)
			},
			patch: `[{"op": "replace", "path": "/apiVersion", "value": "v2"}]`,
			want:  `no status: /v2, Kind=ConfigMap is unstructured and is not suitable for converting to "v1"`,
		},
	} {
		for _, change := range []func(*v1.MutatingWebhook){func(*v1.MutatingWebhook) {}, ignoring} {
			c := newCluster(t)
			c.configure(t, mutating, "one", hook("w", change), hook("after"))
			c.answers("w", patches(one.patch))
			r := c.create(t)
			if one.write != nil {
				r = one.write(c)
			}
			before := r.Object
			equal(t, name, one.want, c.admit(t.Context(), mutating, r))
			if r.Object != before {
				t.Errorf("%s: the object is now %v", name, r.Object)
			}
			equal(t, name+": calls", []string{"w"}, c.called())
		}
	}
}

// TestMutatingWebhooksMayLeaveOutTheKind: the object keeps the one that it has.
func TestMutatingWebhooksMayLeaveOutTheKind(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.configure(t, mutating, "one", hook("w"))
	for _, path := range []string{"/kind", "/apiVersion"} {
		c.answers("w", patches(`[{"op": "remove", "path": "`+path+`"}]`))
		r := c.create(t)
		equal(t, path, "", c.admit(t.Context(), mutating, r))
		equal(t, path, "/v1, Kind=ConfigMap", r.Object.GetObjectKind().GroupVersionKind().String())
	}
}
