// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads"
)

// node creates a simulated node that is ready and has room, unless it is said not to be.
func (c *cluster) node(name string, labels map[string]string, taints ...corev1.Taint) {
	c.Helper()
	n := simulated(name, labels)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	c.Create(n)
	if len(taints) > 0 {
		c.taint(name, taints...)
	}
}

// simulated is a simulated node with room that says nothing of its health.
func simulated(name string, labels map[string]string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{workloads.SimulatedLabel: "true"}}}
	maps.Copy(n.Labels, labels)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2." + name[1:]}}
	n.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return n
}

func (c *cluster) taint(name string, taints ...corev1.Taint) {
	c.Helper()
	c.changeNode(name, func(n *corev1.Node) { n.Spec.Taints = taints })
}

func (c *cluster) changeNode(name string, change func(*corev1.Node)) {
	c.Helper()
	var n corev1.Node
	if err := c.Client.Get(c.Context(), key("", name), &n); err != nil {
		c.Fatal(err)
	}
	change(&n)
	c.update(&n)
}

// daemons are the counts of the DaemonSet d, and its Pods by node with their images.
func (c *cluster) daemons() string {
	c.Helper()
	var d appsv1.DaemonSet
	c.get("d", &d)
	s := d.Status
	out := fmt.Sprintf("desired %d current %d mis %d ready %d updated %d avail %d unavail %d |", s.DesiredNumberScheduled, s.CurrentNumberScheduled,
		s.NumberMisscheduled, s.NumberReady, s.UpdatedNumberScheduled, s.NumberAvailable, s.NumberUnavailable)
	var list corev1.PodList
	c.list(&list)
	var pods []string
	for i := range list.Items {
		pods = append(pods, " "+list.Items[i].Spec.NodeName+" "+list.Items[i].Spec.Containers[0].Image)
	}
	slices.Sort(pods)
	return out + strings.Join(pods, "")
}

