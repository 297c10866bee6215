// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// Request names an object to reconcile. Reconcilers of requests may use any
// other comparable type.
type Request struct {
	types.NamespacedName
}

// RequestFor is the request that names obj.
func RequestFor(obj client.Object) Request { return Request{client.ObjectKeyFromObject(obj)} }

// Reconciler brings the world in line with what is asked for. Q is a pointer to
// a kind's Go type, or a comparable request type. Reconcile is called by
// several workers, but never twice at once for one object or request.
type Reconciler[Q comparable] interface {
	Reconcile(ctx context.Context, q Q) (Result, error)
}

// Func is a function that is a [Reconciler].
type Func[Q comparable] func(ctx context.Context, q Q) (Result, error)

// Reconcile implements Reconciler.
func (f Func[Q]) Reconcile(ctx context.Context, q Q) (Result, error) { return f(ctx, q) }
