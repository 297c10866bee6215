// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster/clustertest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/nodes"
	"github.com/steer-dev/steer/storage"
)

// fixture is a cluster and the controllers under test.
type fixture struct {
	*clustertest.World
	controllers *nodes.Controllers
}

func newFixture() *fixture { return &fixture{clustertest.New(), nodes.New()} }

// put stores an object and passes a change of a node to the controllers.
func (f *fixture) put(t *testing.T, bucket, name, manifest string) storage.Key {
	t.Helper()
	before := f.Memory.Index.Node(name)
	key := f.Put(t, bucket, name, manifest)
	if bucket == cluster.Nodes {
		f.controllers.Changed(f.Memory, before, f.Memory.Index.Node(name), f.Now)
	}
	return key
}

// node stores a node with a condition Ready, or without conditions if that is empty.
func (f *fixture) node(t *testing.T, name, ready, more string) storage.Key {
	t.Helper()
	if ready == "" {
		return f.put(t, cluster.Nodes, name, more)
	}
	return f.put(t, cluster.Nodes, name, fmt.Sprintf("%s\nstatus: {conditions: [{type: Ready, status: %q}]}", more, ready))
}

// look surveys the nodes, looks at one of them, and returns the requests.
func (f *fixture) look(t *testing.T, key storage.Key) []step.Request {
	t.Helper()
	f.controllers.Survey(f.Memory)
	return f.Step(t, func(turn *cluster.Turn) { f.controllers.Look(turn, key) })
}

