// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/controlplane/workloads"
)

// health sets the condition Ready of a node.
func (c *cluster) health(name string, status corev1.ConditionStatus) {
	c.Helper()
	c.condition(name, corev1.NodeReady, status)
}

func (c *cluster) condition(name string, kind corev1.NodeConditionType, status corev1.ConditionStatus) {
	c.Helper()
	var n corev1.Node
	if err := c.Client.Get(c.Context(), key("", name), &n); err != nil {
		c.Fatal(err)
	}
	n.Status.Conditions = append(slices.DeleteFunc(n.Status.Conditions, func(x corev1.NodeCondition) bool { return x.Type == kind }),
		corev1.NodeCondition{Type: kind, Status: status})
	if err := c.Client.Status().Update(c.Context(), &n); err != nil {
		c.Fatal(err)
	}
}

func (c *cluster) cordon(name string, yes bool) {
	c.Helper()
	c.changeNode(name, func(n *corev1.Node) { n.Spec.Unschedulable = yes })
}

// taints of a node in one line, without the parts of their keys that are alike.
func (c *cluster) taints(name string) string {
	c.Helper()
	var n corev1.Node
	if err := c.Client.Get(c.Context(), key("", name), &n); err != nil {
		c.Fatal(err)
	}
	var out []string
	for _, taint := range n.Spec.Taints {
		if taint.TimeAdded == nil {
			c.Errorf("%s has %v without the time since when", name, taint)
		}
		out = append(out, strings.TrimPrefix(taint.Key, "node.kubernetes.io/")+":"+string(taint.Effect))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// places counts Pods by their nodes, with their state.
func (c *cluster) places() string {
	c.Helper()
	var list corev1.PodList
	c.list(&list)
	counts := map[string]int{}
	for i := range list.Items {
		p := &list.Items[i]
		line := p.Spec.NodeName
		if line == "" {
			line = "none"
		}
		if !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}) {
			line += " unready"
		}
		if p.DeletionTimestamp != nil {
			line += " terminating"
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.DisruptionTarget {
				line += " " + condition.Reason
			}
		}
		counts[line]++
	}
	var out []string
	for line, n := range counts {
		out = append(out, fmt.Sprintf("%s: %d", line, n))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestNodesThatAreNotReadyLoseTheirPods has the steps of a conversation with oracle/cmd/controllers, in
// which the kubelets were played by hand.
func TestNodesThatAreNotReadyLoseTheirPods(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newLoop(t)
		after := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		after(0)
		c.node("n1", nil)
		c.node("n2", nil)
		c.cordon(workloads.NodeName, true)
		after(0)
		equal(t, "taints of a cordoned node", "unschedulable:NoSchedule", c.taints(workloads.NodeName))
		web := deployment("web", 4)
		c.Create(web)
		c.Create(&appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default"}, Spec: appsv1.DaemonSetSpec{Selector: selector("d"), Template: template("d")},
		})
		after(0)
		equal(t, "spread", "n1: 3, n2: 3, steer-node: 1", c.places())

		c.health("n1", corev1.ConditionFalse)
		after(0)
		equal(t, "taints of a node that is not ready", "not-ready:NoExecute not-ready:NoSchedule", c.taints("n1"))
		after(299 * time.Second)
		equal(t, "just before the toleration ends", "n1: 3, n2: 3, steer-node: 1", c.places())
		after(time.Second)
		equal(t, "after it", "n1 terminating DeletionByTaintManager: 2, n1: 1, n2: 5, steer-node: 1", c.places())

		c.health("n1", corev1.ConditionUnknown)
		after(0)
		equal(t, "taints of a node without heartbeats", "unreachable:NoExecute unreachable:NoSchedule", c.taints("n1"))
		c.health("n1", corev1.ConditionTrue)
		after(0)
		equal(t, "taints of one that is back", "", c.taints("n1"))
		equal(t, "it ends what it was to end", "n1: 1, n2: 5, steer-node: 1", c.places())

		c.condition("n2", corev1.NodeMemoryPressure, corev1.ConditionTrue)
		after(0)
		equal(t, "taints of one without memory", "memory-pressure:NoSchedule", c.taints("n2"))
		c.condition("n2", corev1.NodeMemoryPressure, corev1.ConditionFalse)
		after(0)

		c.health("n2", corev1.ConditionUnknown)
		after(0)
		equal(t, "without heartbeats of n2", "n1: 1, n2 unready: 5, steer-node: 1", c.places())
		after(100 * time.Second)
		c.health("n2", corev1.ConditionTrue)
		after(30 * time.Minute)
		equal(t, "n2 was back in time", "n1: 1, n2: 5, steer-node: 1", c.places())
		var sets appsv1.ReplicaSetList
		c.list(&sets)
		said := c.said("node-controller", "taint-eviction-controller")
		slices.Sort(said)
		equal(t, "what was said of it", []string{
			"! node-controller Pod NodeNotReady: Node is not ready",
			"node-controller Node NodeNotReady: Node n2 status is now: NodeNotReady",
			"taint-eviction-controller Pod TaintManagerEviction: Cancelling deletion of Pod default/" + sets.Items[0].Name + "-*",
			"taint-eviction-controller Pod TaintManagerEviction: Marking for deletion Pod default/" + sets.Items[0].Name + "-*",
		}, slices.Compact(said))
	})
}

