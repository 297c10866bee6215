// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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
