// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package revisioned holds the controllers of StatefulSets and DaemonSets, which
// keep the templates that they have had as ControllerRevisions.
package revisioned

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

const statefulSetController = step.KubeSystem + "statefulset-controller"

// ordered is one look at a StatefulSet.
type ordered struct {
	*turn
	key  storage.Key
	self *cluster.Object
	s    *appsv1.StatefulSet
	history
	// current is the revision that Pods had before the update to history.latest.
	current *appsv1.ControllerRevision
	// members by ordinal, condemned those beyond the replicas, last one first.
	members   map[int]*cluster.Object
	condemned []*cluster.Object
	// made and deleted are the ordinals of Pods that this turn makes and deletes.
	made, deleted map[int]bool
}

// StatefulSet requests the next changes of the Pods and the status of a StatefulSet.
func StatefulSet(common *cluster.Turn, key storage.Key) {
	t := &turn{common}
	self, s := t.Index.Objects[key], cluster.Stored[appsv1.StatefulSet](t.Turn, key)
	if self == nil || s == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(s.Spec.Selector)
	if err != nil || selector.Empty() {
		return
	}
	o := &ordered{turn: t, key: key, self: self, s: s, members: map[int]*cluster.Object{}, made: map[int]bool{}, deleted: map[int]bool{}}
	claimed := t.Claim(statefulSetController, self, cluster.KindOf("StatefulSet"), cluster.Pods, selector)
	o.history = t.historyOf(statefulSetController, self, s, "StatefulSet", &s.Spec.Template, s.Status.CollisionCount, nil)
	if o.current = o.named(s.Status.CurrentRevision); o.current == nil {
		o.current = o.latest
	}
	for _, p := range claimed {
		n, ok := o.ordinal(p)
		if !ok {
			continue
		}
		if o.members[n] = p; n < o.first() || n >= o.first()+int(*s.Spec.Replicas) {
			o.condemned = append(o.condemned, p)
		}
	}
	slices.SortFunc(o.condemned, func(a, b *cluster.Object) int {
		x, _ := o.ordinal(a)
		y, _ := o.ordinal(b)
		return cmp.Compare(y, x)
	})
	if !self.Deleting {
		o.act()
		t.truncate(statefulSetController, self, o.history, s.Spec.RevisionHistoryLimit, func(r *appsv1.ControllerRevision) bool {
			return r == o.current || slices.ContainsFunc(claimed, func(p *cluster.Object) bool { return p.Labels[appsv1.StatefulSetRevisionLabel] == r.Name })
		})
	}
	status := o.status()
	if equality.Semantic.DeepEqual(status, s.Status) {
		return
	}
	s.Status = status
	t.Update(statefulSetController, key, "status", s)
}

func (o *ordered) first() int {
	if o.s.Spec.Ordinals == nil {
		return 0
	}
	return int(o.s.Spec.Ordinals.Start)
}

// ordinal returns the number in the name of a Pod of the set.
func (o *ordered) ordinal(p *cluster.Object) (int, bool) {
	_, name := step.SplitName(p.Key.Name)
	number, ok := strings.CutPrefix(name, o.s.Name+"-")
	n, err := strconv.Atoi(number)
	return n, ok && err == nil && n >= 0
}

func (o *ordered) parallel() bool {
	return o.s.Spec.PodManagementPolicy == appsv1.ParallelPodManagement
}

// fit reports whether a Pod is available and not being deleted.
func (o *ordered) fit(p *cluster.Object) bool {
	return p != nil && !p.Deleting && p.Phase == corev1.PodRunning && o.Available(o.key, p, o.s.Spec.MinReadySeconds)
}

// act makes, deletes and replaces Pods: unless they are managed in parallel, it
// does so one by one, and waits for each.
func (o *ordered) act() {
	var unfit *cluster.Object
	for n := o.first(); n < o.first()+int(*o.s.Spec.Replicas); n++ {
		p := o.members[n]
		if p != nil && !o.fit(p) && unfit == nil {
			unfit = p
		}
		if o.member(n, p) && !o.parallel() {
			return
		}
	}
	for _, p := range slices.Backward(o.condemned) {
		if unfit == nil && !o.fit(p) {
			unfit = p
		}
	}
	for _, p := range o.condemned {
		o.condemn(p, unfit)
		if !o.parallel() {
			return
		}
	}
	if len(o.made)+len(o.deleted) == 0 && o.s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		o.roll()
	}
}

