// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// Do is what an operator does for the ConfigMap app.
type Do func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error

// reconciler is one of [Operated].
type reconciler struct {
	client.Client
	do Do
}

// Reconcile implements controller.Reconciler.
func (r reconciler) Reconcile(ctx context.Context, app *corev1.ConfigMap) (controller.Result, error) {
	if app.Name != "app" {
		return controller.Done(), nil
	}
	return controller.Result{}, r.do(ctx, r.Client, app)
}

// Operated is the cheapest test of an operator, for tests of parts of sim: it has no kind of
// its own. Each start of the operator calls start for what it does.
func Operated(start func() Do) func(t *testing.T) {
	return func(t *testing.T) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		env := steertest.New(t, steertest.Options{
			Scheme: scheme, Role: steertest.Administrator,
			Setup: func(_ context.Context, m *manager.Manager) error {
				return controller.Add(m, reconciler{m.Client(), start()}, controller.Owns[*corev1.Secret]())
			},
		})
		env.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "app"}})
		env.Settled()
	}
}

// Pair creates the Secrets db and db-ssl; the first stands for both unless it is mended.
func Pair(mended bool) Do {
	return func(ctx context.Context, c client.Client, app *corev1.ConfigMap) error {
		for i, name := range []string{"db", "db-ssl"} {
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: app.Namespace, Name: name}}
			err := c.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
			if err == nil && i == 0 && !mended {
				return nil
			}
			if client.IgnoreNotFound(err) == nil && err != nil {
				err = client.IgnoreAlreadyExists(c.Create(ctx, secret))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}
