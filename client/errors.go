// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What the server refuses is a *apierrors.StatusError, so that the predicates
// of k8s.io/apimachinery/pkg/api/errors (IsNotFound, IsConflict, IsForbidden,
// ...) apply. What never reached the server is one of the errors below or an
// error of the transport.
var (
	// ErrNoFieldOwner is an Apply without a field owner.
	ErrNoFieldOwner = errors.New("server-side apply needs a field owner: pass client.FieldOwner(\"my-operator\") or set client.Options.FieldOwner")
	// ErrNoName is a call on an object without metadata.name.
	ErrNoName = errors.New("the object has no name: set metadata.name")
	// ErrForceOwnership is ForceOwnership on a verb that cannot force.
	ErrForceOwnership = errors.New("client.ForceOwnership is for Apply only")
)

// UnregisteredError is a Go type or kind that the scheme does not know.
type UnregisteredError struct {
	// GoType is the type asked for; empty when a kind was asked for.
	GoType string
	// GVK is the kind asked for, if any.
	GVK schema.GroupVersionKind
	// AddToScheme is the function that is missing in the scheme, such as
	// `batchv1.AddToScheme // import batchv1 "k8s.io/api/batch/v1"`: an element of
	// steer.Scheme, or one to call with the scheme.
	AddToScheme string
}

func (e *UnregisteredError) Error() string {
	what := e.GoType
	if what == "" {
		what = e.GVK.String()
	}
	return fmt.Sprintf("%s is not registered in the scheme: add to steer.Scheme{...} of the operator, or call with its scheme: %s", what, e.AddToScheme)
}

// IgnoreNotFound is nil for a NotFound error and err otherwise.
func IgnoreNotFound(err error) error {
	if err == nil || apierrors.IsNotFound(err) { // nil costs nothing: most calls have one
		return nil
	}
	return err
}

// IgnoreAlreadyExists is nil for an AlreadyExists error and err otherwise.
func IgnoreAlreadyExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
