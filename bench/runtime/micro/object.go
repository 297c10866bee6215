// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/bench/runtime/item"
)

// form is how objects travel.
type form int

const (
	custom  form = iota // items, as JSON
	builtin             // Pods, as protobuf
)

// Object is what both sides cache.
type Object interface {
	metav1.Object
	runtime.Object
}

// Blank is an empty object of the form.
func (f form) blank() Object {
	if f == builtin {
		return &corev1.Pod{}
	}
	return &item.Item{}
}

// object number i: about 8 KB as JSON, a fifth of it managedFields, or a few
// hundred bytes.
func (f form) object(i, version int, small bool) Object {
	meta := metav1.ObjectMeta{
		Name: fmt.Sprintf("item-%06d", i), Namespace: fmt.Sprint("ns-", i%20), UID: "0b7f3a52-7a3b-4a55-9f1c-0f4f6f6d1f0e", ResourceVersion: fmt.Sprint(version),
		Labels: map[string]string{"app": fmt.Sprint("app-", i%50), "tier": "frontend", "team": "shop"},
	}
	settings, containers := 0, 0
	if !small {
		meta.Annotations = map[string]string{"checksum/config": "4a5b6c7d8e9f", "example.com/owner": "shop"}
		meta.ManagedFields = []metav1.ManagedFieldsEntry{managed("kubectl", 24), managed("operator", 12)}
		settings, containers = 80, 4
	}
	if f == custom {
		o := &item.Item{TypeMeta: metav1.TypeMeta{APIVersion: "bench.example.com/v1", Kind: "Item"}, ObjectMeta: meta}
		o.Spec = item.Spec{Replicas: int32(version % 1000), Image: "registry.example.com/shop/web:v1.2.3"}
		for s := range settings {
			o.Spec.Payload = append(o.Spec.Payload, item.Setting{Name: fmt.Sprint("SETTING_", s), Value: fmt.Sprint("some value of the usual length, ", i)})
		}
		o.Status.Phase = "Running"
		return o
	}
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: meta}
	pod.Spec = corev1.PodSpec{NodeName: fmt.Sprint("node-", i%100), ServiceAccountName: "web"}
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: fmt.Sprint("10.1.2.", version%250)}
	for c := range containers {
		container := corev1.Container{Name: fmt.Sprint("c", c), Image: "registry.example.com/shop/web:v1.2.3", Args: []string{"--listen=:8080", "--config=/etc/web/config.yaml"}}
		for s := range settings / containers {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprint("SETTING_", s), Value: fmt.Sprint("some value of the usual length, ", i)})
		}
		pod.Spec.Containers = append(pod.Spec.Containers, container)
	}
	return pod
}

func managed(by string, fields int) metav1.ManagedFieldsEntry {
	var set strings.Builder
	for f := range fields {
		fmt.Fprintf(&set, `,"f:setting_%d":{".":{},"f:value":{}}`, f)
	}
	return metav1.ManagedFieldsEntry{
		Manager: by, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{` + set.String()[1:] + `}}`)},
	}
}
