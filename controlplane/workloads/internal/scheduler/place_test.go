// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"iter"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
)

// world is a fixed cluster.
type world struct {
	nodes []*scheduler.Node
	pods  []scheduler.Bound
}

func (w *world) Nodes() []*scheduler.Node { return w.nodes }

func (w *world) Used(node string) (u scheduler.Usage) {
	for _, p := range w.pods {
		if p.Node == node {
			u.Add(p.Demand, 1)
		}
	}
	return u
}

func (w *world) Bound(namespace string) iter.Seq[scheduler.Bound] {
	return slices.Values(slices.DeleteFunc(slices.Clone(w.pods), func(p scheduler.Bound) bool { return namespace != "" && p.Namespace != namespace }))
}

func (w *world) Repelling() iter.Seq[scheduler.Bound] {
	return slices.Values(slices.DeleteFunc(slices.Clone(w.pods), func(p scheduler.Bound) bool { return !p.Demand.Repels() }))
}

func (w *world) NamespaceLabels(string) labels.Set { return labels.Set{} }

func demand(t *testing.T, spec string) *scheduler.Demand {
	t.Helper()
	var s corev1.PodSpec
	if err := yaml.UnmarshalStrict([]byte(spec), &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Containers) == 0 {
		s.Containers = []corev1.Container{{Name: "c"}}
	}
	return new(scheduler.Pool).Take(&s)
}

// TestPlace places one Pod into a cluster of three nodes of 1 CPU: a runs a Pod of 500m with
// the label app=web and the port 80 of the host, b has a taint, and c a label.
func TestPlace(t *testing.T) {
	t.Parallel()
	room := scheduler.Resources{corev1.ResourceCPU: 1000}
	w := &world{
		nodes: []*scheduler.Node{
			{Name: "a", Labels: map[string]string{"zone": "1"}, Allocatable: room, Pods: 10},
			{Name: "b", Labels: map[string]string{"zone": "2"}, Allocatable: room, Pods: 10, Taints: []corev1.Taint{{Key: "reserved", Effect: corev1.TaintEffectNoSchedule}}},
			{Name: "c", Labels: map[string]string{"zone": "3", "disk": "fast"}, Allocatable: room, Pods: 10},
		},
		pods: []scheduler.Bound{{Namespace: "default", Labels: map[string]string{"app": "web"}, Node: "a", Demand: demand(t,
			"containers: [{name: c, resources: {requests: {cpu: 500m}}, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]}]")}},
	}
	const web = "labelSelector: {matchLabels: {app: web}}, topologyKey: zone"
	for _, c := range []struct{ name, spec, node, failure string }{
		{"least requested", "{}", "c", ""},
		{"tolerated taint", "{nodeSelector: {zone: '2'}, tolerations: [{key: reserved, operator: Exists}]}", "b", ""},
		{"taint", "{nodeSelector: {zone: '2'}}", "", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."},
		{"node selector", "{nodeSelector: {disk: fast}}", "c", ""},
		{"too much CPU", "{containers: [{name: c, resources: {requests: {cpu: 2}}}]}", "", "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."},
		{"room on one node", "{containers: [{name: c, resources: {requests: {cpu: 600m}}}]}", "c", ""},
		{"port of the host", "{containers: [{name: c, ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]}]}", "c", ""},
		{"affinity", "{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{" + web + "}]}}}", "a", ""},
		{"anti-affinity", "{affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{" + web + "}]}}}", "c", ""},
		{"preferred node", "{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: zone, operator: In, values: ['1']}]}}]}}}", "a", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			node, failure := scheduler.Place(w, &scheduler.Pod{Namespace: "default", Labels: map[string]string{"app": "web"}, Demand: demand(t, c.spec)})
			if node != c.node || failure != c.failure {
				t.Errorf("node %q, %q\nwant %q, %q", node, failure, c.node, c.failure)
			}
		})
	}
}

func TestPlaceWithoutNodes(t *testing.T) {
	t.Parallel()
	if _, failure := scheduler.Place(&world{}, &scheduler.Pod{Demand: demand(t, "{}")}); failure != "no nodes available to schedule pods" {
		t.Errorf("it fails with %q", failure)
	}
}

func TestUsageTakesBackWhatItAdds(t *testing.T) {
	t.Parallel()
	var u scheduler.Usage
	d := demand(t, "containers: [{name: c, resources: {requests: {cpu: 500m}}, ports: [{containerPort: 80, hostPort: 80}]}]")
	u.Add(d, 1)
	if u.Pods != 1 || u.Requests[corev1.ResourceCPU] != 500 || len(u.Ports) != 1 {
		t.Errorf("with one Pod it is %+v", u)
	}
	u.Add(d, -1)
	if u.Pods != 0 || len(u.Requests) != 0 || len(u.Ports) != 0 {
		t.Errorf("without it is %+v", u)
	}
}

func TestPoolSharesEqualDemands(t *testing.T) {
	t.Parallel()
	var pool scheduler.Pool
	spec := func(cpu string) *corev1.PodSpec {
		var s corev1.PodSpec
		if err := yaml.Unmarshal([]byte("containers: [{name: c, resources: {requests: {cpu: "+cpu+"}}}]"), &s); err != nil {
			t.Fatal(err)
		}
		return &s
	}
	a, b, other := pool.Take(spec("1")), pool.Take(spec("1000m")), pool.Take(spec("2"))
	if a != b || a == other {
		t.Error("equal demands are not shared, or unequal ones are")
	}
	pool.Release(a)
	pool.Release(b)
	if holders := pool.Holders(); len(holders) != 1 {
		t.Errorf("%d demands are held, want the one in use", len(holders))
	}
}
