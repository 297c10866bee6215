// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/storage"
)

const (
	pods     = "/api/v1/namespaces/default/pods/"
	noExec   = "spec: {taints: [{key: example.com/a, effect: NoExecute}]}"
	twoTaint = "spec: {taints: [{key: example.com/a, effect: NoExecute}, {key: example.com/b, effect: NoExecute}]}"
)

// evict looks at a Pod and returns the requests, one to a line.
func (f *fixture) evict(t *testing.T, key storage.Key) string {
	t.Helper()
	var evicted bool
	requests := f.Step(t, func(turn *cluster.Turn) { evicted = f.controllers.Evict(turn, f.Memory.Index.Objects[key]) })
	if evicted != (len(requests) > 0) {
		t.Errorf("Evict returns %v with %d requests", evicted, len(requests))
	}
	return clustertest.Lines(requests)
}

func TestEvictDeletesPodsThatDoNotTolerateTheirNode(t *testing.T) {
	t.Parallel()
	const deleted = "PATCH " + pods + "web/status\nDELETE " + pods + "web"
	for _, c := range []struct {
		name, node, tolerations string
		want                    string
		after                   time.Duration // until the Pod is looked at again
	}{
		{"no taint", "", "[]", "", 0},
		{"another effect", "spec: {taints: [{key: example.com/a, effect: NoSchedule}]}", "[]", "", 0},
		{"not tolerated", noExec, "[{key: example.com/b, operator: Exists}]", deleted, 0},
		{"tolerated for ever", noExec, "[{key: example.com/a, operator: Exists}]", "", 0},
		{"tolerated for a time", noExec, "[{key: example.com/a, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]", "", 30 * time.Second},
		{"tolerated for no time", noExec, "[{key: example.com/a, operator: Exists, effect: NoExecute, tolerationSeconds: -1}]", deleted, 0},
		{"one of two tolerated", twoTaint, "[{key: example.com/a, operator: Exists}]", deleted, 0},
		{"two times", twoTaint, "[{key: example.com/a, operator: Exists, effect: NoExecute, tolerationSeconds: 30}, " +
			"{key: example.com/b, operator: Exists, effect: NoExecute, tolerationSeconds: 20}]", "", 20 * time.Second},
		{"one for a time, one for ever", twoTaint, "[{key: example.com/a, operator: Exists, effect: NoExecute, tolerationSeconds: 30}, " +
			"{key: example.com/b, operator: Exists}]", "", 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			f.node(t, "node1", "True", c.node)
			pod := f.put(t, cluster.Pods, "web", "spec: {nodeName: node1, tolerations: "+c.tolerations+"}")
			if got := f.evict(t, pod); got != c.want {
				t.Errorf("requests are\n%s\nwant\n%s", got, c.want)
			}
			again, set := f.Memory.Timers[pod]
			if set != (c.after > 0) || set && !again.Equal(f.Now.Add(c.after)) {
				t.Errorf("the Pod is looked at again at %v, want after %v", again, c.after)
			}
			if c.after == 0 {
				return
			}
			f.Now = f.Now.Add(c.after)
			if got := f.evict(t, pod); got != deleted {
				t.Errorf("at the end of the time requests are\n%s\nwant\n%s", got, deleted)
			}
		})
	}
}

func TestEvictionIsCancelledWithTheTaint(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.node(t, "node1", "True", noExec)
	pod := f.put(t, cluster.Pods, "web", "spec: {nodeName: node1, tolerations: [{key: example.com/a, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]}")
	if got := f.evict(t, pod); got != "" || f.Memory.Untold() {
		t.Errorf("at once: %q", got)
	}
	f.Now = f.Now.Add(20 * time.Second)
	f.node(t, "node1", "True", "")
	if got := f.evict(t, pod); got != "" || !f.Memory.Untold() {
		t.Errorf("without the taint requests are %q; an Event reports the cancelled deletion: %v", got, f.Memory.Untold())
	}
	f.node(t, "node1", "True", noExec)
	f.evict(t, pod)
	f.Now = f.Now.Add(20 * time.Second)
	if got := f.evict(t, pod); got != "" {
		t.Errorf("20 s after the second taint the Pod is evicted, want 30 s:\n%s", got)
	}
}

func TestCollectDeletesPodsWithoutAKubelet(t *testing.T) {
	t.Parallel()
	const (
		failed   = "PATCH " + pods + "web/status\n"
		deleted  = "DELETE " + pods + "web"
		deleting = "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 30}\n"
		outOf    = "spec: {taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]}"
	)
	for _, c := range []struct{ name, ready, node, pod, want string }{
		{"on a node", "True", "", "spec: {nodeName: node1}", "no"},
		{"not scheduled", "True", "", "spec: {}", "no"},
		{"not scheduled, being deleted", "True", "", deleting + "spec: {}", failed + deleted},
		{"being deleted", "False", "", deleting + "spec: {nodeName: node1}", "no"},
		{"out of service", "False", outOf, "spec: {nodeName: node1}", "no"},
		{"out of service, being deleted", "False", outOf, deleting + "spec: {nodeName: node1}", failed + deleted},
		{"ready although out of service", "True", outOf, deleting + "spec: {nodeName: node1}", "no"},
		{"ended, waits for a finalizer", "True", "", "metadata: {deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0, finalizers: [example.com/f]}\nstatus: {phase: Failed}", ""},
		{"ended, not scheduled, being deleted", "True", "", deleting + "status: {phase: Succeeded}", deleted},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			f.node(t, "node1", c.ready, c.node)
			pod := f.put(t, cluster.Pods, "web", c.pod)
			if got := f.collect(t, pod); got != c.want {
				t.Errorf("requests are\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// collect passes a Pod to Collect and returns the requests, or "no" if Collect returns
// false.
func (f *fixture) collect(t *testing.T, key storage.Key) string {
	t.Helper()
	var collected bool
	requests := f.Step(t, func(turn *cluster.Turn) { collected = f.controllers.Collect(turn, f.Memory.Index.Objects[key]) })
	if !collected {
		return "no" + clustertest.Lines(requests)
	}
	return clustertest.Lines(requests)
}

func TestCollectWaitsForNodesThatMayComeBack(t *testing.T) {
	t.Parallel()
	f := newFixture()
	pod := f.put(t, cluster.Pods, "web", "spec: {nodeName: gone}\nstatus: {phase: Running}")
	if got := f.collect(t, pod); got != "" || !f.Memory.Timers[pod].Equal(f.Now.Add(40*time.Second)) {
		t.Errorf("at once: %q, and looked at again at %v, want after 40 s", got, f.Memory.Timers[pod])
	}
	f.Now = f.Now.Add(40 * time.Second)
	if got := f.collect(t, pod); !strings.HasSuffix(got, "DELETE "+pods+"web") {
		t.Errorf("after 40 s: %q, want a deletion", got)
	}
	f.controllers.Forget(f.Memory, f.Memory.Index.Objects[pod]) // another Pod of the node is left in the index
	if got := f.collect(t, pod); got == "" {
		t.Error("the time of a node that still has Pods begins again")
	}
	f.node(t, "gone", "True", "")
	f.look(t, cluster.NodeOf("gone"))
	if got := f.collect(t, pod); got != "no" {
		t.Errorf("with its node: %q, want it to stay", got)
	}
}
