// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package replicas

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

func wanted(sets []*appsv1.ReplicaSet) (n int32) {
	for _, set := range sets {
		n += *set.Spec.Replicas
	}
	return n
}

func available(sets []*appsv1.ReplicaSet) (n int32) {
	for _, set := range sets {
		n += set.Status.AvailableReplicas
	}
	return n
}

// mayHave returns how many Pods maxSurge allows the current ReplicaSet.
func (r *rollout) mayHave() int32 {
	want, has := *r.d.Spec.Replicas, *r.now.Spec.Replicas
	if r.d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		return want
	}
	room := want + r.surge - wanted(r.all())
	if room <= 0 {
		return has
	}
	return has + min(room, want-has)
}

// resize changes the size of a ReplicaSet and reports whether it had another.
func (r *rollout) resize(set *appsv1.ReplicaSet, n int32, note bool) bool {
	had := *set.Spec.Replicas
	if had == n {
		desired, most := fmt.Sprint(*r.d.Spec.Replicas), fmt.Sprint(*r.d.Spec.Replicas+r.surge)
		if !note || set.Annotations[desiredAnnotation] == desired && set.Annotations[maxAnnotation] == most {
			return false
		}
	}
	set = set.DeepCopy()
	*set.Spec.Replicas = n
	r.note(set)
	r.write(set)
	switch {
	case had < n:
		r.tell(fmt.Sprintf("Scaled up replica set %s from %d to %d", set.Name, had, n))
	case had > n:
		r.tell(fmt.Sprintf("Scaled down replica set %s from %d to %d", set.Name, had, n))
	}
	return had != n
}

// roll replaces Pods within the bounds of the strategy: the current ReplicaSet
// grows first, then the others shrink.
func (r *rollout) roll() {
	r.syncRevision(true)
	want, has := *r.d.Spec.Replicas, *r.now.Spec.Replicas
	switch {
	case has > want:
		if r.resize(r.now, want, false) {
			return
		}
	case has < want:
		if r.resize(r.now, r.mayHave(), false) {
			return
		}
	}
	if r.shrink() {
		return
	}
	if r.complete(&r.d.Status) {
		r.cleanUp()
	}
}

// shrink takes Pods from the old ReplicaSets, those that are not available
// first, and reports whether there were any to take.
func (r *rollout) shrink() bool {
	old := active(r.old)
	if wanted(old) == 0 {
		return false
	}
	least := *r.d.Spec.Replicas - r.unavailable
	most := wanted(r.all()) - least - (*r.now.Spec.Replicas - r.now.Status.AvailableReplicas)
	if most <= 0 {
		return false
	}
	taken := int32(0)
	left := map[string]int32{}
	for _, set := range old {
		left[set.Name] = *set.Spec.Replicas
		if n := min(most-taken, *set.Spec.Replicas-set.Status.AvailableReplicas); n > 0 {
			left[set.Name] -= n
			taken += n
		}
	}
	spare := available(active(r.old)) + r.now.Status.AvailableReplicas - least
	for _, set := range old {
		if n := min(left[set.Name], spare); n > 0 {
			left[set.Name] -= n
			spare -= n
			taken += n
		}
	}
	for _, set := range old {
		r.resize(set, left[set.Name], false)
	}
	return taken > 0
}

// recreate deletes all old Pods before it creates new ones.
func (r *rollout) recreate() {
	r.syncRevision(false)
	shrunk := false
	for _, set := range active(r.old) {
		shrunk = r.resize(set, 0, false) || shrunk
	}
	if shrunk || r.oldPods() {
		return
	}
	if r.now == nil {
		r.syncRevision(true)
	}
	if r.now.UID != "" {
		r.resize(r.now, *r.d.Spec.Replicas, false)
	}
	if r.complete(&r.d.Status) {
		r.cleanUp()
	}
}

// oldPods reports whether Pods of old ReplicaSets are left.
func (r *rollout) oldPods() bool {
	for _, set := range r.old {
		if set.Status.Replicas > 0 {
			return true
		}
		for _, p := range r.Index.ChildrenOf(set.UID, cluster.Pods) {
			if !p.Ended() {
				return true
			}
		}
	}
	return false
}

// resized reports whether the number of replicas of the Deployment has changed.
func (r *rollout) resized() bool {
	for _, set := range active(r.all()) {
		if n, err := strconv.Atoi(set.Annotations[desiredAnnotation]); err == nil && n >= 0 && int32(n) != *r.d.Spec.Replicas {
			return true
		}
	}
	return false
}

