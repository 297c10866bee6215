// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/steer-dev/steer/client"
)

// Open makes the source of an option of a controller of objects like example.
func (o ObjectSource) Open(example client.Object, deps Deps) (Source[Request], error) {
	return o.source.open(&shared{example: example}, deps)
}

// Observe is the observer of the contexts of attempts.
func Observe(ctx context.Context, call *client.Call) { observe(ctx, call) }
