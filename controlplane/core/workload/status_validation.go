// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// counted is one number of a status.
type counted struct {
	name string
	n    int32
}

const moreThanAll = "cannot be greater than status.replicas"

// checkCounts has the rules of numbers of which the first is all there are;
// those that say so cannot be more.
func checkCounts(f *valid.Field, all int32, counts ...counted) {
	for _, c := range counts {
		if c.n > all {
			f.Invalid(c.name, c.n, moreThanAll)
		}
	}
}

func checkCollisions(f *valid.Field, now, before *int32) {
	if before != nil && (now == nil || *now < *before) {
		f.Invalid("collisionCount", kind.Value(now), "cannot be decremented")
	}
}

func validateDeploymentStatus(d, old *appsv1.Deployment) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &d.Status
	f := root.Child("status")
	f.NotNegative("observedGeneration", s.ObservedGeneration)
	for _, c := range []counted{
		{"replicas", s.Replicas}, {"updatedReplicas", s.UpdatedReplicas}, {"readyReplicas", s.ReadyReplicas},
		{"availableReplicas", s.AvailableReplicas}, {"unavailableReplicas", s.UnavailableReplicas},
		{"terminatingReplicas", kind.Value(s.TerminatingReplicas)}, {"collisionCount", kind.Value(s.CollisionCount)},
	} {
		f.NotNegative(c.name, int64(c.n))
	}
	checkCounts(&f, s.Replicas, counted{"updatedReplicas", s.UpdatedReplicas}, counted{"readyReplicas", s.ReadyReplicas},
		counted{"availableReplicas", s.AvailableReplicas})
	if s.AvailableReplicas > s.ReadyReplicas {
		f.Invalid("availableReplicas", s.AvailableReplicas, "cannot be greater than readyReplicas")
	}
	checkCollisions(&f, s.CollisionCount, old.Status.CollisionCount)
	return errs
}

func validateReplicaSetStatus(r, _ *appsv1.ReplicaSet) field.ErrorList {
	s := &r.Status
	return replicaStatus(s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas, s.ObservedGeneration, s.TerminatingReplicas)
}

func validateReplicationControllerStatus(r, _ *corev1.ReplicationController) field.ErrorList {
	s := &r.Status
	return replicaStatus(s.Replicas, s.FullyLabeledReplicas, s.ReadyReplicas, s.AvailableReplicas, s.ObservedGeneration, nil)
}

func replicaStatus(all, labelled, ready, available int32, generation int64, terminating *int32) field.ErrorList {
	var errs field.ErrorList
	root := valid.Root(&errs)
	f := root.Child("status")
	f.NotNegative("replicas", int64(all))
	f.NotNegative("fullyLabeledReplicas", int64(labelled))
	f.NotNegative("readyReplicas", int64(ready))
	f.NotNegative("availableReplicas", int64(available))
	f.NotNegative("observedGeneration", generation)
	notNegative(&f, "terminatingReplicas", terminating)
	checkCounts(&f, all, counted{"fullyLabeledReplicas", labelled}, counted{"readyReplicas", ready}, counted{"availableReplicas", available})
	if available > ready {
		f.Invalid("availableReplicas", available, "cannot be greater than readyReplicas")
	}
	return errs
}

func validateStatefulSetStatus(set, old *appsv1.StatefulSet) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &set.Status
	f := root.Child("status")
	for _, c := range []counted{
		{"replicas", s.Replicas}, {"readyReplicas", s.ReadyReplicas}, {"currentReplicas", s.CurrentReplicas},
		{"updatedReplicas", s.UpdatedReplicas}, {"availableReplicas", s.AvailableReplicas},
	} {
		f.NotNegative(c.name, int64(c.n))
	}
	f.NotNegative("observedGeneration", s.ObservedGeneration)
	notNegative(&f, "collisionCount", s.CollisionCount)
	checkCounts(&f, s.Replicas, counted{"readyReplicas", s.ReadyReplicas}, counted{"currentReplicas", s.CurrentReplicas},
		counted{"updatedReplicas", s.UpdatedReplicas}, counted{"availableReplicas", s.AvailableReplicas})
	if s.AvailableReplicas > s.ReadyReplicas {
		f.Invalid("availableReplicas", s.AvailableReplicas, "cannot be greater than status.readyReplicas")
	}
	checkCollisions(&f, s.CollisionCount, old.Status.CollisionCount)
	return errs
}

func validateDaemonSetStatus(d, old *appsv1.DaemonSet) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &d.Status
	f := root.Child("status")
	for _, c := range []counted{
		{"currentNumberScheduled", s.CurrentNumberScheduled}, {"numberMisscheduled", s.NumberMisscheduled},
		{"desiredNumberScheduled", s.DesiredNumberScheduled}, {"numberReady", s.NumberReady},
	} {
		f.NotNegative(c.name, int64(c.n))
	}
	f.NotNegative("observedGeneration", s.ObservedGeneration)
	for _, c := range []counted{
		{"updatedNumberScheduled", s.UpdatedNumberScheduled}, {"numberAvailable", s.NumberAvailable},
		{"numberUnavailable", s.NumberUnavailable}, {"collisionCount", kind.Value(s.CollisionCount)},
	} {
		f.NotNegative(c.name, int64(c.n))
	}
	checkCollisions(&f, s.CollisionCount, old.Status.CollisionCount)
	return errs
}
