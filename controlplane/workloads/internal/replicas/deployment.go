// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replicas holds the controllers of Deployments, ReplicaSets and
// ReplicationControllers.
package replicas

import (
	"fmt"
	"maps"
	"math"
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

// Annotations of Deployments and their ReplicaSets.
const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	maxAnnotation      = "deployment.kubernetes.io/max-replicas"
)

const deploymentController = step.KubeSystem + "deployment-controller"

// rollout is one step of a Deployment and its ReplicaSets.
type rollout struct {
	*turn
	key storage.Key
	d   *appsv1.Deployment
	// now is the ReplicaSet of the current template, nil if there is none yet;
	// old are the others, oldest first. Both change as they are scaled.
	now *appsv1.ReplicaSet
	old []*appsv1.ReplicaSet
	// before is the status as it is stored.
	before appsv1.DeploymentStatus
	// annotated reports that the revision of the Deployment has changed.
	annotated bool
	// surge and unavailable are how many Pods a rolling update may add and leave out.
	surge, unavailable int32
}

// Deployment requests the next changes of the ReplicaSets and the status of a Deployment.
func Deployment(common *cluster.Turn, key storage.Key) {
	t := &turn{common}
	self, d := t.Index.Objects[key], cluster.Stored[appsv1.Deployment](t.Turn, key)
	if self == nil || d == nil {
		return
	}
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || selector.Empty() {
		return
	}
	r := &rollout{turn: t, key: key, d: d, before: *d.Status.DeepCopy()}
	r.surge, r.unavailable = fenceposts(d)
	for _, o := range t.Claim(deploymentController, self, cluster.KindOf("Deployment"), cluster.ReplicaSets, selector) {
		if set := cluster.Stored[appsv1.ReplicaSet](t.Turn, o.Key); set != nil {
			r.old = append(r.old, set)
		}
	}
	r.findCurrent()
	if self.Deleting {
		r.finish(r.status())
		return
	}
	if r.pauseOrResume() {
		r.finish(d.Status)
		return
	}
	if d.Spec.Paused || r.resized() {
		r.syncRevision(false)
		r.scale()
		if d.Spec.Paused {
			r.cleanUp()
		}
		r.finish(r.status())
		return
	}
	if d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
		r.recreate()
	} else {
		r.roll()
	}
	r.finish(r.progress(r.status()))
}

// fenceposts resolves maxSurge and maxUnavailable to numbers of Pods.
func fenceposts(d *appsv1.Deployment) (surge, unavailable int32) {
	rolling := d.Spec.Strategy.RollingUpdate
	if d.Spec.Strategy.Type != appsv1.RollingUpdateDeploymentStrategyType || *d.Spec.Replicas == 0 || rolling == nil {
		return 0, 0
	}
	zero := intstr.FromInt32(0)
	n := int(*d.Spec.Replicas)
	most, _ := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxSurge, zero), n, true) // was validated
	fewer, _ := intstr.GetScaledValueFromIntOrPercent(intstr.ValueOrDefault(rolling.MaxUnavailable, zero), n, false)
	if most == 0 && fewer == 0 {
		fewer = 1 // with 0 and 0 the rollout could not progress
	}
	return int32(most), min(int32(fewer), *d.Spec.Replicas)
}

// findCurrent finds the ReplicaSet of the current template: the oldest, should
// there be several.
func (r *rollout) findCurrent() {
	slices.SortFunc(r.old, func(a, b *appsv1.ReplicaSet) int {
		if c := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); c != 0 {
			return c
		}
		return strings.Compare(a.Name, b.Name)
	})
	i := slices.IndexFunc(r.old, func(set *appsv1.ReplicaSet) bool { return sameTemplate(&set.Spec.Template, &r.d.Spec.Template) })
	if i >= 0 {
		r.now = r.old[i]
		r.old = slices.Delete(r.old, i, i+1)
	}
}

// sameTemplate compares templates without the label that names them.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	a, b = a.DeepCopy(), b.DeepCopy()
	delete(a.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	delete(b.Labels, appsv1.DefaultDeploymentUniqueLabelKey)
	return equality.Semantic.DeepEqual(a, b)
}