// said are the Events of some reporters.
func (c *cluster) said(reporters ...string) []string {
	c.Helper()
	var out []string
	for _, line := range c.events() {
		if slices.ContainsFunc(reporters, func(who string) bool { return strings.HasPrefix(strings.TrimPrefix(line, "! "), who+" ") }) {
			out = append(out, line)
		}
	}
	return out
}

// TestNodeEvictionsStopWhileNoNodeIsReady: then the control plane may be what is cut off.
func TestNodeEvictionsStopWhileNoNodeIsReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newLoop(t)
		c.Create(deployment("web", 2))
		synctest.Wait()
		c.health(workloads.NodeName, corev1.ConditionUnknown)
		time.Sleep(time.Hour)
		synctest.Wait()
		equal(t, "taints", "unreachable:NoSchedule", c.taints(workloads.NodeName))
		equal(t, "Pods", "steer-node unready: 2", c.places())
		c.node("n1", nil)
		synctest.Wait()
		equal(t, "taints with another node", "unreachable:NoExecute unreachable:NoSchedule", c.taints(workloads.NodeName))
		time.Sleep(6 * time.Minute)
		synctest.Wait()
		equal(t, "Pods with another node", "n1: 2, steer-node unready terminating DeletionByTaintManager: 2", c.places())
		c.node("n2", nil)
		synctest.Wait()
		c.health("n2", corev1.ConditionFalse)
		synctest.Wait()
		equal(t, "taints of a second one", "not-ready:NoExecute not-ready:NoSchedule", c.taints("n2"))
		c.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		synctest.Wait()
		equal(t, "taints without the last that was well", "unreachable:NoSchedule", c.taints(workloads.NodeName))
		equal(t, "of the second one", "not-ready:NoSchedule", c.taints("n2"))
	})
}

// TestNodeEvictionsAreRateLimited: of a zone one every ten seconds, none while most are not ready.
func TestNodeEvictionsAreRateLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newLoop(t)
		zone := func(name string) map[string]string { return map[string]string{corev1.LabelTopologyZone: name} }
		for i := range 6 {
			c.node(fmt.Sprintf("n%d", i+1), zone("a"))
		}
		c.node("n7", zone("b"))
		synctest.Wait()
		given := func() (out string) {
			synctest.Wait()
			for i := range 7 {
				if name := fmt.Sprintf("n%d", i+1); strings.Contains(c.taints(name), "NoExecute") {
					out += name + " "
				}
			}
			return out
		}
		for _, name := range []string{"n1", "n2", "n7"} {
			c.health(name, corev1.ConditionFalse)
			synctest.Wait()
		}
		equal(t, "one of each zone", "n1 n7 ", given())
		time.Sleep(9 * time.Second)
		equal(t, "9 s later", "n1 n7 ", given())
		time.Sleep(time.Second)
		equal(t, "10 s later", "n1 n2 n7 ", given())
		time.Sleep(time.Minute)
		for _, name := range []string{"n3", "n4"} {
			c.health(name, corev1.ConditionFalse)
			synctest.Wait()
		}
		equal(t, "three of six, four of six", "n1 n2 n3 n7 ", given())
		time.Sleep(time.Hour)
		equal(t, "four of six for long", "n1 n2 n3 n7 ", given())
		c.health("n1", corev1.ConditionTrue)
		equal(t, "three of six", "n2 n3 n4 n7 ", given())
	})
}