// member creates the Pod of an ordinal unless it exists, and reports whether the others wait for it.
func (o *ordered) member(n int, p *cluster.Object) bool {
	switch {
	case p == nil:
		if !o.createClaims(n) {
			return true
		}
		pod := o.pod(n)
		o.Create(statefulSetController, o.key, cluster.Pods, pod)
		o.tell("Create", fmt.Sprintf("Pod %s in StatefulSet %s", pod.Name, o.s.Name), "successful")
		o.made[n] = true
		return true
	case p.Ended() && !p.Deleting:
		o.remove(n, p)
		return true
	case p.Phase == corev1.PodPending:
		o.createClaims(n)
	}
	return !o.fit(p)
}

// condemn deletes a Pod beyond the replicas. One by one, a Pod that is not fit waits for the
// first of those.
func (o *ordered) condemn(p, unfit *cluster.Object) {
	if p.Deleting || !o.parallel() && !o.fit(p) && p != unfit {
		return
	}
	n, _ := o.ordinal(p)
	o.handOver(n, p)
	o.remove(n, p)
}

func (o *ordered) remove(n int, p *cluster.Object) {
	o.Delete(statefulSetController, o.key, p, metav1.DeleteOptions{})
	_, name := step.SplitName(p.Key.Name)
	o.tell("Delete", fmt.Sprintf("Pod %s in StatefulSet %s", name, o.s.Name), "successful")
	o.deleted[n] = true
}

// roll deletes Pods of older revisions, the last one first; the next steps
// create them again.
func (o *ordered) roll() {
	last, from, most := o.first()+int(*o.s.Spec.Replicas)-1, o.first(), 1
	if u := o.s.Spec.UpdateStrategy.RollingUpdate; u != nil {
		if u.Partition != nil {
			from += int(*u.Partition)
		}
		if u.MaxUnavailable != nil {
			n, _ := intstr.GetScaledValueFromIntOrPercent(u.MaxUnavailable, int(*o.s.Spec.Replicas), false) // was validated
			most = max(1, n)
		}
	}
	for n := o.first(); n <= last; n++ {
		if !o.fit(o.members[n]) {
			most--
		}
	}
	for n := last; n >= from && most > 0; n-- {
		if p := o.members[n]; p != nil && !p.Deleting && p.Labels[appsv1.StatefulSetRevisionLabel] != o.latest.Name {
			o.remove(n, p)
			most--
		}
	}
}

// pod makes the Pod of an ordinal: below the partition of an update it stays at
// the revision from before.
func (o *ordered) pod(n int) *corev1.Pod {
	template, revision := &o.s.Spec.Template, o.latest
	if u := o.s.Spec.UpdateStrategy; u.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		u.RollingUpdate != nil && u.RollingUpdate.Partition != nil && n < o.first()+int(*u.RollingUpdate.Partition) {
		if old := templateOf(o.current); old != nil {
			template, revision = old, o.current
		}
	}
	p := cluster.PodOf(template, "", cluster.Reference(cluster.KindOf("StatefulSet"), o.s.Name, o.s.UID))
	p.GenerateName, p.Name = "", o.s.Name+"-"+strconv.Itoa(n)
	p.Labels = cluster.With(p.Labels, appsv1.StatefulSetPodNameLabel, p.Name)
	p.Labels[appsv1.PodIndexLabel] = strconv.Itoa(n)
	p.Labels[appsv1.StatefulSetRevisionLabel] = revision.Name
	p.Spec.Hostname, p.Spec.Subdomain = p.Name, o.s.Spec.ServiceName
	var claimed []corev1.Volume
	for i := range o.s.Spec.VolumeClaimTemplates {
		name := o.s.Spec.VolumeClaimTemplates[i].Name
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
		claimed = append(claimed, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: o.claimName(i, n)},
		}})
	}
	p.Spec.Volumes = append(claimed, p.Spec.Volumes...)
	return p
}

func (o *ordered) claimName(i, n int) string {
	return o.s.Spec.VolumeClaimTemplates[i].Name + "-" + o.s.Name + "-" + strconv.Itoa(n)
}

