// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
	"github.com/steer-dev/steer/storage"
)

// patches renders requests that patch objects, and what they say.
func patches(t *testing.T, requests []step.Request) string {
	t.Helper()
	var out strings.Builder
	for _, r := range requests {
		var body any
		if err := json.Unmarshal(r.Body, &body); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s ...%s %v\n", r.Method, r.Path[strings.LastIndex(r.Path, "/"):], body)
	}
	return out.String()
}

func TestIndexReadsPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.Pods, "p", `
metadata:
  labels: {a: b}
  generation: 3
  finalizers: [batch.kubernetes.io/job-tracking]
  deletionTimestamp: "2026-01-01T00:00:00Z"
  deletionGracePeriodSeconds: 30
  annotations: {batch.kubernetes.io/job-completion-index: "4"}
  ownerReferences: [{apiVersion: v1, kind: Node, name: node, uid: node}, {apiVersion: batch/v1, kind: Job, name: j, uid: j, controller: true}]
spec:
  hostname: h
  subdomain: s
  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: metadata.name, operator: In, values: [node7]}]}]}}}
status:
  observedGeneration: 2
  phase: Failed
  podIP: 10.244.0.9
  startTime: "2026-01-01T00:00:01Z"
  conditions: [{type: Other, status: "False"}, {type: Ready, status: "True", lastTransitionTime: "2026-01-01T00:00:02Z"}]
  containerStatuses:
  - {restartCount: 2, state: {terminated: {finishedAt: "2026-01-01T00:00:05Z"}}}
  - {restartCount: 1, state: {terminated: {finishedAt: "2026-01-01T00:00:04Z"}}}
  - {restartCount: 0, state: {running: {}}}`)
	o := w.Memory.Index.Objects[key]
	at := func(second int) time.Time { return w.Now.Add(time.Duration(second) * time.Second) }
	same(t, "identity", []any{key, "p", map[string]string{"a": "b"}, storage.Revision(1), at(-60)}, []any{o.Key, string(o.UID), o.Labels, o.Created, o.CreatedAt.UTC()})
	same(t, "deletion", []any{true, int64(30), false}, []any{o.Deleting, o.Grace, o.Active()})
	same(t, "the Job", []any{cluster.Owner{Key: storage.Key{Bucket: cluster.Jobs, Name: "default/j"}, UID: "j"}, 4, true}, []any{o.Owner, o.Ordinal, o.Tracked})
	same(t, "where it is", []string{"", "node7", "h", "s", "10.244.0.9"}, []string{o.Node, o.Target, o.Hostname, o.Subdomain, o.Address})
	same(t, "status", []any{corev1.PodFailed, true, true, int32(3), int64(3), int64(2)}, []any{o.Phase, o.Ended(), o.Ready, o.Restarts, o.Generation, o.Observed})
	same(t, "times", []time.Time{at(1), at(2), at(5)}, []time.Time{o.StartedAt.UTC(), o.ReadyAt.UTC(), o.FinishedAt.UTC()})
	other := w.Memory.Index.Objects[w.Put(t, cluster.Pods, "q", "{spec: {nodeName: node}}")]
	same(t, "a Pod without all that", []any{"node", "node", -1, false, false}, []any{other.Node, other.Target, other.Ordinal, other.Tracked, other.Ready})
}

func TestIndexReadsTheOnlyNodeOfAnAffinity(t *testing.T) {
	t.Parallel()
	for affinity, want := range map[string]string{
		"": "",
		"[{matchFields: [{key: metadata.name, operator: In, values: [a]}]}]":                                                                   "a",
		"[{matchFields: [{key: metadata.name, operator: In, values: [a, b]}]}]":                                                                "",
		"[{matchFields: [{key: metadata.name, operator: NotIn, values: [a]}]}]":                                                                "",
		"[{matchFields: [{key: metadata.uid, operator: In, values: [a]}]}]":                                                                    "",
		"[{matchFields: [{key: metadata.name, operator: In, values: [a]}]}, {matchFields: [{key: metadata.name, operator: In, values: [b]}]}]": "",
	} {
		w := clustertest.New()
		manifest := "{}"
		if affinity != "" {
			manifest = "spec: {affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: " + affinity + "}}}}"
		}
		same(t, affinity, want, w.Memory.Index.Objects[w.Put(t, cluster.Pods, "p", manifest)].Target)
	}
}

func TestIndexKnowsTheKindsOfOwners(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"v1 ReplicationController": cluster.Controllers, "v1 Service": cluster.Services, "v1 Endpoints": cluster.Endpoints, "apps/v1 ReplicaSet": cluster.ReplicaSets,
		"apps/v1beta1 Deployment": cluster.Deployments, "apps/v1 StatefulSet": cluster.StatefulSets, "apps/v1 DaemonSet": cluster.DaemonSets,
		"batch/v1 Job": cluster.Jobs, "batch/v1 CronJob": cluster.CronJobs, "example.com/v1 Job": "",
	} {
		w := clustertest.New()
		apiVersion, name, _ := strings.Cut(kind, " ")
		key := w.Put(t, cluster.Pods, "p", "metadata: {ownerReferences: [{apiVersion: "+apiVersion+", kind: "+name+", name: o, uid: o, controller: true}]}")
		same(t, kind, storage.Key{Bucket: want, Name: "default/o"}, w.Memory.Index.Objects[key].Owner.Key)
	}
}

