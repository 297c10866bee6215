// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// applies keeps the errors that the operator's applies of ConfigMaps return.
type applies struct {
	mu     sync.Mutex
	errors []error
}

func (a *applies) options(faults ...steertest.Fault) steertest.Options {
	return steertest.Options{
		Faults: faults,
		Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, keeper{interceptor.New(m.Client(), interceptor.Each(func(_ context.Context, call client.Call, do func() error) error {
				err := do()
				if call.Verb == client.VerbApply {
					a.mu.Lock()
					a.errors = append(a.errors, err)
					a.mu.Unlock()
				}
				return err
			}))})
		},
	}
}

func TestFaultsAreMetInTheWayThatTheySay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		with steertest.Failure
		is   func(error) bool
	}{
		"conflict":             {steertest.Conflict, apierrors.IsConflict},
		"internal error":       {nil, apierrors.IsInternalError},
		"too many requests":    {steertest.TooManyRequests, apierrors.IsTooManyRequests},
		"timeout after commit": {steertest.TimeoutAfterCommit, apierrors.IsTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var seen applies
				o := seen.options(steertest.Fault{Verb: client.VerbApply, Kind: "ConfigMap", With: test.with, Times: 2})
				o.Scheme = scheme(t)
				env := steertest.New(t, o)
				env.Create(configMap("source"))
				time.Sleep(10 * time.Second) // virtual: what was refused for a second is tried again
				env.Settled()
				steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
				seen.mu.Lock()
				defer seen.mu.Unlock()
				if n := len(seen.errors); n < 3 || !test.is(seen.errors[0]) || !test.is(seen.errors[1]) || seen.errors[n-1] != nil {
					t.Errorf("the applies returned %v, want two faults and a success", seen.errors)
				}
			})
		})
	}
}

func TestFaultsNameTheResourceThatTheKindIsMappedTo(t *testing.T) {
	t.Parallel()
	types := scheme(t)
	if err := networkingv1.AddToScheme(types); err != nil {
		t.Fatal(err)
	}
	var got error
	steertest.New(t, steertest.Options{
		Scheme: types, Faults: []steertest.Fault{{Verb: client.VerbUpdate, Kind: "Ingress", With: steertest.Conflict}},
		Setup: func(ctx context.Context, m *manager.Manager) error {
			ingress := &networkingv1.Ingress{}
			ingress.Namespace, ingress.Name = "default", "web"
			got = m.Client().Update(ctx, ingress)
			return nil
		},
	})
	if status := new(apierrors.StatusError); !errors.As(got, &status) || status.ErrStatus.Details.Kind != "ingresses" || status.ErrStatus.Details.Group != "networking.k8s.io" {
		t.Errorf("the conflict is %v, want one of ingresses.networking.k8s.io", got)
	}
}

func TestATimeoutAfterCommitHasWritten(t *testing.T) {
	t.Parallel()
	var seen applies
	o := seen.options(steertest.Fault{Verb: client.VerbApply, With: steertest.TimeoutAfterCommit, Times: -1})
	o.Scheme = scheme(t)
	env := steertest.New(t, o)
	env.Create(configMap("source"))
	steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
}

func TestFaultsCountCallsByVerbAndKind(t *testing.T) {
	t.Parallel()
	var seen applies
	o := seen.options(steertest.Fault{Skip: 1})
	o.Scheme = scheme(t)
	env := steertest.New(t, o)
	source := configMap("source")
	env.Create(source)
	env.Settled() // the first apply
	source.Data = map[string]string{"a": "1"}
	if err := env.Client.Update(env.Context(), source); err != nil {
		t.Fatal(err)
	}
	env.Settled() // the second, which fails, and the third
	failed := make([]bool, 0, 3)
	for _, err := range seen.errors {
		failed = append(failed, err != nil)
	}
	if want := []bool{false, true, false}; !slices.Equal(failed, want) {
		t.Errorf("failed: %v, want %v", failed, want)
	}
}

func TestAFaultThatNeverHappensFailsTheTest(t *testing.T) {
	t.Parallel()
	got := fails(t, func(tb testing.TB) {
		env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Setup: setup, Faults: []steertest.Fault{{Verb: client.VerbDelete, Kind: "Job"}}})
		env.Create(configMap("source"))
		env.Settled()
	})
	if !strings.Contains(got, "no call") || !strings.Contains(got, "delete of Job") {
		t.Errorf("message: %s", got)
	}
	got = fails(t, func(tb testing.TB) {
		steertest.New(tb, steertest.Options{Scheme: scheme(t), Faults: []steertest.Fault{{}}})
	})
	if !strings.Contains(got, "give Options.Operator") {
		t.Errorf("message: %s", got)
	}
}

// pair writes two objects, one after the other, and the second only in the
// process that has written the first: it does not survive what it claims to.
type pair struct {
	client.Client
	first bool
	sound bool
}

func (p *pair) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	if cm.Name != "source" {
		return controller.Done(), nil
	}
	var one corev1.ConfigMap
	err := p.Get(ctx, steertest.Key("default/one"), &one)
	if apierrors.IsNotFound(err) {
		if err = p.Create(ctx, configMap("one")); err == nil {
			p.first = true
		}
	}
	if err != nil || !p.first && !p.sound {
		return controller.Done(), err
	}
	return controller.Done(), client.IgnoreAlreadyExists(p.Create(ctx, configMap("two")))
}

func (p pair) setup(_ context.Context, m *manager.Manager) error {
	p.Client = m.Client()
	return controller.Add(m, &p)
}

func TestAnOperatorIsKilledAfterEveryWriteUntilItIsThere(t *testing.T) {
	t.Parallel()
	o := steertest.Options{Scheme: scheme(t), Setup: pair{sound: true}.setup}
	env := steertest.New(t, o)
	killed := steertest.KillAfterEveryWrite[*corev1.ConfigMap](env, "default/two", func() { env.Create(configMap("source")) })
	if got, want := strings.Join(killed, ", "), "create ConfigMap one, create ConfigMap two"; got != want && got != "create ConfigMap one" {
		t.Errorf("killed after %s, want %s", got, want)
	}
	env.Settled() // it runs, and writes again
	if err := env.Client.Delete(env.Context(), configMap("two")); err != nil {
		t.Fatal(err)
	}
	env.Settled()
}

func TestAnOperatorThatDoesNotSurviveAKillIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := fails(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Setup: pair{}.setup, Timeout: 5 * time.Second})
			steertest.KillAfterEveryWrite[*corev1.ConfigMap](env, "default/two", func() { env.Create(configMap("source")) })
		})
		if !strings.Contains(got, "killed 1 times, at last after create ConfigMap one") || !strings.Contains(got, "default/two") {
			t.Errorf("message: %s", got)
		}
	})
}

func TestAnOperatorThatIsNeverKilledFailsTheTest(t *testing.T) {
	t.Parallel()
	got := fails(t, func(tb testing.TB) {
		env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Setup: setup})
		steertest.KillAfterEveryWrite[*corev1.ConfigMap](env, "default/a", func() { env.Create(configMap("a")) })
	})
	if !strings.Contains(got, "never killed") {
		t.Errorf("message: %s", got)
	}
}
