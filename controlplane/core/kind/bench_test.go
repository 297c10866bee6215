// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"reflect"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/apply"
)

// BenchmarkFirstWrite is what the first write of a kind costs a process: its
// types are described and a tracker is made.
func BenchmarkFirstWrite(b *testing.B) {
	for name, obj := range map[string]apply.Object{
		"Deployment": &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"a": "b"}}},
		"ConfigMap":  &corev1.ConfigMap{Data: map[string]string{"a": "b"}},
	} {
		b.Run(name, func(b *testing.B) {
			t := reflect.TypeOf(obj).Elem()
			for b.Loop() {
				f := NewFamily()
				gvk := corev1.SchemeGroupVersion.WithKind(name)
				f.add(gvk, t)
				fresh := func() apply.Object { return reflect.New(t).Interface().(apply.Object) }
				m := apply.New(apply.Endpoint{Kind: gvk, Types: f.types, New: fresh})
				if _, err := m.Update(b.Context(), fresh(), obj.DeepCopyObject().(apply.Object), "bench"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