func TestIndexFindsAdopters(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	var want []storage.Key
	for _, bucket := range cluster.Buckets() {
		key := w.Put(t, bucket, "x", "{}")
		if slices.Contains([]string{cluster.ReplicaSets, cluster.Controllers, cluster.Deployments, cluster.StatefulSets, cluster.DaemonSets, cluster.Jobs}, bucket) {
			want = append(want, key)
		}
	}
	slices.SortFunc(want, step.CompareKeys)
	same(t, "what adopts", want, w.Memory.Index.Adopters("default"))
	w.Memory.Index.Remove(want[0])
	same(t, "what adopts once one has gone", want[1:], w.Memory.Index.Adopters("default"))
	same(t, "what adopts in another namespace", 0, len(w.Memory.Index.Adopters("other")))
	same(t, "buckets in the index", []bool{true, true, false, false}, []bool{cluster.Follows(cluster.Pods), cluster.Follows(cluster.EndpointSlices), cluster.Follows(cluster.Endpoints), cluster.Follows(cluster.Leases)})
}

func TestIndexReadsServicesAndVolumes(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	x := w.Memory.Index
	for _, tt := range []struct {
		manifest string
		balanced bool
		ingress  string
	}{
		{"spec: {type: ClusterIP}", false, ""},
		{"spec: {type: LoadBalancer}", true, ""},
		{"spec: {type: LoadBalancer, loadBalancerClass: mine}", false, ""},
		{"spec: {type: LoadBalancer}\nstatus: {loadBalancer: {ingress: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]}}", true, "10.0.0.1"},
		{"status: {loadBalancer: {ingress: [{}, {hostname: h}]}}", false, "h"},
	} {
		s := x.Objects[w.Put(t, cluster.Services, "s", tt.manifest)]
		same(t, tt.manifest, []any{tt.balanced, tt.ingress}, []any{s.Balanced, s.Ingress})
		same(t, "addresses with "+tt.manifest, []bool{tt.ingress == "10.0.0.1", tt.ingress == "h"}, []bool{x.HasIngress("10.0.0.1"), x.HasIngress("h")})
	}
	w.Put(t, cluster.Pods, "p", "{}")
	same(t, "the Pods of a Service without a selector", 0, len(x.SelectedBy(x.Objects[w.Put(t, cluster.Services, "s", "{}")])))
	v := x.Objects[w.Put(t, cluster.Volumes, "v", "spec: {claimRef: {namespace: default, name: c, uid: claim}}")]
	same(t, "the claim of a volume", cluster.Owner{Key: storage.Key{Bucket: cluster.Claims, Name: "default/c"}, UID: "claim"}, v.Owner)
	if got := x.ChildrenOf("claim", cluster.Volumes); len(got) != 1 || got[0] != v {
		t.Errorf("the volumes of a claim are %v", got)
	}
	v = x.Objects[w.Put(t, cluster.Volumes, "v", "{}")]
	same(t, "the claim of a free volume", cluster.Owner{}, v.Owner)
}

func TestIndexDropsWhatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	key := w.Put(t, cluster.Pods, "p", "spec: {nodeName: node}")
	for _, value := range []string{"[", "{}", `{"metadata":{"name":"p"}}`} {
		if w.Memory.Index.Put(&storage.Record{Key: key, Value: []byte(value)}) {
			t.Errorf("%s is in the index", value)
		}
		same(t, "what is left", []any{0, 0}, []any{len(w.Memory.Index.Objects), w.Memory.Index.CountOn("node")})
	}
}

func TestIndexGivesTheLowestFreeAddress(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	x := w.Memory.Index
	key := func(n int) storage.Key { return storage.Key{Bucket: cluster.Pods, Name: fmt.Sprintf("default/p%d", n)} }
	w.Put(t, cluster.Pods, "p0", "status: {podIP: 10.244.0.3}")
	w.Put(t, cluster.Pods, "foreign", "status: {podIP: 10.1.0.4}")
	w.Put(t, cluster.Pods, "six", "status: {podIP: 'fd00::2'}")
	var got []string
	for n := range 3 {
		got = append(got, x.Address(key(n)))
	}
	same(t, "addresses", []string{"10.244.0.3", "10.244.0.2", "10.244.0.4"}, got)
	same(t, "the address of a Pod that has got one", "10.244.0.4", x.Address(key(2)))
	x.Remove(key(0))
	same(t, "an address that was given back", "10.244.0.3", x.Address(key(7)))
	same(t, "the next", "10.244.0.5", x.Address(key(8)))
	x.Remove(storage.Key{Bucket: cluster.Pods, Name: "default/foreign"})
	same(t, "the next after a Pod with an address of another network has gone", "10.244.0.6", x.Address(key(9)))
	w.Put(t, cluster.Pods, "high", "status: {podIP: 10.245.1.2}")
	same(t, "the address of a Pod with a high one", "10.245.1.2", x.Address(storage.Key{Bucket: cluster.Pods, Name: "default/high"}))
}