func TestPodGarbageCollectorDeletesPodsOfMissingNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newLoop(t)
		synctest.Wait()
		c.node("n1", nil)
		c.node("n2", nil)
		c.cordon(workloads.NodeName, true)
		synctest.Wait()
		c.Create(deployment("web", 2))
		c.Create(statefulSet(2))
		synctest.Wait()
		equal(t, "spread", "n1: 2, n2: 2", c.places())
		n1 := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
		c.delete(n1)
		time.Sleep(39 * time.Second)
		synctest.Wait()
		equal(t, "39 s later", "n1: 2, n2: 2", c.places())
		time.Sleep(time.Second)
		synctest.Wait()
		equal(t, "40 s later", "n2: 4", c.places())

		c.health("n2", corev1.ConditionFalse)
		c.node("n3", nil)
		var list corev1.PodList
		c.list(&list)
		for i := range list.Items {
			c.delete(&list.Items[i])
		}
		synctest.Wait()
		equal(t, "without a kubelet that ends them", "n2 terminating: 4, n3: 2", c.places())
		c.changeNode("n2", func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute, TimeAdded: new(metav1.Now())})
		})
		synctest.Wait()
		equal(t, "out of service", "n3: 4", c.places())
	})
}

// TestDrainMovesPods evicts Pods as `kubectl drain` does, as far as a budget allows.
func TestDrainMovesPods(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.settle()
	c.Create(deployment("web", 3))
	one := intstr.FromInt32(1)
	c.Create(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"}, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one, Selector: selector("web")},
	})
	c.settle()
	equal(t, "at first", "steer-node: 3", c.places())
	c.node("n1", nil)
	c.cordon(workloads.NodeName, true)
	var list corev1.PodList
	c.list(&list)
	evict := func(p *corev1.Pod) error {
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}
		return c.Client.SubResource("eviction").Create(t.Context(), p, eviction)
	}
	for i := range list.Items {
		if err := evict(&list.Items[i]); err != nil {
			t.Fatal(err)
		}
		if i+1 < len(list.Items) {
			if err := evict(&list.Items[i+1]); !apierrors.IsTooManyRequests(err) {
				t.Errorf("a second eviction before the first Pod is replaced: %v", err)
			}
		}
		c.settle()
	}
	equal(t, "drained", "n1: 3", c.places())
	c.cordon("n1", true)
	c.get("web", &appsv1.Deployment{})
	c.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.podNames()[0], Namespace: "default"}})
	c.settle()
	equal(t, "no node takes another", "n1: 2, none unready: 1", c.places())
	var said string
	for _, line := range c.said("default-scheduler") {
		if strings.Contains(line, "FailedScheduling") {
			said = line
		}
	}
	equal(t, "why", "! default-scheduler Pod FailedScheduling: 0/2 nodes are available: 2 node(s) were unschedulable. "+
		"no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.", said)
	c.cordon(workloads.NodeName, false)
	c.settle()
	equal(t, "uncordoned", "n1: 2, steer-node: 1", c.places())
	equal(t, "taints", "", c.taints(workloads.NodeName))
}

func (c *cluster) podNames() (out []string) {
	c.Helper()
	var list corev1.PodList
	c.list(&list)
	for i := range list.Items {
		out = append(out, list.Items[i].Name)
	}
	return out
}

