// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// webs reconciles Webs: it declares their children and reports what there is.
type webs struct {
	pages controller.Children[*corev1.ConfigMap]
}

func (r *webs) Reconcile(ctx context.Context, w *Web) (controller.Result, error) {
	if err := r.pages.Apply(ctx, w, nil); err != nil {
		return controller.Result{}, err
	}
	controller.SetReady(w, &w.Status.Conditions, "Published", "all pages are there")
	return controller.After(time.Hour), nil
}

func (r *webs) Cleanup(ctx context.Context, w *Web) (controller.Result, error) {
	return r.pages.Delete(ctx, w)
}

// The kind is inferred from the parameter of Reconcile; everything else is an
// option.
func ExampleAdd() {
	_ = func(m controller.Manager) error {
		r := &webs{}
		return controller.Add(m, r,
			controller.Owns[*corev1.ConfigMap](),
			controller.Where(controller.GenerationChanged[*Web]),
			controller.Finalizer("example.com/pages", r.Cleanup),
			controller.Concurrency(4))
	}
}

// A reconciler of requests takes any comparable type; sources say where the
// requests come from.
func ExampleAddRequests() {
	_ = func(m controller.Manager, tenants <-chan string) error {
		reconcile := controller.Func[string](func(context.Context, string) (controller.Result, error) {
			return controller.Done(), nil
		})
		return controller.AddRequests(m, "tenants", reconcile,
			controller.From(controller.Channel(tenants)),
			controller.Watches(controller.Map(func(_ context.Context, ns *corev1.Namespace) []string {
				return []string{ns.Labels["tenant"]}
			})))
	}
}

// A reconciled object that names others is requested when those change. The index
// of who names what is kept by the controller.
func ExampleReferences() {
	_ = func(m controller.Manager, r controller.Reconciler[*Web]) error {
		return controller.Add(m, r,
			controller.References[*corev1.ConfigMap](func(w *Web) (keys []client.ObjectKey) {
				for _, page := range w.Spec.Pages {
					keys = append(keys, client.ObjectKey{Name: page}) // in the namespace of w
				}
				return keys
			}))
	}
}
