// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/sim/internal/explore"
	"github.com/steer-dev/steer/sim/internal/worker"
	"github.com/steer-dev/steer/steertest"
)

// explored explores f; in a worker process it runs f instead.
func explored(t *testing.T, f func(t *testing.T), o explore.Options) (explore.Result, error) {
	t.Helper()
	if worker.Serves(t) {
		worker.Serve(t, f)
	}
	o.Test, o.Failures, o.Shrinking = t.Name(), 5, 20
	if raceDetector {
		o.Orders, o.Plans, o.Failures, o.Shrinking = min(o.Orders, 2), 8, 1, 5
	}
	if o.Stuck == 0 {
		o.Stuck = time.Minute
	}
	began := time.Now()
	r, err := explore.Run(t.Context(), o)
	t.Logf("%d runs in %s", r.Runs, time.Since(began))
	return r, err
}

// reconciler is a function of its object and a client.
type reconciler struct {
	client.Client
	do func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error
}

// Reconcile implements controller.Reconciler.
func (r reconciler) Reconcile(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
	if app.Name != "app" {
		return controller.Done(), nil
	}
	return controller.Result{}, r.do(ctx, r.Client, app)
}

// operated is a test of an operator that reconciles the ConfigMap app.
func operated(do func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error) func(t *testing.T) {
	return func(t *testing.T) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		env := steertest.New(t, steertest.Options{
			Scheme: scheme, Role: steertest.Administrator,
			Setup: func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, reconciler{m.Client(), do}, controller.Owns[*corev1.Secret]())
			},
		})
		env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}})
		env.Settled()
	}
}

// pair creates two Secrets, the second only beside the first if it is guarded by that.
func pair(guarded bool) func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
	return func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		for i, name := range []string{"db", "db-ssl"} {
			at := client.ObjectKey{Namespace: app.Namespace, Name: name}
			err := c.Get(ctx, at, &corev1.Secret{})
			if err == nil && i == 0 && guarded {
				return nil
			}
			if client.IgnoreNotFound(err) != nil {
				return err
			}
			if err == nil {
				continue
			}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: at.Namespace, Name: at.Name}}
			if err := c.Create(ctx, secret); client.IgnoreAlreadyExists(err) != nil {
				return err
			}
		}
		return nil
	}
}

func TestRunFindsTheSecondOfAPairAndShrinksIt(t *testing.T) {
	t.Parallel()
	r, err := explored(t, operated(pair(true)), explore.Options{Orders: 5})
	if err != nil || len(r.Failures) != 1 {
		t.Fatalf("%v, %d failures", err, len(r.Failures))
	}
	f := r.Failures[0]
	page := f.String()
	t.Log("\n" + page)
	if f.Plan.Name() != "crash_after_create_Secret_db" || !strings.Contains(page, "Secret default/db-ssl is missing: the reference has it") {
		t.Errorf("plan %s:\n%s", f.Plan.Name(), page)
	}
	if !raceDetector && (r.Repeats == 0 || r.Left != 0) {
		t.Errorf("%d alike, %d left out", r.Repeats, r.Left)
	}
}

func TestRunFindsNothingWhereEachHasItsGuard(t *testing.T) {
	t.Parallel()
	r, err := explored(t, operated(pair(false)), explore.Options{Orders: 5})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Failures {
		t.Errorf("\n%s", f)
	}
}

// TestRunRefusesATestThatProvesNothing names the reason.
func TestRunRefusesATestThatProvesNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		f    func(t *testing.T)
		want string
	}{
		"no env":      {func(*testing.T) {}, "makes no environment"},
		"no operator": {func(t *testing.T) { steertest.New(t, steertest.Options{}) }, "has no operator"},
		"no write":    {operated(func(context.Context, client.Client, *corev1.ConfigMap) error { return nil }), "writes nothing"},
		"fails":       {func(t *testing.T) { t.Error("not today") }, "not today"},
		"panics":      {func(*testing.T) { panic("ouch") }, "ouch"},
		"never ends":  {func(t *testing.T) { go func() { select {} }(); steertest.New(t, steertest.Options{}) }, "goroutines are left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := explored(t, test.f, explore.Options{})
			var unusable *explore.UnusableError
			if !errors.As(err, &unusable) || !strings.Contains(fmt.Sprint(err), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}
