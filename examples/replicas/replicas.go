// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas is a small whole operator: a Fleet is kept at its number of
// Pods. They have fixed names, so that what is missing is made and what is too
// many, from the highest number down, is deleted.
//
// The API is in api/v1, its generated manifests in config, the program in cmd.
package replicas

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer"
	"github.com/steer-dev/steer/controller"
	v1 "github.com/steer-dev/steer/examples/replicas/api/v1"
	"github.com/steer-dev/steer/manager"
)

// Operator keeps Fleets.
func Operator() steer.Operator {
	return steer.Operator{
		Name:   "replicas",
		Scheme: steer.Scheme{v1.AddToScheme, corev1.AddToScheme},
		Setup: func(_ context.Context, m *manager.Manager) error {
			return controller.Add(m, &Reconciler{}, controller.Owns[*corev1.Pod]())
		},
	}
}

// Reconciler keeps a Fleet at its number of Pods.
type Reconciler struct {
	pods controller.Children[*corev1.Pod]
}

// +kubebuilder:rbac:groups=example.com,resources=fleets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=example.com,resources=fleets/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile declares the Pods and reports how many there are.
func (r *Reconciler) Reconcile(ctx context.Context, fleet *v1.Fleet) (controller.Result, error) {
	pods := make([]*corev1.Pod, fleet.Spec.Replicas)
	for i := range pods {
		pods[i] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Name:   fmt.Sprintf("%s-%d", fleet.Name, i),
				Labels: map[string]string{"example.com/fleet": fleet.Name},
			},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: fleet.Spec.Image}}},
		}
	}
	if err := r.pods.Apply(ctx, fleet, pods); err != nil {
		return controller.Result{}, err
	}
	// The Pods are now what the server has.
	fleet.Status.Replicas = int32(len(pods))
	fleet.Status.Ready = 0
	for _, pod := range pods {
		if ready(pod) {
			fleet.Status.Ready++
		}
	}
	if count := fmt.Sprintf("%d of %d Pods are ready", fleet.Status.Ready, len(pods)); fleet.Status.Ready == fleet.Status.Replicas {
		controller.SetReady(fleet, &fleet.Status.Conditions, "AllReady", count)
	} else {
		controller.SetReconciling(fleet, &fleet.Status.Conditions, "PodsNotReady", count)
	}
	return controller.Done(), nil
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