// TestSchedulerLeavesPodsPendingWithoutRoom: for a node with a label, for room, for a claim.
func TestSchedulerLeavesPodsPendingWithoutRoom(t *testing.T) {
	t.Parallel()
	c := newEmpty(t)
	pod := func(name string, change func(*corev1.PodSpec)) {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}}, Spec: template(name).Spec}
		change(&p.Spec)
		c.Create(p)
		c.settle()
	}
	requests := func(cpu string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
	}
	said := func(what, want, name string) {
		t.Helper()
		c.settle()
		got := c.fate("default", name)
		got, _, _ = strings.Cut(got, ". ")
		equal(t, what, want, got)
	}
	pod("first", requests("40"))
	said("without nodes", "no nodes available to schedule pods", "first")
	c.node("n1", nil)
	said("with one", "n1", "first")
	pod("second", requests("40"))
	said("no room", "0/1 nodes are available: 1 Insufficient cpu", "second")
	c.delete(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "first", Namespace: "default"}})
	said("room", "n1", "second")

	pod("ssd", func(s *corev1.PodSpec) { s.NodeSelector = map[string]string{"disk": "ssd"} })
	said("no such node", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector", "ssd")
	c.changeNode("n1", func(n *corev1.Node) { n.Labels["disk"] = "ssd" })
	said("labelled", "n1", "ssd")

	pod("data", func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	})
	said("no claim", `0/1 nodes are available: persistentvolumeclaim "data" not found`, "data")
	claim := corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	c.Create(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "data", Namespace: "default"}, Spec: claim})
	said("claimed", "n1", "data")
	pod("scratch", func(s *corev1.PodSpec) {
		s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: claim},
		}}}}
	})
	said("with a claim of its own", "n1", "scratch")
	var made corev1.PersistentVolumeClaim
	c.get("scratch-v", &made)
	equal(t, "which is bound", corev1.ClaimBound, made.Status.Phase)
	equal(t, "and goes with it", "Pod/scratch", made.OwnerReferences[0].Kind+"/"+made.OwnerReferences[0].Name)

	beside := func(app string) func(*corev1.PodSpec) {
		return func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}, TopologyKey: "disk", NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}},
			}}}
		}
	}
	pod("beside", beside("third"))
	pod("third", requests("1"))
	said("another namespace", "0/1 nodes are available: 1 node(s) didn't match pod affinity rules", "beside")
	var ns corev1.Namespace
	if err := c.Client.Get(c.Context(), key("", "default"), &ns); err != nil {
		t.Fatal(err)
	}
	ns.Labels["team"] = "a"
	c.update(&ns)
	said("the right namespace", "n1", "beside")

	pod("gated", func(s *corev1.PodSpec) { s.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/wait"}} })
	said("gated", "Scheduling is blocked due to non-empty scheduling gates", "gated")
	var gated corev1.Pod
	c.get("gated", &gated)
	gated.Spec.SchedulingGates = nil
	c.update(&gated)
	said("no longer", "n1", "gated")
}

// TestSchedulerPrefersLeastRequestedNodes: first the preferences, then the share of what is requested, then
// the number of Pods.
func TestSchedulerPrefersLeastRequestedNodes(t *testing.T) {
	t.Parallel()
	c := newEmpty(t)
	c.node("n1", map[string]string{"zone": "a"})
	c.node("n2", map[string]string{"zone": "b"}, corev1.Taint{Key: "k", Effect: corev1.TaintEffectPreferNoSchedule})
	c.node("n3", map[string]string{"zone": "b"})
	c.settle()
	var got []string
	for i, cpu := range []string{"1", "3", "1", "1", "", "", "zone", "tolerates"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("p", i), Namespace: "default"}, Spec: template("p").Spec}
		switch cpu {
		case "":
		case "zone":
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
				Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"a"}}}},
			}}}}
		case "tolerates":
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		default:
			p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		c.Create(p)
		if i == 2 {
			continue // two in one step
		}
		c.settle()
	}
	for i := range 8 {
		got = append(got, c.fate("default", fmt.Sprint("p", i)))
	}
	equal(t, "nodes", []string{"n1", "n3", "n1", "n1", "n3", "n3", "n1", "n2"}, got)
}

// TestNodesRenewTheirLeases: four times in the life of a Lease.
func TestNodesRenewTheirLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newLoop(t)
		begun := time.Now()
		synctest.Wait()
		renewed := func(name string) string {
			t.Helper()
			synctest.Wait()
			var lease coordinationv1.Lease
			if err := c.Client.Get(t.Context(), key(corev1.NamespaceNodeLease, name), &lease); err != nil {
				return "none"
			}
			owner := lease.OwnerReferences
			if len(owner) != 1 || owner[0].Kind != "Node" || owner[0].Name != name || *lease.Spec.HolderIdentity != name {
				t.Errorf("whose is it? %+v", lease)
			}
			life := time.Duration(*lease.Spec.LeaseDurationSeconds) * time.Second
			if time.Since(lease.Spec.RenewTime.Time) > life/4 && name == workloads.NodeName {
				t.Errorf("last renewed %v ago, holds %v", time.Since(lease.Spec.RenewTime.Time), life)
			}
			return lease.Spec.RenewTime.Sub(begun).String()
		}
		equal(t, "at first", "0s", renewed(workloads.NodeName))
		c.node("n1", nil)
		equal(t, "of another node", "0s", renewed("n1"))
		revision := func() string {
			var list corev1.PodList
			c.list(&list)
			return list.ResourceVersion
		}
		before := revision()
		time.Sleep(14 * time.Minute)
		synctest.Wait()
		equal(t, "what was written in 14 minutes", before, revision())
		time.Sleep(time.Minute)
		equal(t, "after a quarter", "15m0s", renewed(workloads.NodeName))
		c.health("n1", corev1.ConditionUnknown)
		time.Sleep(time.Hour)
		equal(t, "later", "1h15m0s", renewed(workloads.NodeName))
		equal(t, "of the one without heartbeats", "15m0s", renewed("n1"))
		c.health("n1", corev1.ConditionTrue)
		equal(t, "of the one that is back", "1h15m0s", renewed("n1"))
		c.delete(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		equal(t, "of one that is gone", "none", renewed("n1"))
	})
}
