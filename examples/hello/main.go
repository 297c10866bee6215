// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hello is the smallest useful operator: every Namespace has a
// ConfigMap named welcome, and gets it back when it is changed or deleted.
package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager"
)

type greeter struct {
	welcome controller.Children[*corev1.ConfigMap]
}

func (g *greeter) Reconcile(ctx context.Context, ns *corev1.Namespace) (controller.Result, error) {
	return controller.Done(), g.welcome.Apply(ctx, ns, []*corev1.ConfigMap{{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns.Name, Name: "welcome"},
		Data:       map[string]string{"text": "Hello, " + ns.Name},
	}})
}

func main() {
	fmt.Println("Try: kubectl get configmaps --all-namespaces; kubectl delete configmap welcome")
	steer.Main(steer.Operator{
		Name:   "hello",
		Scheme: steer.Scheme{corev1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, &greeter{}, controller.Owns[*corev1.ConfigMap]())
		},
	})
}
