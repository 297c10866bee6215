// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/access"
	"github.com/steer-dev/steer/controller/internal/children"
	"github.com/steer-dev/steer/trace"
)

// NewAttempt returns a context as Reconcile gets it, for unit tests of what works
// within a reconcile alone, such as [Children], [Sequence] and [Emit], without a
// manager:
//
//	ctx, err := controller.NewAttempt(t.Context(), controller.Deps{Client: c}, "webs", web)
//	err = r.pages.Apply(ctx, web, desired)
//
// name is that of the controller, and obj the object that is being reconciled, which
// must exist on the server of deps.Client; the other fields of deps are optional. The
// status of obj is not written.
func NewAttempt(ctx context.Context, deps Deps, name string, obj client.Object) (context.Context, error) {
	if deps.Client == nil {
		return nil, errors.New("new attempt: Deps.Client is required")
	}
	gvk, err := client.KindOf(deps.Client.Scheme(), obj)
	if err != nil {
		return nil, fmt.Errorf("new attempt: %w", err)
	}
	if deps.Log == nil {
		deps.Log = slog.Default()
	}
	sh := &shared{name: name, owner: cmp.Or(deps.FieldOwner, name), deps: deps, log: deps.Log.With("controller", name), gvk: gvk, calls: access.NewCalls()}
	object := trace.Object{Group: gvk.Group, Kind: gvk.Kind, Namespace: obj.GetNamespace(), Name: obj.GetName()}
	a := newAttempt(client.WithObserver(ctx, observe), sh, object, "")
	a.children = &children.Memories{}
	a.inventories.Immediate = true
	a.work(obj, nil)
	return a, nil
}
