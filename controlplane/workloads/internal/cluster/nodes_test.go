// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/storage"
)

func TestNodeIsRead(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	w.Put(t, cluster.Nodes, "n", `
metadata: {labels: {topology.kubernetes.io/zone: z}}
spec: {unschedulable: true, taints: [{key: a, effect: NoExecute}, {key: b, effect: NoSchedule}]}
status:
  allocatable: {cpu: "2", pods: "7"}
  addresses: [{type: Hostname, address: h}, {type: InternalIP, address: 10.0.0.1}]
  conditions: [{type: MemoryPressure, status: "True"}, {type: Ready, status: "False", lastHeartbeatTime: "2026-01-01T00:00:01Z"}]`)
	o := w.Memory.Index.Node("n")
	same(t, "the room", []any{"n", true, int64(2000), int64(7)}, []any{o.Room.Name, o.Room.Unschedulable, o.Room.Allocatable[corev1.ResourceCPU], o.Room.Pods})
	same(t, "the health", []any{corev1.ConditionFalse, []string{corev1.TaintNodeMemoryPressure, corev1.TaintNodeNotReady}, w.Now.Add(time.Second)}, []any{o.Health, o.Ills, o.Heartbeat.UTC()})
	same(t, "the rest", []any{"10.0.0.1", "/z", false}, []any{o.HostAddress, o.Zone(), o.Simulated})
	same(t, "taints of an effect", []corev1.Taint{{Key: "a", Effect: "NoExecute"}}, o.TaintsOf(corev1.TaintEffectNoExecute))
	w.Put(t, cluster.Nodes, cluster.NodeName, "{}")
	w.Put(t, cluster.Nodes, "o", "metadata: {labels: {steer.dev/simulated: 'true', topology.kubernetes.io/region: r}}")
	var got []string
	for _, n := range w.Memory.Index.Nodes() {
		got = append(got, fmt.Sprint(n.Key.Name, " ", n.Simulated, " ", n.Zone()))
	}
	same(t, "all nodes", []string{"n false /z", "o true r/", "steer-node true "}, got)
	w.Memory.Index.Remove(cluster.NodeKey())
	same(t, "the nodes that are left", 2, len(w.Memory.Index.Nodes()))
	same(t, "a node that is not there", true, w.Memory.Index.Node("x") == nil)
	same(t, "the Lease of a node", storage.Key{Bucket: cluster.Leases, Name: "kube-node-lease/n"}, cluster.LeaseOf("n"))
}

func TestNodeIllsFollowFromConditions(t *testing.T) {
	t.Parallel()
	for condition, want := range map[string]string{
		"Ready True": "", "Ready False": corev1.TaintNodeNotReady, "Ready Unknown": corev1.TaintNodeUnreachable,
		"MemoryPressure True": corev1.TaintNodeMemoryPressure, "MemoryPressure False": "", "DiskPressure True": corev1.TaintNodeDiskPressure,
		"PIDPressure True": corev1.TaintNodePIDPressure, "NetworkUnavailable True": corev1.TaintNodeNetworkUnavailable, "NetworkUnavailable Unknown": "",
	} {
		w := clustertest.New()
		kind, status, _ := strings.Cut(condition, " ")
		w.Put(t, cluster.Nodes, "n", "status: {conditions: [{type: "+kind+", status: '"+status+"'}]}")
		same(t, condition, want, strings.Join(w.Memory.Index.Node("n").Ills, " "))
	}
}

func TestNodesThatRunPodsAlike(t *testing.T) {
	t.Parallel()
	const manifest = "metadata: {labels: {a: b}}\nspec: {taints: [{key: t, value: v, effect: NoSchedule}]}\nstatus: {allocatable: {cpu: '1'}, conditions: [{type: Ready, status: 'True', reason: R}]}"
	node := func(manifest string) *cluster.Object {
		w := clustertest.New()
		w.Put(t, cluster.Nodes, "n", manifest)
		return w.Memory.Index.Node("n")
	}
	before := node(manifest)
	for change, want := range map[[2]string]bool{
		{"", ""}: true, {"reason: R", "lastHeartbeatTime: '2026-01-01T00:00:00Z'"}: true, {"{key: t", "{timeAdded: '2026-01-01T00:00:00Z', key: t"}: true,
		{"a: b", "a: c"}: false, {"spec: {", "spec: {unschedulable: true, "}: false, {"key: t", "key: u"}: false, {"value: v", "value: w"}: false,
		{"NoSchedule", "NoExecute"}: false, {"cpu: '1'", "cpu: '2'"}: false, {"'True'", "'False'"}: false, {"{type: Ready", "{type: DiskPressure, status: 'True'}, {type: Ready"}: false,
	} {
		same(t, fmt.Sprint(change), want, before.SameNode(node(strings.Replace(manifest, change[0], change[1], 1))))
	}
	var none *cluster.Object
	same(t, "none", []bool{true, false, false}, []bool{none.SameNode(nil), none.SameNode(before), before.SameNode(nil)})
}

func TestNodeRepelsWhatDoesNotTolerateIt(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	w.Put(t, cluster.Nodes, "n", "spec: {taints: [{key: a, effect: NoSchedule}]}")
	n := w.Memory.Index.Node("n")
	tolerates := []corev1.Toleration{{Key: "a", Operator: corev1.TolerationOpExists}}
	for what, got := range map[string]bool{
		"not tolerated":          n.Repels(nil, corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule),
		"another is tolerated":   n.Repels([]corev1.Toleration{{Key: "b", Operator: corev1.TolerationOpExists}}, corev1.TaintEffectNoSchedule),
		"not: of another effect": n.Repels(nil, corev1.TaintEffectNoExecute),
		"not: tolerated":         n.Repels(tolerates, corev1.TaintEffectNoSchedule),
	} {
		same(t, what, !strings.HasPrefix(what, "not:"), got)
	}
}
