// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

// The Lease of a node says for how long it holds, and is renewed when a quarter of that is
// over, as kubelets do. They hold 40 seconds unless nodeLeaseDurationSeconds says otherwise; here
// it is an hour, so that a cluster at rest is woken four times an hour and not 360 times.
const (
	leaseLife  = time.Hour
	leaseRenew = leaseLife / 4
)

// lookLease creates or renews the Lease of a node that is ready.
func (t *visit) lookLease(key storage.Key) {
	_, name := step.SplitName(key.Name)
	node := t.Index.Node(name)
	if node == nil || !node.Ready || !node.Simulated {
		return // the Lease is looked at again with the node, when that is ready
	}
	renewed, seconds := metav1.NewMicroTime(t.Now), int32(leaseLife/time.Second)
	spec := coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &renewed}
	lease := cluster.Stored[coordinationv1.Lease](t.Turn, key)
	if lease != nil && lease.Spec.RenewTime != nil {
		if next := lease.Spec.RenewTime.Add(leaseRenew); next.After(t.Now) {
			t.Later(key, next)
			return
		}
	}
	t.Later(key, t.Now.Add(leaseRenew))
	owner := metav1.OwnerReference{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}
	kind := metav1.TypeMeta{APIVersion: "coordination.k8s.io/v1", Kind: "Lease"}
	if lease != nil {
		lease.TypeMeta, lease.Spec, lease.OwnerReferences = kind, spec, []metav1.OwnerReference{owner}
		t.Update(kubelet(name), key, "", lease)
		return
	}
	t.Create(kubelet(name), key, cluster.Leases, &coordinationv1.Lease{
		TypeMeta:   kind,
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease, OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:       spec,
	})
}