// TestDaemonSetsRunOnEveryEligibleNode has the steps of a conversation with oracle/cmd/controllers,
// in which scheduler and kubelets were played by hand: the counts at rest are those of there.
func TestDaemonSetsRunOnEveryEligibleNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, workloads.Outcome{Selector: "app=d", After: time.Second})
		rest := func() {
			t.Helper()
			for range 12 {
				c.settle()
				time.Sleep(time.Second)
			}
			c.settle()
		}
		ssd := map[string]string{"disk": "ssd"}
		c.settle()
		c.taint(workloads.NodeName, corev1.Taint{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule})
		c.node("n1", ssd)
		c.node("n2", map[string]string{"disk": "ssd", "zone": "a"})
		c.node("n4", ssd, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
		late := simulated("n5", nil)
		c.Create(late)
		d := &appsv1.DaemonSet{
			ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default"}, Spec: appsv1.DaemonSetSpec{Selector: selector("d"), Template: template("d")},
		}
		d.Spec.Template.Spec.Containers[0].Image = "i:1"
		c.Create(d)
		rest()
		equal(t, "created", "desired 3 current 3 mis 0 ready 3 updated 3 avail 3 unavail 0 | n1 i:1 n2 i:1 n4 i:1", c.daemons())
		var pods corev1.PodList
		c.list(&pods)
		for _, p := range pods.Items {
			equal(t, "address of the node", "192.0.2."+p.Spec.NodeName[1:], p.Status.HostIP)
		}

		c.taint("n2", corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})
		rest()
		equal(t, "n2 takes no more", "desired 2 current 2 mis 1 ready 2 updated 2 avail 2 unavail 0 | n1 i:1 n2 i:1 n4 i:1", c.daemons())
		c.taint("n2", corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoExecute})
		rest()
		equal(t, "n2 has none any more", "desired 2 current 2 mis 0 ready 2 updated 2 avail 2 unavail 0 | n1 i:1 n4 i:1", c.daemons())
		c.taint("n2")
		rest()
		equal(t, "n2 without taints", "desired 3 current 3 mis 0 ready 3 updated 3 avail 3 unavail 0 | n1 i:1 n2 i:1 n4 i:1", c.daemons())

		if err := c.Client.Get(c.Context(), key("", "n5"), late); err != nil {
			t.Fatal(err)
		}
		late.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		if err := c.Client.Status().Update(c.Context(), late); err != nil {
			t.Fatal(err)
		}
		rest()
		equal(t, "n5 is ready", "desired 4 current 4 mis 0 ready 4 updated 4 avail 4 unavail 0 | n1 i:1 n2 i:1 n4 i:1 n5 i:1", c.daemons())

		change := func(f func(*appsv1.DaemonSetSpec)) {
			t.Helper()
			c.get("d", d)
			f(&d.Spec)
			c.update(d)
		}
		change(func(s *appsv1.DaemonSetSpec) { s.Template.Spec.Containers[0].Image = "i:2" })
		for i, images := range []string{
			"n1 i:2 n2 i:1 n4 i:1 n5 i:1", "n1 i:2 n2 i:2 n4 i:1 n5 i:1", "n1 i:2 n2 i:2 n4 i:2 n5 i:1", "n1 i:2 n2 i:2 n4 i:2 n5 i:2",
		} {
			c.settle()
			equal(t, "one after the other", fmt.Sprintf("desired 4 current 4 mis 0 ready 3 updated %d avail 3 unavail 1 | %s", i+1, images), c.daemons())
			time.Sleep(time.Second)
		}
		rest()
		change(func(s *appsv1.DaemonSetSpec) {
			s.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: intOrString("0"), MaxSurge: intOrString("50%")}
			s.Template.Spec.Containers[0].Image = "i:3"
		})
		c.settle()
		equal(t, "two at once", "desired 4 current 4 mis 0 ready 4 updated 0 avail 4 unavail 0 | n1 i:2 n1 i:3 n2 i:2 n2 i:3 n4 i:2 n5 i:2", c.daemons())
		time.Sleep(time.Second)
		c.settle()
		equal(t, "the other two", "desired 4 current 4 mis 0 ready 4 updated 2 avail 4 unavail 0 | n1 i:3 n2 i:3 n4 i:2 n4 i:3 n5 i:2 n5 i:3", c.daemons())
		rest()
		equal(t, "all", "desired 4 current 4 mis 0 ready 4 updated 4 avail 4 unavail 0 | n1 i:3 n2 i:3 n4 i:3 n5 i:3", c.daemons())

		change(func(s *appsv1.DaemonSetSpec) { s.Template.Spec.NodeSelector = ssd })
		rest()
		equal(t, "a selector", "desired 3 current 3 mis 0 ready 3 updated 3 avail 3 unavail 0 | n1 i:3 n2 i:3 n4 i:3", c.daemons())
		change(func(s *appsv1.DaemonSetSpec) {
			s.Template.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpExists}}}},
			}}}
		})
		rest()
		equal(t, "an affinity", "desired 1 current 1 mis 0 ready 1 updated 1 avail 1 unavail 0 | n2 i:3", c.daemons())
		var n2 corev1.Node
		n2.Name = "n2"
		c.delete(&n2)
		rest()
		equal(t, "without nodes", "desired 0 current 0 mis 0 ready 0 updated 0 avail 0 unavail 0 | n2 i:3", c.daemons())
	})
}

// TestSchedulerHonoursNodeSelectors: by the name of a node, and only if it takes them.
func TestSchedulerHonoursNodeSelectors(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.settle()
	c.node("n1", nil, corev1.Taint{Key: "k", Effect: corev1.TaintEffectNoSchedule})
	spec := template("a").Spec
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{
			Key: metav1.ObjectNameField, Operator: corev1.NodeSelectorOpIn, Values: []string{"n1"},
		}}}},
	}}}
	c.Create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"}, Spec: spec})
	node := func() string {
		t.Helper()
		var p corev1.Pod
		c.get("p", &p)
		return p.Spec.NodeName
	}
	c.settle()
	equal(t, "while the node is tainted", "", node())
	c.taint("n1")
	c.settle()
	equal(t, "when it is not", "n1", node())
}
