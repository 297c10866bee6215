// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// large is a widget of about 2 KB.
func large(b *testing.B, colour string) *unstructured.Unstructured {
	var ports strings.Builder
	for i := range 20 {
		fmt.Fprintf(&ports, "  - {name: port-%d, port: %d, note: %q}\n", i, i, strings.Repeat("n", 30))
	}
	u := widget(b, fmt.Sprintf("metadata: {labels: {app: x, tier: z}}\nspec:\n  colour: %s\n  tags: [a, b, c]\n  ports:\n%s", colour, ports.String()))
	u.SetUID("1")
	return u
}

// asServed returns the endpoints as the server uses them, with raw members.
func asServed(b *testing.B) (main, status *Manager) {
	main, status = endpoints(b)
	main.binding.RawMembers, status.binding.RawMembers = true, true
	return main, status
}

// body returns the object as it is decoded from a request, without shared memory.
func body(u *unstructured.Unstructured) *unstructured.Unstructured {
	content := maps.Clone(u.Object)
	content["metadata"] = maps.Clone(content["metadata"].(map[string]any))
	return &unstructured.Unstructured{Object: content}
}

func BenchmarkCreate(b *testing.B) {
	m, _ := asServed(b)
	obj := rawCopy(large(b, "red"))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Update(b.Context(), empty(), body(obj), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	m, _ := asServed(b)
	live := rawCopy(mustUpdate(b, m, empty(), large(b, "red"), "creator"))
	next := rawCopy(large(b, "blue"))
	next.Object["metadata"].(map[string]any)["managedFields"] = live.Object["metadata"].(map[string]any)["managedFields"]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Update(b.Context(), live, body(next), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatusUpdate(b *testing.B) {
	m, status := asServed(b)
	live := rawCopy(mustUpdate(b, m, empty(), large(b, "red"), "creator"))
	next := body(live)
	next.Object["status"] = wire.RawValue(`{"ready":1}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := status.Update(b.Context(), live, body(next), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	m, _ := asServed(b)
	configuration, changed := large(b, "red"), large(b, "blue")
	integers(configuration.Object)
	integers(changed.Object)
	applied, err := m.Apply(b.Context(), empty(), configuration, "bench", false)
	if err != nil {
		b.Fatal(err)
	}
	live := rawCopy(decoded(applied).(*unstructured.Unstructured))
	for name, next := range map[string]*unstructured.Unstructured{"change": changed, "noop": configuration} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Apply(b.Context(), live, next, "bench", false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTypedUpdate(b *testing.B) {
	kind := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	s := new(spec.Schema).Typed("object", "").SetProperty("data", *spec.MapProperty(spec.StringProperty()))
	m := New(Endpoint{Kind: kind, New: func() Object { return &corev1.ConfigMap{} }, Types: FromOpenAPI(func() map[string]*spec.Schema {
		return map[string]*spec.Schema{"ConfigMap": Kind(kind, s), ObjectMetaName: ObjectMeta()}
	})})
	data := map[string]string{}
	for i := range 20 {
		data[fmt.Sprint("key-", i)] = strings.Repeat("v", 80)
	}
	live, err := m.Update(b.Context(), &corev1.ConfigMap{}, &corev1.ConfigMap{Data: data}, "creator")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		next := live.DeepCopyObject().(*corev1.ConfigMap)
		next.Data["key-1"] = "w"
		if _, err := m.Update(b.Context(), live, next, "bench"); err != nil {
			b.Fatal(err)
		}
	}
}
