// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/status"
)

// emitTransition tells users that the verdict on an object has changed: stalls, and
// what ceases to be ready without a reason to expect more, as Warnings, the rest
// as Normal. A stall for another reason is told as well. Objects begin by not
// being ready: only a stall is news of a new one.
func emitTransition(ctx context.Context, obj client.Object, was, now map[string]any) {
	before, old := status.Judge(was)
	after, condition := status.Judge(now)
	reason, _ := condition["reason"].(string)
	switch {
	case after == status.Unknown:
		return
	case after == before && (after != status.IsStalled || old["reason"] == condition["reason"]):
		return
	case before == status.Unknown && (after == status.Progressing || after == status.Unready):
		return
	}
	message, _ := condition["message"].(string)
	Emit(ctx, UserEvent{
		Regarding: obj, Warning: after == status.IsStalled || after == status.Unready,
		Reason: reason, Action: "Reconcile", Note: message,
	})
}
