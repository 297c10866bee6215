// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpdateRules configure the updates that a resource accepts.
type UpdateRules struct {
	// Unconditional accepts updates without a resourceVersion.
	Unconditional bool
	// Creates lets a PUT of an absent object create it.
	Creates bool
}

// DeletionRules configure how objects of a resource are deleted.
type DeletionRules struct {
	// Propagation is the default propagation policy: Background or Orphan; empty is
	// Background.
	Propagation metav1.DeletionPropagation
	// PropagationWarning is sent as a warning for requests that set no propagation
	// policy; empty: none.
	PropagationWarning string
	// NoGarbageCollection is set for resources that the garbage collector ignores:
	// propagation policies add no finalizers to them.
	NoGarbageCollection bool
	// Grace returns the seconds that an object is kept after it was marked, given the
	// gracePeriodSeconds of the request (nil: not set). nil: always 0.
	Grace func(obj Object, asked *int64) int64
	// Mark replaces how an object that is not removed yet is marked as deleted. It is
	// called once, with deletionTimestamp set. nil: deletionGracePeriodSeconds is set
	// and the generation is incremented.
	Mark func(obj Object)
	// NoDeleteCollection disables deletecollection.
	NoDeleteCollection bool
	// ReturnsObject answers a finished deletion with the object instead of a Status.
	ReturnsObject bool
	// Holds reports whether something other than metadata.finalizers keeps a marked
	// object, such as the spec.finalizers of a namespace. nil: nothing does.
	Holds func(obj Object) bool
}
