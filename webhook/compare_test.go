// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	admissionapi "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/webhook"
)

// hooksOf is a webhook configuration with a webhook at each path.
func hooksOf(kind, namespace string, paths ...string) *unstructured.Unstructured {
	var hooks []any
	for _, path := range paths {
		hooks = append(hooks, map[string]any{
			"name": "hook.example.com", "clientConfig": map[string]any{"service": map[string]any{"namespace": namespace, "name": "webhooks", "path": path}},
		})
	}
	return &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "hooks"}, "webhooks": hooks}}
}

func TestPathsThatOnlyOneSideHasAreNamedWithTheLineToAdd(t *testing.T) {
	t.Parallel()
	noop := defaulter(func(context.Context, *widget) error { return nil })
	unconverted := widgetDefinition().(*unstructured.Unstructured).DeepCopy()
	unstructured.RemoveNestedField(unconverted.Object, "spec", "conversion")
	const mutating, validating = "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
	for name, tt := range map[string]struct {
		add     func(w web) error
		objects []*unstructured.Unstructured
		want    []string
	}{
		"both sides have it": {func(w web) error {
			return errors.Join(webhook.AddDefaulter(w, noop), webhook.AddConversion(w, &widget{}))
		}, []*unstructured.Unstructured{hooksOf(mutating, "default", mutatePath), widgetDefinition().(*unstructured.Unstructured)}, nil},
		"a validator is missing": {func(w web) error { return webhook.AddDefaulter(w, noop) },
			[]*unstructured.Unstructured{hooksOf(mutating, "default", mutatePath), hooksOf(validating, "default", "/validate-x")},
			[]string{"/validate-x is in ValidatingWebhookConfiguration hooks (webhook hook.example.com), but nothing serves it: webhook.AddValidator", "served is " + mutatePath}},
		"a path differs": {func(w web) error { return webhook.AddDefaulter(w, noop, webhook.Path("/mine")) },
			[]*unstructured.Unstructured{hooksOf(mutating, "default", mutatePath)},
			[]string{mutatePath + " is in MutatingWebhookConfiguration hooks", "/mine is served, but no webhook configuration has it", "+kubebuilder:webhook:path=/mine"}},
		"the marker is missing": {func(w web) error { return webhook.AddDefaulter(w, noop) }, nil, []string{mutatePath + " is served, but"}},
		"the conversion is missing": {func(w web) error { return nil }, []*unstructured.Unstructured{widgetDefinition().(*unstructured.Unstructured)},
			[]string{"/convert is in the conversion of CustomResourceDefinition widgets.example.com", "webhook.AddConversion"}},
		"the definition does not convert": {func(w web) error { return webhook.AddConversion(w, &widget{}) }, []*unstructured.Unstructured{unconverted},
			[]string{"Widget is converted by the operator, but CustomResourceDefinition widgets.example.com does not say so", "+kubebuilder:conversion:webhook"}},
		"another operator's": {func(w web) error { return nil }, []*unstructured.Unstructured{hooksOf(mutating, "other", "/theirs")}, nil},
	} {
		w := newWeb(t, func(o *webhook.Options) { o.Authority.Namespace = "default" })
		if err := tt.add(w); err != nil {
			t.Fatal(err)
		}
		unserved, unconfigured := w.Compare(tt.objects...)
		got := strings.Join(append(unserved, unconfigured...), "\n")
		for _, want := range tt.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: %q is missing in %q", name, want, got)
			}
		}
		if tt.want == nil && got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestKeeperTellsWhichPathsDiffer is an operator in a cluster: it reads its configurations
// to give them its authority.
func TestKeeperTellsWhichPathsDiffer(t *testing.T) {
	keep(t, func(k keeping) {
		_, log, stop := k.replica(k.Client)
		defer stop()
		if err := log.wait(k.t.Context(), "/elsewhere is in MutatingWebhookConfiguration "+configured); err != nil {
			t.Error(err)
		}
		if text := log.String(); strings.Contains(text, mutatePath+" is served, but") || strings.Count(text, "/elsewhere is in") != 1 {
			t.Errorf("the log says %s", text)
		}
	})
}

func TestDefaulterIsCalledAgainWhereThatIsAsked(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fn   defaulter
		want string
	}{
		"idempotent": {func(_ context.Context, w *widget) error { w.Spec.Size = 1; return nil }, ""},
		"grows": {func(_ context.Context, w *widget) error { w.Spec.Size++; return nil },
			"the defaulter of Widget is not idempotent: a second call with what the first has returned changes spec.size"},
		"refuses": {func(_ context.Context, w *widget) error {
			if w.Spec.Size == 2 {
				return errors.New("is set already")
			}
			w.Spec.Size = 2
			return nil
		}, "changes an error: is set already"},
	} {
		var told []string
		w := newWeb(t, func(o *webhook.Options) {
			o.OnMistake = func(err error) { told = append(told, err.Error()) }
		})
		if err := webhook.AddDefaulter(w, tt.fn); err != nil {
			t.Fatal(err)
		}
		r := ask(t, w, mutatePath, request(admissionapi.Create, plain, ""))
		if !r.Allowed {
			t.Errorf("%s: the request is denied: %v", name, r.Result)
		}
		if got := strings.Join(told, "\n"); !strings.Contains(got, tt.want) || (tt.want == "") != (got == "") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
