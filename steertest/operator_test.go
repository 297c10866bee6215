// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

func TestSettledWaitsForAllThatFollowsFromAWrite(t *testing.T) {
	t.Parallel()
	for range 20 {
		env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup})
		source := configMap("source")
		source.Data = map[string]string{"a": "1"}
		env.Create(source)
		env.Settled()
		var copied corev1.ConfigMap
		if err := env.Client.Get(env.Context(), steertest.Key("default/copy"), &copied); err != nil {
			t.Fatal(err)
		}
		if err := env.Client.Delete(env.Context(), source); err != nil {
			t.Fatal(err)
		}
		env.Settled()
	}
}

func TestSettledWaitsForRetriesAndEvents(t *testing.T) {
	t.Parallel()
	var failures atomic.Int32
	fault := interceptor.Each(func(_ context.Context, call client.Call, do func() error) error {
		if call.Verb == client.VerbApply && call.GVK.Kind == "ConfigMap" && failures.Add(1) <= 3 {
			return apierrors.NewInternalError(errors.New("injected"))
		}
		return do()
	})
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Intercept: fault, Setup: func(ctx context.Context, m *manager.Manager) error {
		if err := controller.Add(m, teller{}, controller.Name("teller")); err != nil {
			return err
		}
		return setup(ctx, m)
	}})
	env.Create(configMap("source"))
	env.Settled()
	var copied corev1.ConfigMap
	if err := env.Client.Get(env.Context(), steertest.Key("default/copy"), &copied); err != nil {
		t.Fatal(err)
	}
	var events corev1.EventList
	if err := env.Client.List(env.Context(), &events, client.InNamespace("default")); err != nil {
		t.Fatal(err)
	}
	if n := failures.Load(); n != 4 || len(events.Items) != 2 {
		t.Errorf("%d applies, want 3 that failed and 1 that did not; %d events, want 1 of each ConfigMap", n, len(events.Items))
	}
}

// restless always finds something to do.
type restless struct{}

func (restless) Reconcile(context.Context, *corev1.ConfigMap) (controller.Result, error) {
	return controller.Result{}, errors.New("not content")
}

func TestAnOperatorThatNeverSettlesIsToldOf(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := fails(t, func(tb testing.TB) {
			env := steertest.New(tb, steertest.Options{
				Scheme: scheme(t), Timeout: time.Second,
				Setup: func(_ context.Context, m *manager.Manager) error { return controller.Add(m, restless{}) },
			})
			env.Create(configMap("a"))
			env.Settled()
		})
		if !strings.Contains(got, "controller configmap") || !strings.Contains(got, "1 wait for a retry") {
			t.Errorf("message: %s", got)
		}
	})
}

// looper has one of the ways never to come to rest.
type looper struct {
	client.Client
	after  time.Duration // comes back after it
	takes  time.Duration // for each reconcile
	rounds int           // as often; 0 always
	writes bool          // changes the object each time
	seen   atomic.Int32
}

func (l *looper) Reconcile(ctx context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	if cm.Name != "a" {
		return controller.Done(), nil
	}
	n := int(l.seen.Add(1))
	if l.takes > 0 {
		time.Sleep(l.takes) // virtual
	}
	if l.writes {
		time.Sleep(time.Millisecond) // virtual: without it no time would go by
		patch := fmt.Sprintf(`{"data":{"round":"%d"}}`, n)
		marked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cm.Namespace, Name: cm.Name}}
		return controller.Done(), l.Patch(ctx, marked, client.RawPatch("application/merge-patch+json", []byte(patch)))
	}
	if l.rounds > 0 && n > l.rounds {
		return controller.Done(), nil
	}
	return controller.After(l.after), nil
}

func (l *looper) setup(_ context.Context, m *manager.Manager) error {
	l.Client = m.Client()
	return controller.Add(m, l)
}

