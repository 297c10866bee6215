// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

func TestAnEncodedObjectIsKeptOnlyWhileHandlersAreTold(t *testing.T) {
	t.Parallel()
	k := NewPacking(Place{GVK: corev1.SchemeGroupVersion.WithKind("Pod")}, func() client.Object { return &corev1.Pod{} })
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "a"},
	}
	batch := []store.Delta{{Op: store.Put, Object: pod}, {Op: store.ListEnd}}
	k.PackAll(batch)
	if Whole(batch[0].Object) != client.Object(pod) {
		t.Error("handlers are told of another object")
	}
	Settle(batch)
	again := Whole(batch[0].Object)
	if again == client.Object(pod) {
		t.Fatal("the object itself is kept")
	}
	if !equality.Semantic.DeepEqual(again, pod) {
		t.Errorf("%+v was encoded, %+v came back", pod, again)
	}
	if got := batch[0].Object.GetLabels()["app"]; got != "web" {
		t.Errorf("the label is %q", got)
	}
}
