// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

// A reconciled object that names others is requested when those change. The controller
// keeps the index of the references.
func ExampleReferences() {
	reconcile := controller.Func[*Web](func(_ context.Context, w *Web) (controller.Result, error) {
		w.Status.Ready++ // counts, to show when it is called
		return controller.Done(), nil
	})
	operate(func(m *manager.Manager) error {
		return controller.Add(m, reconcile,
			controller.Where(controller.GenerationChanged[*Web]),
			controller.References[*corev1.ConfigMap](func(w *Web) (keys []client.ObjectKey) {
				for _, page := range w.Spec.Pages {
					keys = append(keys, client.ObjectKey{Name: page}) // in the namespace of w
				}
				return keys
			}))
	}, func(env *steertest.Env) {
		before := readWeb(env).Status.Ready
		env.Create(page("index"))
		env.Settled()
		fmt.Println("reconciled:", readWeb(env).Status.Ready > before)
	}, webOf("index"))
	// Output: reconciled: true
}

// A reconciler of requests takes any comparable type. Its requests come from watches,
// channels and polls.
func ExampleAddRequests() {
	seen := make(chan string, 1)
	reconcile := controller.Func[string](func(_ context.Context, tenant string) (controller.Result, error) {
		seen <- tenant
		return controller.Done(), nil
	})
	operate(func(m *manager.Manager) error {
		return controller.AddRequests(m, "tenants", reconcile,
			controller.Typed(controller.Watches(controller.Map(func(_ context.Context, c *corev1.ConfigMap) []string {
				if tenant := c.Labels["tenant"]; tenant != "" {
					return []string{tenant}
				}
				return nil
			}))))
	}, func(*steertest.Env) {
		fmt.Println(<-seen)
	}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"tenant": "acme"}}})
	// Output: acme
}

// A channel brings requests from outside of Kubernetes.
func ExampleChannel() {
	orders, seen := make(chan string), make(chan string, 1)
	reconcile := controller.Func[string](func(_ context.Context, order string) (controller.Result, error) {
		seen <- order
		return controller.Done(), nil
	})
	operate(func(m *manager.Manager) error {
		return controller.AddRequests(m, "orders", reconcile, controller.Typed(controller.From(controller.Channel(orders))))
	}, func(*steertest.Env) {
		orders <- "order-17"
		fmt.Println(<-seen)
	})
	// Output: order-17
}

// A poll requests what has changed since the last call.
func ExamplePoll() {
	seen := make(chan string, 1)
	reconcile := controller.Func[string](func(_ context.Context, bucket string) (controller.Result, error) {
		seen <- bucket
		return controller.Done(), nil
	})
	operate(func(m *manager.Manager) error {
		return controller.AddRequests(m, "buckets", reconcile,
			controller.Typed(controller.From(controller.Poll(time.Hour, func(context.Context) ([]string, error) {
				return []string{"photos"}, nil
			}))))
	}, func(*steertest.Env) {
		fmt.Println(<-seen)
	})
	// Output: photos
}

// Label requests the object that a label names.
func ExampleLabel() {
	var seen []controller.Request
	reconcile := controller.Func[controller.Request](func(_ context.Context, r controller.Request) (controller.Result, error) {
		seen = append(seen, r)
		return controller.Done(), nil
	})
	operate(func(m *manager.Manager) error {
		return controller.AddRequests(m, "shops", reconcile,
			controller.Typed(controller.Watches(controller.Label[*corev1.ConfigMap]("example.com/shop"))))
	}, func(*steertest.Env) {
		fmt.Println(seen)
	}, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a", Labels: map[string]string{"example.com/shop": "acme"}}})
	// Output: [default/acme]
}

// A WatchSet watches kinds that are known only when an object names them.
func ExampleWatchSet() {
	var watches controller.WatchSet[controller.Request]
	operate(func(m *manager.Manager) error {
		changes := controller.Map(func(_ context.Context, page client.Object) []controller.Request {
			if page.GetLabels()["page"] == "" {
				return nil
			}
			fmt.Println("changed:", page.GetName())
			return []controller.Request{controller.RequestFor(webOf())}
		})
		reconcile := controller.Func[*Web](func(context.Context, *Web) (controller.Result, error) {
			kind := corev1.SchemeGroupVersion.WithKind("ConfigMap") // as the spec says
			return controller.Done(), watches.Add(kind.String(), func() (controller.Source[controller.Request], error) {
				return controller.Kind(m.Cache(), client.Object(client.NewMetadata(kind)), changes)
			})
		})
		return controller.Add(m, reconcile, controller.From[controller.Request](&watches))
	}, func(env *steertest.Env) {
		env.Create(page("index"))
		env.Settled()
	}, webOf())
	// Output: changed: index
}