// scale spreads a new size over the ReplicaSets.
func (r *rollout) scale() {
	want := *r.d.Spec.Replicas
	living := active(r.all())
	switch {
	case len(living) == 1:
		r.resize(living[0], want, true)
		return
	case len(living) == 0:
		if latest := r.latest(); latest != nil {
			r.resize(latest, want, true)
		}
		return
	case r.saturated():
		for _, set := range active(r.old) {
			r.resize(set, 0, true)
		}
		return
	case r.d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType:
		return
	}
	allowed := int32(0)
	if want > 0 {
		allowed = want + r.surge
	}
	extra := allowed - wanted(living)
	slices.SortFunc(living, func(a, b *appsv1.ReplicaSet) int {
		if *a.Spec.Replicas != *b.Spec.Replicas {
			return cmp.Compare(*b.Spec.Replicas, *a.Spec.Replicas)
		}
		older := cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
		if extra > 0 { // newer first
			return -older
		}
		return older
	})
	sizes, added := make([]int32, len(living)), int32(0)
	for i, set := range living {
		share := r.share(set, extra, added)
		sizes[i] = *set.Spec.Replicas + share
		added += share
	}
	sizes[0] = max(0, sizes[0]+extra-added)
	for i, set := range living {
		r.resize(set, sizes[i], true)
	}
}

// share is the part of extra Pods, which may be negative, that a ReplicaSet gets
// in proportion to its size.
func (r *rollout) share(set *appsv1.ReplicaSet, extra, added int32) int32 {
	if extra == 0 || extra == added {
		return 0
	}
	n, left := r.fraction(set), extra-added
	if extra > 0 {
		return min(n, left)
	}
	return max(n, left)
}

func (r *rollout) fraction(set *appsv1.ReplicaSet) int32 {
	has := *set.Spec.Replicas
	if *r.d.Spec.Replicas == 0 {
		return -has
	}
	before := r.d.Status.Replicas
	if n, err := strconv.Atoi(set.Annotations[maxAnnotation]); err == nil && n > 0 {
		before = int32(n)
	}
	if before == 0 {
		return 0
	}
	return int32(math.Round(float64(has*(*r.d.Spec.Replicas+r.surge))/float64(before))) - has
}

// latest is the ReplicaSet that was current last.
func (r *rollout) latest() *appsv1.ReplicaSet {
	if r.now != nil {
		return r.now
	}
	if len(r.old) == 0 {
		return nil
	}
	return r.old[len(r.old)-1]
}

// saturated reports whether the current ReplicaSet has all Pods of the Deployment, and they are available.
func (r *rollout) saturated() bool {
	want := *r.d.Spec.Replicas
	return r.now != nil && r.now.Annotations[desiredAnnotation] == fmt.Sprint(want) &&
		*r.now.Spec.Replicas == want && r.now.Status.AvailableReplicas == want
}

// cleanUp deletes the old ReplicaSets beyond the history that is to be kept.
func (r *rollout) cleanUp() {
	limit := r.d.Spec.RevisionHistoryLimit
	if limit == nil || *limit == math.MaxInt32 {
		return
	}
	alive := slices.DeleteFunc(slices.Clone(r.old), func(set *appsv1.ReplicaSet) bool { return set.DeletionTimestamp != nil })
	slices.SortStableFunc(alive, func(a, b *appsv1.ReplicaSet) int { return int(revisionOf(a.Annotations) - revisionOf(b.Annotations)) })
	for _, set := range alive[:max(0, len(alive)-int(*limit))] {
		if set.Status.Replicas != 0 || *set.Spec.Replicas != 0 || set.Generation > set.Status.ObservedGeneration {
			continue
		}
		background := metav1.DeletePropagationBackground
		r.Delete(deploymentController, r.key, r.Index.Objects[storage.Key{Bucket: cluster.ReplicaSets, Name: set.Namespace + "/" + set.Name}],
			metav1.DeleteOptions{PropagationPolicy: &background})
	}
}