func TestIndexReadsDemandsAgainWhenTheSpecMayHaveChanged(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	x := w.Memory.Index
	put := func(generation int, cpu string) int64 {
		w.Put(t, cluster.Pods, "p", fmt.Sprintf("metadata: {generation: %d}\nspec: {nodeName: node, containers: [{name: c, resources: {requests: {cpu: %s}}}]}", generation, cpu))
		return x.Used("node").Requests[corev1.ResourceCPU]
	}
	same(t, "of a new Pod", int64(1000), put(1, "1"))
	same(t, "of the same generation", int64(1000), put(1, "2"))
	same(t, "of the next", int64(2000), put(2, "2"))
	same(t, "of none", int64(3000), put(0, "3"))
	same(t, "of none again", int64(4000), put(0, "4"))
}

func TestIndexYieldsBoundPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	x := w.Memory.Index
	const repels = "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: z, labelSelector: {}}]}}"
	w.Put(t, cluster.Pods, "on1", "metadata: {labels: {a: b}}\nspec: {nodeName: n1}")
	w.Put(t, cluster.Pods, "on2", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\nspec: {nodeName: n2, "+repels+"}")
	w.Put(t, cluster.Pods, "ended", "spec: {nodeName: n1, "+repels+"}\nstatus: {phase: Failed}")
	w.Put(t, cluster.Pods, "waits", "spec: {"+repels+"}")
	list := func(yielded func(func(scheduler.Bound) bool)) []string {
		var out []string
		for b := range yielded {
			out = append(out, fmt.Sprint(b.Namespace, " ", b.Node, " ", b.Deleting, " ", b.Labels))
		}
		slices.Sort(out)
		return out
	}
	both := []string{"default n1 false map[a:b]", "default n2 true map[]"}
	same(t, "Pods of all namespaces", both, list(x.Bound("")))
	same(t, "Pods of a namespace", both, list(x.Bound("default")))
	same(t, "Pods of another", 0, len(list(x.Bound("other"))))
	same(t, "Pods that keep others away", both[1:], list(x.Repelling()))
	for range x.Bound("") {
		break // ends the iteration
	}
	same(t, "Pods without a node", []storage.Key{{Bucket: cluster.Pods, Name: "default/waits"}}, slices.Collect(x.Unbound()))
	x.Remove(storage.Key{Bucket: cluster.Pods, Name: "default/on2"})
	same(t, "Pods that keep others away once one has gone", 0, len(list(x.Repelling())))
}

func TestIndexOrdersEndedPods(t *testing.T) {
	t.Parallel()
	w := clustertest.New()
	for i, name := range []string{"b", "a", "evicted-late", "evicted"} {
		w.Now = w.Now.Add(time.Duration(i/2) * -time.Hour)
		reason := map[bool]string{true: "Evicted", false: "Error"}[strings.HasPrefix(name, "evicted")]
		w.Put(t, cluster.Pods, name, "status: {phase: Failed, reason: "+reason+"}")
	}
	w.Now = w.Now.Add(-time.Hour)
	w.Put(t, cluster.Pods, "oldest", "status: {phase: Succeeded, reason: Evicted}")
	w.Put(t, cluster.Pods, "going", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z'}\nstatus: {phase: Failed}")
	w.Put(t, cluster.Pods, "runs", "status: {phase: Running}")
	var got []string
	for _, o := range w.Memory.Index.Ended() {
		got = append(got, strings.TrimPrefix(o.Key.Name, "default/"))
	}
	same(t, "the order", []string{"evicted", "evicted-late", "oldest", "a", "b"}, got)
	same(t, "the count", 5, w.Memory.Index.CountEnded())
}

func TestObjectsWithTheSameEndpoints(t *testing.T) {
	t.Parallel()
	const manifest = "metadata: {labels: {a: b}}\nspec: {nodeName: node}\nstatus: {phase: Running, podIP: 10.244.0.2, conditions: [{type: Ready, status: 'True'}]}"
	object := func(manifest string) *cluster.Object {
		w := clustertest.New()
		return w.Memory.Index.Objects[w.Put(t, cluster.Pods, "p", manifest)]
	}
	before := object(manifest)
	for change, want := range map[[2]string]bool{
		{"", ""}: true, {"Running", "Pending"}: true, {"metadata: {", "metadata: {generation: 7, "}: true,
		{"a: b", "a: c"}: false, {"nodeName: node", "nodeName: other"}: false, {"0.2", "0.3"}: false, {"'True'", "'False'"}: false,
		{"Running", "Failed"}: false, {"metadata: {", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', "}: false,
	} {
		after := object(strings.Replace(manifest, change[0], change[1], 1))
		same(t, fmt.Sprint(change), want, before.SameTo(after))
	}
	var none *cluster.Object
	same(t, "none", []bool{true, false, false}, []bool{none.SameTo(nil), none.SameTo(before), before.SameTo(nil)})
}
