// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Strategy holds the rules of one served version, or of a subresource. The server
// itself handles metadata: names, uid, timestamps, generation on deletion, finalizers,
// owner references and their validation.
type Strategy interface {
	// Default applies the schema to an object: it sets defaults, prunes unknown fields
	// and coerces metadata. It returns the paths of the fields it dropped, such as
	// "spec.colour". It runs on every request body, after every patch and mutating
	// admission, and on records older than [Storage.Since]. It must not change an
	// object that has its defaults already: a patched object shares its unchanged parts
	// with the one that it replaces. An error is answered with 400.
	Default(obj Object) (unknown []string, err error)
	// Prepare removes what clients may not set and sets what the server owns,
	// metadata.generation included. old is nil for a creation.
	Prepare(ctx context.Context, obj, old Object)
	// Validate validates an object that is about to be stored. old is nil for a
	// creation.
	Validate(ctx context.Context, obj, old Object) field.ErrorList
	// Warnings returns warnings about an object that is accepted.
	Warnings(ctx context.Context, obj, old Object) []string
}

// MetadataErrors says how often a refusal lists an error of metadata. In kube-apiserver
// several layers validate the metadata of an update, and each adds its errors; kinds
// differ in how many of their own do. The zero value is the usual: the errors of an update
// are listed twice, those of a creation once.
type MetadataErrors struct {
	// Once lists each error of an update once, and those of a creation only if the
	// Strategy has none.
	Once bool
	// RepeatCreation lists for an update also the errors that a creation would have. It
	// means nothing beside Once.
	RepeatCreation bool
}

// FieldManager records which manager set which field, in metadata.managedFields.
type FieldManager interface {
	// Update attributes to manager the fields that differ between live and obj, and
	// returns obj with its managedFields set. live is never nil: for a creation it is
	// an empty object. It may change obj, but not live, which may be shared.
	Update(ctx context.Context, live, obj Object, manager string) (Object, error)
	// Apply merges the applied configuration into live. A conflict is an
	// *errors.StatusError with reason Conflict.
	Apply(ctx context.Context, live Object, applied *Doc, manager string, force bool) (Object, error)
}

// ScaleFieldManager may also be implemented by the FieldManager of a [Subresource] with a
// Scale: it converts managedFields between an object and its Scale.
type ScaleFieldManager interface {
	FieldManager
	ToScale(parent []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error)
	ToParent(parent, scale []metav1.ManagedFieldsEntry) ([]metav1.ManagedFieldsEntry, error)
}

// Scaler reads and writes the replica counts of an object.
type Scaler interface {
	// Replicas returns the desired and the actual count and the selector of the
	// replicas in string form.
	Replicas(obj Object) (spec, status int32, selector string, err error)
	// SetReplicas changes the desired count.
	SetReplicas(obj Object, replicas int32) error
}

// Printer turns objects into table cells.
type Printer interface {
	// Columns of the table, in order.
	Columns() []metav1.TableColumnDefinition
	// Cells of one object, one per column.
	Cells(obj Object) ([]any, error)
}