// taints looks at a node and returns the taints that are written, sorted; "unchanged" if
// nothing is.
func (f *fixture) taints(t *testing.T, key storage.Key) string {
	t.Helper()
	requests := f.look(t, key)
	if len(requests) == 0 {
		return "unchanged"
	}
	if got, want := clustertest.Lines(requests), "PUT /api/v1/nodes/"+key.Name; got != want {
		t.Fatalf("requests are\n%s\nwant\n%s", got, want)
	}
	var out []string
	for _, taint := range clustertest.Body[corev1.Node](t, requests[0]).Spec.Taints {
		out = append(out, strings.TrimPrefix(taint.Key, "node.kubernetes.io/")+":"+string(taint.Effect))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestLookTaintsNodesByTheirConditions(t *testing.T) {
	t.Parallel()
	const (
		taints  = "spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: example.com/own, effect: NoSchedule}]}"
		evicted = "spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}, {key: node.kubernetes.io/not-ready, effect: NoSchedule}]}"
	)
	for _, c := range []struct{ name, ready, more, want string }{
		{"without conditions", "", taints, "unchanged"},
		{"without conditions, cordoned", "", "spec: {unschedulable: true}", "unschedulable:NoSchedule"},
		{"ready", "True", taints, "example.com/own:NoSchedule"},
		{"ready again", "True", evicted, ""},
		{"ready, cordoned", "True", "spec: {unschedulable: true}", "unschedulable:NoSchedule"},
		{"uncordoned", "True", "spec: {taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]}", ""},
		{"not ready", "False", "", "not-ready:NoExecute not-ready:NoSchedule"},
		{"not ready, tainted", "False", evicted, "unchanged"},
		{"unknown", "Unknown", "", "unreachable:NoExecute unreachable:NoSchedule"},
		{"unknown after not ready", "Unknown", evicted, "unreachable:NoExecute unreachable:NoSchedule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			f.node(t, "other", "True", "")
			if got := f.taints(t, f.node(t, "node1", c.ready, c.more)); got != c.want {
				t.Errorf("taints are %q, want %q", got, c.want)
			}
		})
	}
	for condition, want := range map[string]string{
		"MemoryPressure": "memory-pressure:NoSchedule", "DiskPressure": "disk-pressure:NoSchedule",
		"PIDPressure": "pid-pressure:NoSchedule", "NetworkUnavailable": "network-unavailable:NoSchedule",
	} {
		f := newFixture()
		key := f.put(t, cluster.Nodes, "node1", "status: {conditions: [{type: Ready, status: 'True'}, {type: "+condition+", status: 'True'}]}")
		if got := f.taints(t, key); got != want {
			t.Errorf("%s: taints are %q, want %q", condition, got, want)
		}
	}
}

func TestLookStampsNewTaintsAlone(t *testing.T) {
	t.Parallel()
	f := newFixture()
	key := f.node(t, "node1", "True", "spec: {unschedulable: true, taints: [{key: example.com/own, effect: NoExecute}]}")
	requests := f.look(t, key)
	if len(requests) != 1 {
		t.Fatalf("requests are\n%s", clustertest.Lines(requests))
	}
	for _, taint := range clustertest.Body[corev1.Node](t, requests[0]).Spec.Taints {
		isNew := taint.Key == corev1.TaintNodeUnschedulable
		if stamped := taint.TimeAdded != nil && taint.TimeAdded.Equal(&metav1.Time{Time: f.Now}); stamped != isNew {
			t.Errorf("%s was added at %v", taint.Key, taint.TimeAdded)
		}
	}
}

func TestLookMarksSilentNodesUnknown(t *testing.T) {
	t.Parallel()
	f := newFixture()
	ready := f.node(t, "ready", "True", "")
	renewed := f.node(t, "renewed", "True", "")
	simulated := f.node(t, "simulated", "True", "metadata: {labels: {"+cluster.SimulatedLabel+": 'true'}}")
	never := f.node(t, "never", "", "")
	begin := f.Now // never was created one minute before
	for _, key := range []storage.Key{ready, renewed, simulated, never} {
		if got := f.look(t, key); got != nil {
			t.Errorf("%s is changed at once:\n%s", key.Name, clustertest.Lines(got))
		}
	}
	if got := f.Memory.Timers[ready]; !got.Equal(begin.Add(50*time.Second + 1)) {
		t.Errorf("a ready node is looked at again after %v, want 50 s and 1 ns", got.Sub(begin))
	}
	f.lease(t, "renewed", begin.Add(30*time.Second))

	f.Now = begin.Add(50*time.Second + 1)
	clear(f.Memory.Timers) // they have fired
	for key, want := range map[storage.Key]string{
		ready: "Unknown NodeStatusUnknown, Unknown NodeStatusNeverUpdated, Unknown NodeStatusNeverUpdated, Unknown NodeStatusNeverUpdated",
		never: strings.Repeat(", Unknown NodeStatusNeverUpdated", 4)[2:], renewed: "", simulated: "",
	} {
		requests := f.look(t, key)
		if len(requests) == 0 {
			if want != "" {
				t.Errorf("%s is left as it is", key.Name)
			}
			continue
		}
		var got []string
		for _, c := range clustertest.Body[corev1.Node](t, requests[0]).Status.Conditions {
			got = append(got, string(c.Status)+" "+c.Reason)
		}
		if line := clustertest.Lines(requests); line != "PUT /api/v1/nodes/"+key.Name+"/status" || strings.Join(got, ", ") != want {
			t.Errorf("%s: %s writes %q, want %q", key.Name, line, got, want)
		}
	}
	if got := f.Memory.Timers[renewed]; !got.Equal(begin.Add(80*time.Second + 1)) {
		t.Errorf("a node whose Lease was renewed after 30 s is looked at again after %v, want 80 s and 1 ns", got.Sub(begin))
	}
}

// lease stores the Lease of a node.
func (f *fixture) lease(t *testing.T, node string, renewed time.Time) {
	t.Helper()
	key := cluster.LeaseOf(node)
	_, err := f.Store.Commit(t.Context(), storage.Write{
		Key:   key,
		Value: fmt.Appendf(nil, `{"metadata":{"name":%q},"spec":{"renewTime":%q}}`, node, renewed.Format("2006-01-02T15:04:05.000000Z")),
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestLookEvictsFromOneNodeOfAZoneAtATime(t *testing.T) {
	t.Parallel()
	const zone = "metadata: {labels: {topology.kubernetes.io/zone: %s}}"
	f := newFixture()
	for i := range 4 {
		f.node(t, fmt.Sprint("ready", i), "True", fmt.Sprintf(zone, "a"))
	}
	first := f.node(t, "first", "False", fmt.Sprintf(zone, "a"))
	second := f.node(t, "second", "False", fmt.Sprintf(zone, "a"))
	elsewhere := f.node(t, "elsewhere", "False", fmt.Sprintf(zone, "b"))
	begin := f.Now
	const both, one = "not-ready:NoExecute not-ready:NoSchedule", "not-ready:NoSchedule"
	for _, c := range []struct {
		key   storage.Key
		after time.Duration
		want  string
	}{{first, 0, both}, {second, 0, one}, {elsewhere, 0, both}, {second, 9 * time.Second, one}, {second, 10 * time.Second, both}} {
		f.Now = begin.Add(c.after)
		if got := f.taints(t, c.key); got != c.want {
			t.Errorf("%s after %v: taints are %q, want %q", c.key.Name, c.after, got, c.want)
		}
	}
	if got := f.Memory.Timers[second]; !got.Equal(begin.Add(10 * time.Second)) {
		t.Errorf("the second node is looked at again after %v, want 10 s", got.Sub(begin))
	}
}

// TestLookEvictsSlowlyFromZonesWhereMostNodesFail: not at all in a small zone, once in 100
// seconds in a large one.
func TestLookEvictsSlowlyFromZonesWhereMostNodesFail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                string
		ready, failed       int
		first, later, after string // the taints of the next node
	}{
		{"two of three", 1, 2, "NoExecute", "NoSchedule", "NoExecute"},
		{"three of six", 3, 3, "NoExecute", "NoSchedule", "NoExecute"},
		{"eleven of twenty", 9, 11, "NoSchedule", "NoSchedule", "NoSchedule"},
		{"three of five", 2, 3, "NoSchedule", "NoSchedule", "NoSchedule"},
		{"thirty of fifty", 20, 30, "NoSchedule", "NoSchedule", "NoSchedule"},
		{"thirty of fifty-one", 21, 30, "NoExecute", "NoSchedule", "NoSchedule"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture()
			for i := range c.ready {
				f.node(t, fmt.Sprint("ready", i), "True", "")
			}
			var failed []storage.Key
			for i := range c.failed {
				failed = append(failed, f.node(t, fmt.Sprint("failed", i), "False", ""))
			}
			effect := func(key storage.Key) string {
				got := f.taints(t, key)
				if strings.Contains(got, "NoExecute") {
					return "NoExecute"
				}
				return got[strings.Index(got, ":")+1:]
			}
			first, later := effect(failed[0]), effect(failed[1])
			f.Now = f.Now.Add(10 * time.Second)
			if after := effect(failed[1]); first != c.first || later != c.later || after != c.after {
				t.Errorf("the first gets %s, the second %s and 10 s later %s; want %s, %s and %s", first, later, after, c.first, c.later, c.after)
			}
		})
	}
	f := newFixture()
	for i := range 21 {
		f.node(t, fmt.Sprint("ready", i), "True", "")
	}
	for i := range 30 {
		f.node(t, fmt.Sprint("failed", i), "False", "")
	}
	f.taints(t, cluster.NodeOf("failed0"))
	f.Now = f.Now.Add(100 * time.Second)
	f.node(t, "failed1", "False", "spec: {}") // it has reported since
	if got := f.taints(t, cluster.NodeOf("failed1")); !strings.Contains(got, "NoExecute") {
		t.Errorf("100 s later the second has %q, want NoExecute", got)
	}
}

// TestSurveyTakesEvictionsBackWhenNoNodeIsReady: the control plane may be what is cut off.
func TestSurveyTakesEvictionsBackWhenNoNodeIsReady(t *testing.T) {
	t.Parallel()
	f := newFixture()
	given := f.node(t, "given", "False", "spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoExecute}, {key: node.kubernetes.io/not-ready, effect: NoSchedule}]}")
	last := f.node(t, "last", "True", "")
	excluded := f.node(t, "excluded", "False", "metadata: {labels: {node.kubernetes.io/exclude-disruption: ''}}")
	if got := f.taints(t, given); got != "unchanged" {
		t.Errorf("with a ready node the taints become %q", got)
	}
	f.node(t, "last", "False", "")
	clear(f.Memory.Due)
	if got := f.taints(t, given); got != "not-ready:NoSchedule" {
		t.Errorf("without a ready node the taints are %q, want NoSchedule alone", got)
	}
	for _, key := range []storage.Key{given, last, excluded} {
		if _, due := f.Memory.Due[key]; !due {
			t.Errorf("%s is not looked at", key.Name)
		}
	}
	if got := f.taints(t, last); got != "not-ready:NoSchedule" {
		t.Errorf("the last node gets %q, want NoSchedule alone", got)
	}
	f.node(t, "excluded", "True", "")
	if got := f.taints(t, last); got != "not-ready:NoExecute not-ready:NoSchedule" {
		t.Errorf("with a ready node again the last one gets %q", got)
	}
}

func TestChangedMakesThePodsOfANodeDue(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.node(t, "node1", "True", "")
	on := f.put(t, cluster.Pods, "on", "spec: {nodeName: node1}")
	other := f.put(t, cluster.Pods, "other", "spec: {nodeName: node2}")
	clear(f.Memory.Due)
	if f.node(t, "node1", "Unknown", ""); !f.Memory.Untold() {
		t.Error("no Event reports that the node is not ready")
	}
	if _, due := f.Memory.Due[on]; !due {
		t.Error("the Pod of the node is not looked at")
	}
	if _, due := f.Memory.Due[other]; due {
		t.Error("the Pod of another node is looked at")
	}
}

func TestUnreadyMarksPodsOfUnknownNodes(t *testing.T) {
	t.Parallel()
	f := newFixture()
	f.node(t, "ready", "True", "")
	f.node(t, "unknown", "Unknown", "")
	const status = "{phase: Running, conditions: [{type: Ready, status: 'True'}, {type: PodScheduled, status: 'True'}]}"
	for node, want := range map[string]string{"ready": "", "unknown": "PUT /api/v1/namespaces/default/pods/unknown/status", "gone": ""} {
		key := f.put(t, cluster.Pods, node, "spec: {nodeName: "+node+"}\nstatus: "+status)
		requests := f.Step(t, func(turn *cluster.Turn) { f.controllers.Unready(turn, f.Memory.Index.Objects[key]) })
		if got := clustertest.Lines(requests); got != want {
			t.Errorf("a Pod on %s: requests are %q, want %q", node, got, want)
			continue
		}
		for _, r := range requests {
			conditions := clustertest.Body[corev1.Pod](t, r).Status.Conditions
			if conditions[0].Status != corev1.ConditionFalse || conditions[1].Status != corev1.ConditionTrue {
				t.Errorf("conditions are %v, want only Ready to be False", conditions)
			}
		}
	}
}
