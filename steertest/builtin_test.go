// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

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

// looker looks at Pods and does nothing.
type looker struct{}

func (looker) Reconcile(context.Context, *corev1.Pod) (controller.Result, error) {
	return controller.Done(), nil
}

func TestTheStatusOfBuiltInKindsIsLeftToTheirControllers(t *testing.T) {
	t.Parallel()
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	env := steertest.New(t, steertest.Options{Scheme: scheme, Setup: func(_ context.Context, m *manager.Manager) error {
		return controller.Add(m, looker{})
	}})
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "nginx"}}},
	}
	env.Create(pod)
	env.Settled()
	after := steertest.Wait(env, "default/web", func(*corev1.Pod) bool { return true })
	if after.ResourceVersion != pod.ResourceVersion {
		t.Errorf("looking changed the Pod: status %+v", after.Status)
	}
}