// all are the ReplicaSets, the current one last.
func (r *rollout) all() []*appsv1.ReplicaSet {
	if r.now == nil {
		return r.old
	}
	return append(slices.Clip(r.old), r.now)
}

// active are those of a list that want Pods.
func active(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	var out []*appsv1.ReplicaSet
	for _, set := range sets {
		if *set.Spec.Replicas > 0 {
			out = append(out, set)
		}
	}
	return out
}

// pauseOrResume sets the condition Progressing when a Deployment is paused or resumed.
func (r *rollout) pauseOrResume() bool {
	if !r.hasDeadline() {
		return false
	}
	c := condition(&r.d.Status, appsv1.DeploymentProgressing)
	paused := c != nil && c.Reason == "DeploymentPaused"
	switch {
	case c != nil && c.Reason == timedOut:
		return false
	case r.d.Spec.Paused && !paused:
		r.set(&r.d.Status, appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentPaused", "Deployment is paused")
	case !r.d.Spec.Paused && paused:
		r.set(&r.d.Status, appsv1.DeploymentProgressing, corev1.ConditionUnknown, "DeploymentResumed", "Deployment is resumed")
	default:
		return false
	}
	return true
}

func (r *rollout) hasDeadline() bool {
	s := r.d.Spec.ProgressDeadlineSeconds
	return s != nil && *s != math.MaxInt32
}

// syncRevision sets the revision of the current template on its ReplicaSet and on the Deployment.
func (r *rollout) syncRevision(create bool) {
	last := int64(0)
	for _, set := range r.old {
		last = max(last, revisionOf(set.Annotations))
	}
	switch {
	case r.now != nil:
		set := r.now.DeepCopy()
		changed := r.annotate(set, last+1)
		if changed || set.Spec.MinReadySeconds != r.d.Spec.MinReadySeconds {
			set.Spec.MinReadySeconds = r.d.Spec.MinReadySeconds
			r.write(set)
		}
		if r.hasDeadline() && condition(&r.d.Status, appsv1.DeploymentProgressing) == nil {
			r.set(&r.d.Status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "FoundNewReplicaSet", fmt.Sprintf("Found new replica set %q", set.Name))
		}
	case create:
		r.createCurrent(last + 1)
	default:
		return
	}
	if number := r.now.Annotations[revisionAnnotation]; r.d.Annotations[revisionAnnotation] != number {
		r.d.Annotations = maps.Clone(r.d.Annotations)
		if r.d.Annotations == nil {
			r.d.Annotations = map[string]string{}
		}
		r.d.Annotations[revisionAnnotation] = number
		r.annotated = true
	}
}

// createCurrent makes the ReplicaSet of the current template.
func (r *rollout) createCurrent(revision int64) {
	d := r.d
	name := storage.Key{Bucket: cluster.ReplicaSets}
	hash := cluster.HashOf(&d.Spec.Template, d.Status.CollisionCount)
	name.Name = r.d.Namespace + "/" + d.Name + "-" + hash
	if r.Index.Objects[name] != nil {
		// Another template, or owner, has the same hash.
		n := int32(1)
		if d.Status.CollisionCount != nil {
			n += *d.Status.CollisionCount
		}
		d.Status.CollisionCount = &n
		hash = cluster.HashOf(&d.Spec.Template, &n)
	}
	set := &appsv1.ReplicaSet{
		TypeMeta: metav1.TypeMeta{APIVersion: "apps/v1", Kind: "ReplicaSet"},
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name + "-" + hash, Namespace: d.Namespace,
			OwnerReferences: []metav1.OwnerReference{cluster.Reference(cluster.KindOf("Deployment"), d.Name, d.UID)},
		},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32), MinReadySeconds: d.Spec.MinReadySeconds,
			Selector: d.Spec.Selector.DeepCopy(), Template: *d.Spec.Template.DeepCopy(),
		},
	}
	set.Spec.Template.Labels = cluster.With(set.Spec.Template.Labels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	set.Spec.Selector.MatchLabels = cluster.With(set.Spec.Selector.MatchLabels, appsv1.DefaultDeploymentUniqueLabelKey, hash)
	set.Labels = set.Spec.Template.Labels
	r.now = set
	*set.Spec.Replicas = r.mayHave()
	r.annotate(set, revision)
	r.note(set)
	if message := r.Failures[r.key]; message != "" && r.hasDeadline() {
		r.set(&d.Status, appsv1.DeploymentProgressing, corev1.ConditionFalse, "ReplicaSetCreateError",
			fmt.Sprintf("Failed to create new replica set %q: %v", set.Name, message))
	} else if r.hasDeadline() {
		r.set(&d.Status, appsv1.DeploymentProgressing, corev1.ConditionTrue, "NewReplicaSetCreated", fmt.Sprintf("Created new replica set %q", set.Name))
	}
	r.Create(deploymentController, r.key, cluster.ReplicaSets, set)
	r.tell(fmt.Sprintf("Scaled up replica set %s from 0 to %d", set.Name, *set.Spec.Replicas))
}

