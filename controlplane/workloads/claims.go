// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/controlplane/workloads/internal/scheduler"
	"github.com/steer-dev/steer/storage"
)

const ephemeralVolumes = step.KubeSystem + "ephemeral-volume-controller"

// volumesOf returns what the claims of a Pod require of its node. wait is set while this package
// is about to create or bind one of them.
func (t *visit) volumesOf(p *cluster.Object) (v scheduler.Volumes, wait bool) {
	if len(p.Demand.Claims) == 0 {
		return v, false
	}
	namespace, name := step.SplitName(p.Key.Name)
	var claims []*corev1.PersistentVolumeClaim
	for _, c := range p.Demand.Claims {
		called := c.Name
		if c.Ephemeral {
			called = name + "-" + c.Name
		}
		claim := cluster.Stored[corev1.PersistentVolumeClaim](t.Turn, storage.Key{Bucket: cluster.Claims, Name: namespace + "/" + called})
		switch {
		case claim == nil && c.Ephemeral:
			t.createClaim(p, c.Name, called)
			wait = true
		case claim == nil:
			return scheduler.Volumes{Unbound: fmt.Sprintf("persistentvolumeclaim %q not found", called)}, wait
		case c.Ephemeral && !metav1.IsControlledBy(claim, &metav1.ObjectMeta{UID: p.UID}):
			return scheduler.Volumes{Unbound: fmt.Sprintf("PVC %s was not created for pod %s (pod is not owner)", claim.Namespace+"/"+claim.Name, p.Key.Name)}, wait
		case claim.Status.Phase == corev1.ClaimLost:
			return scheduler.Volumes{Unbound: fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", called, claim.Spec.VolumeName)}, wait
		case claim.DeletionTimestamp != nil:
			return scheduler.Volumes{Unbound: fmt.Sprintf("persistentvolumeclaim %q is being deleted", called)}, wait
		default:
			claims = append(claims, claim)
		}
	}
	lost := ""
	for _, claim := range claims {
		if claim.Spec.VolumeName == "" || claim.Annotations[bindCompleted] == "" {
			if !t.binds(claim) {
				v.Unbound = "pod has unbound immediate PersistentVolumeClaims"
			}
			wait = wait || v.Unbound == ""
			continue
		}
		volume := cluster.Stored[corev1.PersistentVolume](t.Turn, storage.Key{Bucket: cluster.Volumes, Name: claim.Spec.VolumeName})
		switch {
		case volume == nil:
			lost = fmt.Sprintf("persistentvolume %q not found", claim.Spec.VolumeName)
		case volume.Spec.NodeAffinity != nil:
			v.Nodes = append(v.Nodes, scheduler.SelectNodesOfVolume(volume.Spec.NodeAffinity))
		}
		v.InUse = v.InUse || slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) && t.isUsed(namespace, claim.Name)
	}
	wait = wait && v.Unbound == ""
	v.Unbound = cmp.Or(v.Unbound, lost)
	return v, wait
}

// binds reports whether a claim is one that [visit.lookClaim] binds soon.
func (t *visit) binds(c *corev1.PersistentVolumeClaim) bool {
	if t.Failures[storage.Key{Bucket: cluster.Claims, Name: c.Namespace + "/" + c.Name}] != "" {
		return false
	}
	if c.Spec.VolumeName == "" {
		return true
	}
	v := cluster.Stored[corev1.PersistentVolume](t.Turn, storage.Key{Bucket: cluster.Volumes, Name: c.Spec.VolumeName})
	return v != nil && (v.Spec.ClaimRef == nil || v.Spec.ClaimRef.UID == c.UID || v.Spec.ClaimRef.UID == "" && isFor(v, c))
}

// isFor reports whether a volume names a claim.
func isFor(v *corev1.PersistentVolume, c *corev1.PersistentVolumeClaim) bool {
	return v.Spec.ClaimRef.Namespace == c.Namespace && v.Spec.ClaimRef.Name == c.Name
}

// isUsed reports whether a Pod that has a node, or is given one now, mounts a claim.
func (t *visit) isUsed(namespace, claim string) bool {
	for other := range t.rooms.Bound(namespace) {
		if slices.Contains(other.Demand.Claims, scheduler.Claim{Name: claim}) {
			return true
		}
	}
	return false
}

// createClaim creates the claim of a generic ephemeral volume.
func (t *visit) createClaim(p *cluster.Object, volume, name string) {
	pod := cluster.Stored[corev1.Pod](t.Turn, p.Key)
	if pod == nil {
		return
	}
	i := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == volume && v.Ephemeral != nil })
	if i < 0 || pod.Spec.Volumes[i].Ephemeral.VolumeClaimTemplate == nil {
		return
	}
	template := pod.Spec.Volumes[i].Ephemeral.VolumeClaimTemplate
	t.Create(ephemeralVolumes, p.Key, cluster.Claims, &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: template.Labels, Annotations: template.Annotations,
			OwnerReferences: []metav1.OwnerReference{cluster.Reference(corev1.SchemeGroupVersion.WithKind("Pod"), pod.Name, pod.UID)},
		},
		Spec: template.Spec,
	})
}