// status counts what the ReplicaSets report.
func (r *rollout) status() appsv1.DeploymentStatus {
	terminating := int32(0)
	s := appsv1.DeploymentStatus{
		ObservedGeneration: r.d.Generation, CollisionCount: r.d.Status.CollisionCount,
		Conditions: slices.Clone(r.d.Status.Conditions), TerminatingReplicas: &terminating,
	}
	all := r.all()
	for _, set := range all {
		s.Replicas += set.Status.Replicas
		s.ReadyReplicas += set.Status.ReadyReplicas
		s.AvailableReplicas += set.Status.AvailableReplicas
		if n := set.Status.TerminatingReplicas; n != nil {
			terminating += *n
		} else {
			s.TerminatingReplicas = nil // not known yet
		}
	}
	if r.now != nil {
		s.UpdatedReplicas = r.now.Status.Replicas
	}
	s.UnavailableReplicas = max(0, wanted(all)-s.AvailableReplicas)
	if s.AvailableReplicas >= *r.d.Spec.Replicas-r.unavailable {
		r.set(&s, appsv1.DeploymentAvailable, corev1.ConditionTrue, "MinimumReplicasAvailable", "Deployment has minimum availability.")
	} else {
		r.set(&s, appsv1.DeploymentAvailable, corev1.ConditionFalse, "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
	}
	return s
}

// complete reports whether a status is that of a finished rollout.
func (r *rollout) complete(s *appsv1.DeploymentStatus) bool {
	want := *r.d.Spec.Replicas
	return s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want && s.ObservedGeneration >= r.d.Generation
}

const (
	timedOut     = "ProgressDeadlineExceeded"
	newAvailable = "NewReplicaSetAvailable"
)

// progress sets the condition Progressing of a status.
func (r *rollout) progress(s appsv1.DeploymentStatus) appsv1.DeploymentStatus {
	if !r.hasDeadline() {
		unset(&s, appsv1.DeploymentProgressing)
	}
	current := condition(&r.d.Status, appsv1.DeploymentProgressing)
	done := s.Replicas == s.UpdatedReplicas && current != nil && current.Reason == newAvailable
	what := fmt.Sprintf("Deployment %q", r.d.Name)
	if r.now != nil {
		what = fmt.Sprintf("ReplicaSet %q", r.now.Name)
	}
	if r.hasDeadline() && !done {
		switch deadline := r.deadline(current); {
		case r.complete(&s):
			r.set(&s, appsv1.DeploymentProgressing, corev1.ConditionTrue, newAvailable, what+" has successfully progressed.")
		case r.moved(&s):
			since := metav1.Time{}
			if current != nil && current.Status == corev1.ConditionTrue {
				since = current.LastTransitionTime
			}
			unset(&s, appsv1.DeploymentProgressing)
			r.set(&s, appsv1.DeploymentProgressing, corev1.ConditionTrue, "ReplicaSetUpdated", what+" is progressing.")
			if !since.IsZero() {
				s.Conditions[len(s.Conditions)-1].LastTransitionTime = since
			}
		case current == nil || current.Reason == newAvailable || current.Reason == timedOut:
		case deadline.Before(r.turn.Now):
			r.set(&s, appsv1.DeploymentProgressing, corev1.ConditionFalse, timedOut, what+" has timed out progressing.")
		}
	}
	if c := condition(&s, appsv1.DeploymentProgressing); c != nil && r.hasDeadline() && c.Reason != timedOut && c.Reason != newAvailable && !r.complete(&s) {
		r.Later(r.key, r.deadline(c).Add(time.Second))
	}
	r.replicaFailure(&s)
	return s
}

// deadline is when a rollout without progress has timed out.
func (r *rollout) deadline(c *appsv1.DeploymentCondition) time.Time {
	if c == nil {
		return time.Time{}
	}
	return c.LastUpdateTime.Add(time.Duration(*r.d.Spec.ProgressDeadlineSeconds) * time.Second)
}

// moved reports whether a status shows progress.
func (r *rollout) moved(s *appsv1.DeploymentStatus) bool {
	was := &r.d.Status
	return s.UpdatedReplicas > was.UpdatedReplicas || s.Replicas-s.UpdatedReplicas < was.Replicas-was.UpdatedReplicas ||
		s.ReadyReplicas > was.ReadyReplicas || s.AvailableReplicas > was.AvailableReplicas
}

// replicaFailure returns the condition ReplicaFailure of a ReplicaSet, of the current one first.
func (r *rollout) replicaFailure(s *appsv1.DeploymentStatus) {
	all := r.all()
	for _, set := range slices.Backward(all) {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				r.set(s, appsv1.DeploymentReplicaFailure, c.Status, c.Reason, c.Message)
				return
			}
		}
	}
	unset(s, appsv1.DeploymentReplicaFailure)
}

func condition(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) *appsv1.DeploymentCondition {
	for i := range s.Conditions {
		if s.Conditions[i].Type == kind {
			return &s.Conditions[i]
		}
	}
	return nil
}

// set sets a condition unless its status and reason are as they were.
func (r *rollout) set(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType, status corev1.ConditionStatus, reason, message string) {
	c := appsv1.DeploymentCondition{
		Type: kind, Status: status, Reason: reason, Message: message, LastUpdateTime: r.Stamp(), LastTransitionTime: r.Stamp(),
	}
	if was := condition(s, kind); was != nil {
		if was.Status == status && was.Reason == reason {
			return
		}
		if was.Status == status {
			c.LastTransitionTime = was.LastTransitionTime
		}
	}
	unset(s, kind)
	s.Conditions = append(s.Conditions, c)
}

func unset(s *appsv1.DeploymentStatus, kind appsv1.DeploymentConditionType) {
	s.Conditions = slices.DeleteFunc(slices.Clone(s.Conditions), func(c appsv1.DeploymentCondition) bool { return c.Type == kind })
}
