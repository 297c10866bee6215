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
	v1 "github.com/steer-dev/steer/sim/internal/bugs/api/v1"
	"github.com/steer-dev/steer/steertest"
)

// flip has a Service lead to its database. Two databases may name one Service: each sees
// what the other has written and writes it back, without end.
type flip struct {
	client.Client
	mended bool
}

const flipLabel = "bugs.example.com/database"

// Reconcile writes the selector of the Service.
func (r flip) Reconcile(ctx context.Context, db *v1.Database) (controller.Result, error) {
	if r.mended {
		var all v1.DatabaseList
		if err := r.List(ctx, &all, client.InNamespace(db.Namespace)); err != nil {
			return controller.Result{}, err
		}
		for _, other := range all.Items { // the first by name has it
			if other.Spec.Service == db.Spec.Service && other.Name < db.Name {
				controller.SetStalled(db, &db.Status.Conditions, "ServiceTaken", "another database has this Service")
				return controller.Done(), nil
			}
		}
	}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: db.Namespace, Name: db.Spec.Service}}
	_, err := controller.CreateOrUpdate(ctx, r.Client, service, func() error {
		service.Spec.Selector = map[string]string{flipLabel: db.Name}
		service.Spec.Ports = []corev1.ServicePort{{Port: 5432, Protocol: corev1.ProtocolTCP}}
		return nil
	})
	if err != nil {
		return controller.Result{}, err
	}
	controller.SetReady(db, &db.Status.Conditions, "Reachable", "the Service leads to it")
	return controller.Done(), nil
}

// databases returns the requests for all databases of an object's namespace.
func (r flip) databases(ctx context.Context, namespace string) (out []controller.Request) {
	var all v1.DatabaseList
	if err := r.List(ctx, &all, client.InNamespace(namespace)); err != nil {
		controller.Log(ctx).Error("list databases", "err", err)
	}
	for i := range all.Items {
		out = append(out, controller.RequestFor(&all.Items[i]))
	}
	return out
}

func (r flip) setup(m *manager.Manager) error {
	return controller.Add(m, r,
		controller.Watches(controller.Map(func(ctx context.Context, s *corev1.Service) []controller.Request {
			return r.databases(ctx, s.Namespace)
		})),
		controller.Watches(controller.Map(func(ctx context.Context, db *v1.Database) []controller.Request { return r.databases(ctx, db.Namespace) }), controller.GenerationChanged[*v1.Database]),
	)
}

func flipBug() Bug {
	return Bug{
		Name:    "shared-service",
		Shows:   "it never settles, without any fault",
		Finding: "never settles",
		Scenario: func(t *testing.T, mended bool) (check func()) {
			a, b := database("a"), database("b")
			a.Spec.Service, b.Spec.Service = "db", "db"
			env := newEnv(t, func(_ context.Context, m *manager.Manager) error { return flip{m.Client(), mended}.setup(m) })
			env.Create(a)
			env.Create(b)
			return func() {
				steertest.Wait(env, "default/db", func(s *corev1.Service) bool { return s.Spec.Selector[flipLabel] == "a" })
			} // the one with the bug does not settle
		},
	}
}