func revisionOf(annotations map[string]string) int64 {
	n, _ := strconv.ParseInt(annotations[revisionAnnotation], 10, 64) // 0 without one
	return n
}

// annotate copies the annotations of the Deployment and its revision to a
// ReplicaSet, and reports whether that changed the ReplicaSet.
func (r *rollout) annotate(set *appsv1.ReplicaSet, revision int64) bool {
	before := set.Annotations
	set.Annotations = maps.Clone(before)
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	for key, value := range r.d.Annotations {
		switch key {
		case corev1.LastAppliedConfigAnnotation, revisionAnnotation, historyAnnotation, desiredAnnotation, maxAnnotation, appsv1.DeprecatedRollbackTo:
		default:
			set.Annotations[key] = value
		}
	}
	if had := revisionOf(before); had < revision {
		set.Annotations[revisionAnnotation] = strconv.FormatInt(revision, 10)
		if had > 0 { // a rollback to this ReplicaSet
			set.Annotations[historyAnnotation] = strings.TrimPrefix(before[historyAnnotation]+","+strconv.FormatInt(had, 10), ",")
		}
	}
	return !maps.Equal(before, set.Annotations)
}

// note sets the annotations of a ReplicaSet that hold the size of the Deployment.
func (r *rollout) note(set *appsv1.ReplicaSet) {
	set.Annotations = cluster.With(set.Annotations, desiredAnnotation, fmt.Sprint(*r.d.Spec.Replicas))
	set.Annotations[maxAnnotation] = fmt.Sprint(*r.d.Spec.Replicas + r.surge)
}

// write updates a ReplicaSet, and replaces the copy that the rollout works with.
func (r *rollout) write(set *appsv1.ReplicaSet) {
	key := storage.Key{Bucket: cluster.ReplicaSets, Name: set.Namespace + "/" + set.Name}
	i := slices.IndexFunc(r.Requests, func(q step.Request) bool {
		return q.Subject.Key == r.key && q.Path == cluster.ResourceOf(cluster.ReplicaSets).Object(key)
	})
	if i >= 0 {
		r.Withdraw(i) // the new request includes its change
	}
	r.Update(deploymentController, key, "", set)
	r.Requests[len(r.Requests)-1].Subject.Key = r.key
	if r.now != nil && r.now.UID == set.UID {
		r.now = set
	}
	for i := range r.old {
		if r.old[i].UID == set.UID {
			r.old[i] = set
		}
	}
}

// tell records an Event of the size of a ReplicaSet.
func (r *rollout) tell(message string) {
	r.Tell(cluster.Note{User: deploymentController, About: r.key, UID: r.d.UID, Reason: "ScalingReplicaSet", Message: message})
}

// finish writes the status of the Deployment if it has changed.
func (r *rollout) finish(status appsv1.DeploymentStatus) {
	if !r.annotated && equality.Semantic.DeepEqual(r.before, status) {
		return
	}
	r.d.Status = status
	r.Update(deploymentController, r.key, "status", r.d)
}

// turn is a step of the controllers of this package.
type turn struct{ *cluster.Turn }
