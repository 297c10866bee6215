// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// UpdateRules say which updates a resource admits.
type UpdateRules struct {
	// Unconditional admits updates without a resourceVersion.
	Unconditional bool
	// Creates lets a PUT of an absent object create it.
	Creates bool
}

// DeletionRules say how objects of a resource go away.
type DeletionRules struct {
	// Propagation when the request does not say: Background or Orphan; empty is
	// Background.
	Propagation metav1.DeletionPropagation
	// Advice is a warning for requests that do not say; empty: none.
	Advice string
	// Uncollectable resources are not garbage collected: propagation policies
	// leave no finalizer on them.
	Uncollectable bool
	// Grace returns the seconds an object is kept after it was marked, given
	// what the request asks for (nil: nothing). nil: always 0.
	Grace func(obj Object, asked *int64) int64
	// Mark replaces how an object that stays for now is marked as deleted. It is
	// called once, with deletionTimestamp set. nil: deletionGracePeriodSeconds
	// is set and the generation counted up.
	Mark func(obj Object)
	// OneByOne refuses to delete whole collections.
	OneByOne bool
	// ReturnsObject answers a finished deletion with the object in place of a
	// Status.
	ReturnsObject bool
	// Holds reports whether something besides metadata.finalizers keeps a marked
	// object, such as a namespace's spec.finalizers. nil: nothing.
	Holds func(obj Object) bool
}
