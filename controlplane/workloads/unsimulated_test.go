// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
)

// foreign is a node that is not simulated.
func foreign(name string) *corev1.Node {
	n := simulated(name, nil)
	delete(n.Labels, workloads.SimulatedLabel)
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	return n
}

// TestNodesThatAreNotSimulatedAreLeftAlone: their Pods are scheduled, and run and ended by others.
func TestNodesThatAreNotSimulatedAreLeftAlone(t *testing.T) {
	t.Parallel()
	c := newEmpty(t)
	c.Create(foreign("n1"))
	c.Create(deployment("web", 2))
	c.Create(&appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "d", Namespace: "default"}, Spec: appsv1.DaemonSetSpec{Selector: selector("d"), Template: template("d")},
	})
	c.settle()
	equal(t, "scheduled", "n1 unready: 3", c.places())
	var list corev1.PodList
	c.list(&list)
	for i := range list.Items {
		s := &list.Items[i].Status
		if s.Phase != corev1.PodPending || s.PodIP != "" || s.StartTime != nil || len(s.ContainerStatuses) > 0 {
			t.Errorf("%s ran: %+v", list.Items[i].Name, s)
		}
	}
	var lease coordinationv1.Lease
	if err := c.Client.Get(t.Context(), key(corev1.NamespaceNodeLease, "n1"), &lease); !apierrors.IsNotFound(err) {
		t.Errorf("a Lease of a node of others: %v %+v", err, lease)
	}
	c.delete(&list.Items[0])
	c.settle()
	equal(t, "deleted", true, strings.HasPrefix(c.places(), "n1 unready terminating: 1, n1 unready: "))

	// With the annotation the node is simulated.
	c.changeNode("n1", func(n *corev1.Node) { n.Labels = map[string]string{workloads.SimulatedLabel: "true"} })
	c.settle()
	equal(t, "simulated", "n1: 3", c.places())
}

// TestNodesWithoutHeartbeatBecomeUnknown: 50 seconds after the last word of them, or 60 after their
// creation if there was none.
func TestNodesWithoutHeartbeatBecomeUnknown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := start(t, controlplane.Options{Workloads: &workloads.Options{NoNode: true}})
		c.Create(foreign("n1"))
		mute := foreign("n2")
		mute.Status.Conditions = nil
		c.Create(mute)
		health := func(name string) string {
			t.Helper()
			synctest.Wait()
			var n corev1.Node
			if err := c.Client.Get(t.Context(), key("", name), &n); err != nil {
				t.Fatal(err)
			}
			var out []string
			for _, x := range n.Status.Conditions {
				out = append(out, string(x.Type)+"="+string(x.Status)+" "+x.Reason)
			}
			slices.Sort(out)
			return strings.TrimSpace(strings.Join(out, ", ") + " | " + c.taints(name))
		}
		never := "DiskPressure=Unknown NodeStatusNeverUpdated, MemoryPressure=Unknown NodeStatusNeverUpdated, PIDPressure=Unknown NodeStatusNeverUpdated, Ready=Unknown "
		name, seconds := "n1", int32(40)
		c.Create(&coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: "n1", Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: new(metav1.NowMicro())},
		})
		renew := func() {
			t.Helper()
			var lease coordinationv1.Lease
			if err := c.Client.Get(t.Context(), key(corev1.NamespaceNodeLease, "n1"), &lease); err != nil {
				t.Fatal(err)
			}
			lease.Spec.RenewTime = new(metav1.NowMicro())
			c.update(&lease)
		}
		for range 17 {
			time.Sleep(10 * time.Second)
			renew()
		}
		equal(t, "of one that reports", "Ready=True  |", health("n1"))
		equal(t, "of one that never was", never+"NodeStatusNeverUpdated | unreachable:NoExecute unreachable:NoSchedule", health("n2"))
		time.Sleep(50 * time.Second)
		equal(t, "50 s after the last word", "Ready=True  |", health("n1"))
		time.Sleep(time.Second)
		equal(t, "51 s after the last word", never+"NodeStatusUnknown | unreachable:NoSchedule", health("n1"))
		var n corev1.Node
		if err := c.Client.Get(t.Context(), key("", "n1"), &n); err != nil {
			t.Fatal(err)
		}
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].Status, n.Status.Conditions[i].LastHeartbeatTime = corev1.ConditionFalse, metav1.Now()
			if n.Status.Conditions[i].Type == corev1.NodeReady {
				n.Status.Conditions[i].Status = corev1.ConditionTrue
			}
		}
		if err := c.Client.Status().Update(t.Context(), &n); err != nil {
			t.Fatal(err)
		}
		time.Sleep(49 * time.Second)
		equal(t, "49 s after it is back", true, strings.HasSuffix(health("n1"), "|"))
		time.Sleep(2 * time.Second)
		equal(t, "51 s after", true, strings.HasSuffix(health("n1"), "unreachable:NoSchedule"))
	})
}