func TestAHotLoopNeverSettlesAndIsNamed(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		loop *looper
		want []string
	}{
		"it comes back": {&looper{after: 10 * time.Millisecond}, []string{"default/a has asked", "at last after 10ms", "return Wait", "reconciles of one object"}},
		"it runs in the end": {
			&looper{after: 10 * time.Millisecond, takes: 20 * time.Millisecond},
			[]string{"1 run", "default/a has asked", "at last after 10ms", "return Wait", "reconciles of one object"},
		},
		"it wakes itself": {&looper{writes: true}, []string{"reconciles of one object meanwhile", "default/a", "patch ConfigMap", "updated ConfigMap"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				got := fails(t, func(tb testing.TB) {
					// The timeout ends between two reconciles, or within one that takes 20 ms.
					env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Timeout: 305 * time.Millisecond, Setup: test.loop.setup})
					env.Create(configMap("a"))
					env.Settled()
				})
				for _, want := range test.want {
					if !strings.Contains(got, want) {
						t.Errorf("message without %q: %s", want, got)
					}
				}
			})
		})
	}
}

func TestSettledWaitsForWhatComesBackSoonAndForNothingLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, test := range []struct {
			loop *looper
			want int32
		}{
			{&looper{after: 50 * time.Millisecond, rounds: 7}, 8},
			{&looper{after: time.Second}, 1},
		} {
			env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: test.loop.setup})
			env.Create(configMap("a"))
			env.Settled()
			if got := test.loop.seen.Load(); got != test.want {
				t.Errorf("After(%s): %d reconciles when it had settled, want %d", test.loop.after, got, test.want)
			}
			env.StopOperator()
		}
	})
}

// nervous panics the first time.
type nervous struct{ seen atomic.Int32 }

func (n *nervous) Reconcile(_ context.Context, cm *corev1.ConfigMap) (controller.Result, error) {
	if cm.Name == "a" && n.seen.Add(1) == 1 {
		panic("panic: too much")
	}
	return controller.Done(), nil
}

func (n *nervous) setup(_ context.Context, m *manager.Manager) error { return controller.Add(m, n) }

func TestAPanicFailsTheTestWithItsStack(t *testing.T) {
	t.Parallel()
	got, logs := failsWith(t, func(tb testing.TB) {
		env := steertest.New(tb, steertest.Options{Scheme: scheme(t), Setup: (&nervous{}).setup})
		env.Create(configMap("a"))
		// Nothing waits for what the panic prevents.
		env.Settled()
	})
	for _, want := range []string{"a mistake of the operator", "Options.Mistakes", "controller configmap, ConfigMap default/a", "too much", "(*nervous).Reconcile", "operator_test.go"} {
		if !strings.Contains(got, want) {
			t.Errorf("message without %q: %s", want, got)
		}
	}
	if !strings.Contains(logs, "-> panicked") {
		t.Errorf("the last reconciles are not shown: %s", logs)
	}
}

func TestATestMayExpectPanics(t *testing.T) {
	t.Parallel()
	n := &nervous{}
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: n.setup, Mistakes: true})
	env.Create(configMap("a"))
	env.Settled()
	if got := n.seen.Load(); got < 2 {
		t.Errorf("%d reconciles: the panic was not retried", got)
	}
}

func TestSettledWorksInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup})
		began := time.Now()
		env.Create(configMap("source"))
		env.Settled()
		if err := env.Client.Get(env.Context(), steertest.Key("default/copy"), configMap("")); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s of virtual time went by", took)
		}
	})
}

func TestARestartedOperatorFindsWhatItMissed(t *testing.T) {
	t.Parallel()
	env := steertest.New(t, steertest.Options{Scheme: scheme(t), Setup: setup})
	env.StopOperator()
	env.Create(configMap("source"))
	env.Settled()
	if err := env.Client.Get(env.Context(), steertest.Key("default/copy"), configMap("")); !apierrors.IsNotFound(err) {
		t.Errorf("without the operator: %v", err)
	}
	env.StartOperator()
	env.Settled()
	if err := env.Client.Get(env.Context(), steertest.Key("default/copy"), configMap("")); err != nil {
		t.Error(err)
	}
}
