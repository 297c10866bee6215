// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Strategy holds the rules of one served version, or of a subresource. The
// server itself takes care of metadata: names, uid, timestamps, generation on
// deletion, finalizers, owner references and their validation.
type Strategy interface {
	// Normalize brings an object into the shape of its schema: coerces
	// metadata, prunes unknown fields, sets defaults. It returns the paths of
	// the fields it dropped, such as "spec.colour". It runs on every request
	// body, after every patch and mutating admission, and on records older
	// than [Storage.Since]. What is in shape already it leaves alone: a patched
	// object shares what the patch does not change with the one it replaces. An
	// error is answered with 400.
	Normalize(obj Object) (unknown []string, err error)
	// Prepare removes what the client may not set and sets what the server
	// owns, metadata.generation included. old is nil for a creation.
	Prepare(ctx context.Context, obj, old Object)
	// Validate checks an object about to be stored. old is nil for a creation.
	Validate(ctx context.Context, obj, old Object) field.ErrorList
	// Warnings about an object that is accepted.
	Warnings(ctx context.Context, obj, old Object) []string
}

// Ownership records which manager set which field, in metadata.managedFields.
type Ownership interface {
	// Update attributes to manager what differs between live and obj, and
	// returns obj with its managedFields set. live is never nil: for a creation
	// it is an empty object. It may change obj, but not live, which others may share.
	Update(live, obj Object, manager string) (Object, error)
	// Apply merges the applied configuration into live. A conflict is an
	// *errors.StatusError with reason Conflict.
	Apply(live, applied Object, manager string, force bool) (Object, error)
}

// ScaleOwnership is what the Ownership of a [Subresource] with a Scale may
// implement beside: it carries the record over between an object and its Scale.
type ScaleOwnership interface {
	Ownership
	ToScale(parent []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error)
	ToParent(parent, scale []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error)
}

// Scaler reads and writes the replica counts of an object.
type Scaler interface {
	// Replicas returns the wished and the actual count and the selector of the
	// replicas in string form.
	Replicas(obj Object) (spec, status int32, selector string, err error)
	// SetReplicas changes the wished count.
	SetReplicas(obj Object, replicas int32) error
}

// Printer turns objects into table cells.
type Printer interface {
	// Columns of the table, in order.
	Columns() []metav1.TableColumnDefinition
	// Cells of one object, one per column.
	Cells(obj Object) ([]any, error)
}
