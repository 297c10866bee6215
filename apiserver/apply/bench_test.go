// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// large is a widget of about 2 KB.
func large(b *testing.B, colour string) *unstructured.Unstructured {
	var ports strings.Builder
	for i := range 20 {
		fmt.Fprintf(&ports, "  - {name: port-%d, port: %d, note: %q}\n", i, i, strings.Repeat("n", 30))
	}
	u := widget(b, fmt.Sprintf("metadata: {labels: {app: x, tier: z}}\nspec:\n  colour: %s\n  tags: [a, b, c]\n  ports:\n%s", colour, ports.String()))
	u.SetUID("1")
	integers(u.Object) // as the server's parser reads them
	return u
}

func BenchmarkCreate(b *testing.B) {
	m, _ := endpoints(b)
	obj, none := underWay(large(b, "red")), underWay(empty())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Update(b.Context(), none, obj.Copy(), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdate(b *testing.B) {
	m, _ := endpoints(b)
	live := underWay(mustUpdate(b, m, empty(), large(b, "red"), "creator"))
	next := underWay(large(b, "blue"))
	doc.SetManagedFields(next, doc.ManagedFields(live))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Update(b.Context(), live, next.Copy(), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStatusUpdate(b *testing.B) {
	m, status := endpoints(b)
	live := underWay(mustUpdate(b, m, empty(), large(b, "red"), "creator"))
	next := live.Copy()
	next.SetContent(map[string]any{"status": map[string]any{"ready": int64(1)}}, "status")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := status.Update(b.Context(), live, next.Copy(), "bench"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkApply(b *testing.B) {
	m, _ := endpoints(b)
	configuration, changed := underWay(large(b, "red")), underWay(large(b, "blue"))
	live, err := m.Apply(b.Context(), underWay(empty()), configuration, "bench", false)
	if err != nil {
		b.Fatal(err)
	}
	for name, next := range map[string]*doc.Doc{"change": changed, "noop": configuration} {
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
