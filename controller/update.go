// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/children"
)

// Operation is what [CreateOrUpdate] sent.
type Operation string

const (
	// OperationNone: the object is as it should be, nothing was sent.
	OperationNone Operation = "unchanged"
	// OperationCreated: the object was created.
	OperationCreated Operation = "created"
	// OperationUpdated: the object was updated.
	OperationUpdated Operation = "updated"
)

// CreateOrUpdate is for operators that do not use apply; [Children] need less. It
// reads the object that obj names, has mutate change it, and creates or updates it
// when that made a difference; obj is then what the server has. An update is
// refused as a conflict when the object has changed since it was read.
//
// mutate may set single fields, or replace the whole spec: what the server fills in
// beside does not make a difference the next time, nor after a restart. For that
// the object carries [AppliedAnnotation]. The status is not written.
func CreateOrUpdate(ctx context.Context, c client.Client, obj client.Object, mutate func() error) (Operation, error) {
	created, updated, err := children.CreateOrUpdate(ctx, c, obj, mutate)
	switch {
	case err != nil:
		return OperationNone, fmt.Errorf("create or update %T %s: %w", obj, client.FormatKey(client.ObjectKeyFromObject(obj)), err)
	case created:
		return OperationCreated, nil
	case updated:
		return OperationUpdated, nil
	}
	return OperationNone, nil
}