func (o *ordered) claimKey(i, n int) storage.Key {
	return storage.Key{Bucket: cluster.Claims, Name: o.s.Namespace + "/" + o.claimName(i, n)}
}

// createClaims makes the claims of an ordinal that are missing. It is false
// while one of them is being deleted.
func (o *ordered) createClaims(n int) bool {
	for i := range o.s.Spec.VolumeClaimTemplates {
		if c := o.Index.Objects[o.claimKey(i, n)]; c != nil {
			if c.Deleting {
				return false
			}
			continue
		}
		c := o.s.Spec.VolumeClaimTemplates[i].DeepCopy()
		c.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"}
		c.Name, c.Namespace, c.Status = o.claimName(i, n), o.s.Namespace, corev1.PersistentVolumeClaimStatus{}
		labels := maps.Clone(c.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		maps.Copy(labels, o.s.Spec.Selector.MatchLabels)
		c.Labels = labels
		if policy := o.s.Spec.PersistentVolumeClaimRetentionPolicy; policy != nil && policy.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
			c.OwnerReferences = []metav1.OwnerReference{cluster.Reference(cluster.KindOf("StatefulSet"), o.s.Name, o.s.UID)}
		}
		o.Create(statefulSetController, o.key, cluster.Claims, c)
		o.tell("Create", fmt.Sprintf("Claim %s Pod %s-%d in StatefulSet %s", c.Name, o.s.Name, n, o.s.Name), "success")
	}
	return true
}

// tell records an Event of a request, once it has succeeded or failed.
func (o *ordered) tell(verb, what, success string) {
	note := cluster.Note{User: statefulSetController, About: o.key, UID: o.self.UID}
	note.Reason, note.Message = "Successful"+verb, fmt.Sprintf("%s %s %s", verb, what, success)
	o.Tell(note)
	note.Warning, note.Failed = true, true
	note.Reason, note.Message = "Failed"+verb, fmt.Sprintf("%s %s failed error: ", verb, what)
	o.Tell(note)
}

// handOver makes a condemned Pod the owner of its claims, if the retention policy deletes them with it.
func (o *ordered) handOver(n int, p *cluster.Object) {
	policy := o.s.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil || policy.WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return
	}
	_, name := step.SplitName(p.Key.Name)
	for i := range o.s.Spec.VolumeClaimTemplates {
		key := o.claimKey(i, n)
		rec := o.View.Get(key)
		if rec == nil {
			continue
		}
		body := step.WithMetadata(rec, map[string]any{
			"ownerReferences": []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: name, UID: p.UID}},
		})
		o.Write(key, step.Put(statefulSetController, cluster.ResourceOf(key.Bucket).Object(key), body, step.Subject{Key: o.key}))
	}
}

// status counts the Pods, with what this turn has done.
func (o *ordered) status() appsv1.StatefulSetStatus {
	collisions := int32(0)
	if n := o.s.Status.CollisionCount; n != nil {
		collisions = *n
	}
	s := appsv1.StatefulSetStatus{
		ObservedGeneration: o.s.Generation, CurrentRevision: o.current.Name, UpdateRevision: o.latest.Name,
		CollisionCount: &collisions, Conditions: o.s.Status.Conditions,
	}
	for n, p := range o.members {
		s.Replicas++
		if p.Ready && p.Phase == corev1.PodRunning {
			s.ReadyReplicas++
			if o.Available(o.key, p, o.s.Spec.MinReadySeconds) {
				s.AvailableReplicas++
			}
		}
		if p.Deleting || o.deleted[n] {
			continue
		}
		switch revision := p.Labels[appsv1.StatefulSetRevisionLabel]; {
		case revision == o.current.Name && revision == o.latest.Name:
			s.CurrentReplicas++
			s.UpdatedReplicas++
		case revision == o.current.Name:
			s.CurrentReplicas++
		case revision == o.latest.Name:
			s.UpdatedReplicas++
		}
	}
	want := *o.s.Spec.Replicas
	if o.s.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		s.UpdatedReplicas == want && s.ReadyReplicas == want && s.Replicas == want {
		s.CurrentReplicas, s.CurrentRevision = s.UpdatedReplicas, s.UpdateRevision
	}
	return s
}

// turn is a step of the controllers of this package.
type turn struct{ *cluster.Turn }
