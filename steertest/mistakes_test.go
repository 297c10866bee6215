// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
	"github.com/steer-dev/steer/webhook"
)

// careless makes one mistake, and makes nothing of the error that it gets.
type careless struct {
	client.Client
	mistake func(ctx context.Context, c client.Client, cm *corev1.ConfigMap) error
}

func (c careless) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	_ = c.mistake(ctx, c.Client, cm)
	return controller.Done(), nil
}

func readsASecret(ctx context.Context, c client.Client, _ *corev1.ConfigMap) error {
	return c.Get(ctx, steertest.Key("default/none"), &corev1.Secret{})
}

func (c careless) operator(name string) steer.Operator {
	return steer.Operator{Name: name, Scheme: steer.Scheme{corev1.AddToScheme}, Setup: func(_ context.Context, m *manager.Manager) error {
		c.Client = m.Client()
		return controller.Add(m, c)
	}}
}

func TestAMistakeFailsTheTestAtOnceWithTheLineToAdd(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		mistake func(context.Context, client.Client, *corev1.ConfigMap) error
		want    []string
	}{
		"a read of a kind without an informer": {readsASecret, []string{
			"steertest/mistakes_test.go:35: get Secret default/none: the cache does not watch Secret", "If the operator makes these objects", "controller.Owns[*v1.Secret]()", "_, err := m.Cache().Informer(&v1.Secret{})",
		}},
		"children that no controller watches": {func(ctx context.Context, _ client.Client, cm *corev1.ConfigMap) error {
			return new(controller.Children[*corev1.Secret]).Apply(ctx, cm, []*corev1.Secret{{ObjectMeta: metav1.ObjectMeta{Name: "child"}}})
		}, []string{"does not watch these children. Add this option to controller.Add:\n\tcontroller.Owns[*v1.Secret]()"}},
		"a panic": {func(context.Context, client.Client, *corev1.ConfigMap) error {
			var none map[string]string
			none["a"] = "" //nolint:staticcheck // it is the mistake
			return nil
		}, []string{"panic at ", "steertest/mistakes_test.go:59: assignment to entry in nil map"}},
		"a list by a field without an index": {func(ctx context.Context, c client.Client, _ *corev1.ConfigMap) error {
			return c.List(ctx, &corev1.ConfigMapList{}, client.MatchingFields{"data.owner": "me"})
		}, []string{`no index of the field "data.owner" of ConfigMap`, `m.Cache().IndexField(&v1.ConfigMap{}, "data.owner", func(o client.Object) []string`}},
		"a change of more than the status": {func(_ context.Context, _ client.Client, cm *corev1.ConfigMap) error {
			cm.Data = map[string]string{"a": "1"}
			return nil
		}, []string{"data.a of ConfigMap default/a was changed in place", "client.MergeFrom(before)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := fails(t, func(tb testing.TB) {
				env := steertest.New(tb, steertest.Options{Operator: careless{mistake: test.mistake}.operator("careless")})
				env.Create(configMap("a"))
				steertest.Wait(env, "default/a", func(cm *corev1.ConfigMap) bool { return cm.Data["never"] != "" })
			})
			for _, want := range append(test.want, "Options.Mistakes") {
				if !strings.Contains(got, want) {
					t.Errorf("message without %q: %s", want, got)
				}
			}
			if strings.Count(got, "\n") > 20 {
				t.Errorf("it is long: %s", got)
			}
			if strings.Count(got, "Options.Mistakes") > 2 { // when it happens, and as the reason why the wait ended
				t.Errorf("it is repeated: %s", got)
			}
		})
	}
}

func TestATestMayAllowMistakes(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Operator: careless{mistake: readsASecret}.operator("careless"), Mistakes: true})
	env.Create(configMap("a"))
	env.Settled()
	err := env.Manager().Client().Get(env.Context(), steertest.Key("default/x"), &corev1.Secret{})
	if err == nil || !strings.Contains(err.Error(), "Secret") {
		t.Errorf("got %v, want an error that names the kind", err)
	}
}

func TestTheOperatorUnderTestIsConfiguredAsByItsMain(t *testing.T) {
	t.Parallel()
	var reported []error
	op := careless{mistake: readsASecret}.operator("configured")
	op.Configure = func(o *manager.Options) {
		o.Cache.Undeclared = cache.UndeclaredLive
		o.OnError = func(err error) { reported = append(reported, err) }
	}
	env := steertest.New(t, steertest.Options{Operator: op})
	env.Create(configMap("a"))
	env.Settled() // live reads are no mistakes of this operator
	if len(reported) > 0 {
		t.Errorf("reported: %v", reported)
	}
}

// TestWebhooksThatDifferFromTheirConfigurationFailTheTestAtTheStart forgets the validator of
// testdata/tenants.yaml, and serves a defaulter that it does not have.
func TestWebhooksThatDifferFromTheirConfigurationFailTheTestAtTheStart(t *testing.T) {
	t.Parallel()
	operator := steer.Operator{Name: "forgets", Scheme: steer.Scheme{corev1.AddToScheme}, Setup: func(_ context.Context, m *manager.Manager) error {
		return webhook.AddDefaulter(m, grows{})
	}}
	o := steertest.Options{Operator: operator, Webhooks: []string{"testdata/tenants.yaml"}, Role: steertest.Administrator}
	got := fails(t, func(tb testing.TB) { steertest.New(tb, o) })
	for _, want := range []string{"/mutate--v1-configmap is served, but no webhook configuration has it", "Options.Mistakes permits it"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	o.Mistakes = true
	steertest.New(t, o)
}

// TestAWebhookThatNothingServesFailsTheTestOnceItIsCalled: a test may run a part of an
// operator, and have the configurations of all of it.
func TestAWebhookThatNothingServesFailsTheTestOnceItIsCalled(t *testing.T) {
	t.Parallel()
	operator := steer.Operator{Name: "part", Scheme: steer.Scheme{corev1.AddToScheme}, Setup: func(_ context.Context, m *manager.Manager) error {
		return webhook.AddDefaulter(m, grows{})
	}}
	o := steertest.Options{Operator: operator, Webhooks: []string{"testdata/grows.yaml", "testdata/tenants.yaml"}, Role: steertest.Administrator}
	steertest.New(t, o)
	got := fails(t, func(tb testing.TB) {
		env := steertest.New(tb, o)
		_ = env.Client.Create(tb.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	})
	for _, want := range []string{
		"an API server calls /validate--v1-configmap, but nothing serves it", "served is /mutate--v1-configmap", "Add webhook.AddDefaulter, webhook.AddValidator", "Options.Mistakes permits it",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}

// grows is a defaulter that never comes to an end.
type grows struct{}

func (grows) Default(_ context.Context, cm *corev1.ConfigMap) error {
	cm.Labels = map[string]string{"n": cm.Labels["n"] + "x"}
	return nil
}

func TestADefaulterThatIsNotIdempotentFailsTheTest(t *testing.T) {
	t.Parallel()
	operator := steer.Operator{Name: "grows", Scheme: steer.Scheme{corev1.AddToScheme}, Setup: func(_ context.Context, m *manager.Manager) error {
		return webhook.AddDefaulter(m, grows{})
	}}
	got := fails(t, func(tb testing.TB) {
		env := steertest.New(tb, steertest.Options{Operator: operator, Webhooks: []string{"testdata/grows.yaml"}, Role: steertest.Administrator})
		env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}})
	})
	for _, want := range []string{"the defaulter of ConfigMap is not idempotent", "changes metadata.labels[n]", "Set a field only where it is empty"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
}
