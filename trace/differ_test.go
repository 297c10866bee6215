// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/trace"
)

func pod() *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: "web", ResourceVersion: "1", Generation: 1,
			Labels:            map[string]string{"app": "web"},
			CreationTimestamp: metav1.NewTime(time.Unix(100, 0)),
			ManagedFields:     []metav1.ManagedFieldsEntry{{Manager: "a"}},
		},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "one"}, {Name: "b", Image: "two"}}},
	}
	for i := range p.Spec.Containers {
		p.Spec.Containers[i].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("1"), "memory": resource.MustParse("1Gi")}
		for j := range 8 {
			p.Spec.Containers[i].Env = append(p.Spec.Containers[i].Env, corev1.EnvVar{Name: fmt.Sprint("E", j), Value: "v"})
		}
	}
	return p
}

func TestDifferNamesTheChangedFields(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"nothing":     {func(*corev1.Pod) {}, ""},
		"noise":       {func(p *corev1.Pod) { p.ResourceVersion, p.Generation, p.ManagedFields = "2", 2, nil }, ""},
		"scalar":      {func(p *corev1.Pod) { p.Status.Phase = "Running" }, "status.phase"},
		"label":       {func(p *corev1.Pod) { p.Labels["app.kubernetes.io/name"] = "x" }, "metadata.labels[app.kubernetes.io/name]"},
		"element":     {func(p *corev1.Pod) { p.Spec.Containers[1].Image = "x" }, "spec.containers[1].image"},
		"length":      {func(p *corev1.Pod) { p.Spec.Containers = p.Spec.Containers[:1] }, "spec.containers"},
		"pointer":     {func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }, "metadata.deletionTimestamp"},
		"quantity":    {func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits["cpu"] = resource.MustParse("2") }, "spec.containers[0].resources.limits.cpu"},
		"equal forms": {func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(time.Unix(100, 0).UTC()) }, ""},
		"many": {func(p *corev1.Pod) {
			p.Labels["a"], p.Labels["b"], p.Labels["c"], p.Labels["d"], p.Labels["e"] = "", "", "", "", ""
		}, "metadata.labels[a],metadata.labels[b],metadata.labels[c],metadata.labels[d],..."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var d trace.Differ
			before, after := pod(), pod()
			test.change(after)
			if got := d.Changed(before, after); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestDifferLeavesAFieldOut(t *testing.T) {
	t.Parallel()
	d := trace.Differ{Without: "status"}
	before, after := pod(), pod()
	after.Status.Phase = "Running"
	if got := d.Changed(before, after); got != "" {
		t.Errorf("got %q", got)
	}
	after.Spec.NodeName = "n"
	if got := d.Changed(before, after); got != "spec.nodeName" {
		t.Errorf("got %q", got)
	}
}

func TestDifferReadsUnstructuredObjects(t *testing.T) {
	t.Parallel()
	object := func(replicas int64, rv string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"metadata": map[string]any{"name": "x", "resourceVersion": rv},
			"spec":     map[string]any{"replicas": replicas, "list": []any{"a", replicas}},
		}}
	}
	var d trace.Differ
	if got := d.Changed(object(1, "1"), object(2, "2")); got != "spec.list[1],spec.replicas" {
		t.Errorf("got %q", got)
	}
	if got := d.Changed(object(1, "1"), object(1, "2")); got != "" {
		t.Errorf("got %q", got)
	}
	if got := d.Changed(object(1, "1"), pod()); got != "" {
		t.Errorf("got %q for different types", got)
	}
	if got := d.Changed((*corev1.Pod)(nil), pod()); got != "" {
		t.Errorf("got %q for nil", got)
	}
	if got := d.Changed(nil, nil); got != "" {
		t.Errorf("got %q for nothing", got)
	}
}

func BenchmarkDiffer(b *testing.B) {
	var d trace.Differ
	for name, change := range map[string]func(*corev1.Pod){
		"same":  func(*corev1.Pod) {},
		"phase": func(p *corev1.Pod) { p.Status.Phase = "Running" },
	} {
		b.Run(name, func(b *testing.B) {
			before, after := pod(), pod()
			change(after)
			b.ReportAllocs()
			for b.Loop() {
				d.Changed(before, after)
			}
		})
	}
}
