// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workloads_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// BenchmarkSchedule measures what it takes to try a Pod again that fits on no node, in CPU time of the
// process: a thousand such Pods wait, and a node changes.
func BenchmarkSchedule(b *testing.B) {
	for _, nodes := range []int{1, 100} {
		b.Run(fmt.Sprint(nodes, "-nodes"), func(b *testing.B) {
			c := start(b, controlplane.Options{ManualControllers: true, Workloads: &workloads.Options{NoNode: true}})
			for i := range nodes {
				c.node(fmt.Sprint("n", i), map[string]string{corev1.LabelTopologyZone: fmt.Sprint(i % 3)})
			}
			const waiting = 1000
			for i := range waiting {
				p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: "default"}, Spec: template("p").Spec}
				p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("65")}
				c.Create(p)
			}
			c.settle()
			var spent time.Duration
			n := 0
			for b.Loop() {
				n++
				c.changeNode("n0", func(node *corev1.Node) { node.Labels["round"] = fmt.Sprint(n) })
				began := processorTime(b)
				c.settle()
				spent += processorTime(b) - began
			}
			b.ReportMetric(float64(spent.Nanoseconds())/float64(n)/waiting, "cpu-ns/try")
		})
	}
}
