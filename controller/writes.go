// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

// writes finds out which fields the writes of a controller have changed.
type writes struct{ differ trace.Differ }

func newWrites() *writes { return &writes{trace.Differ{Most: trace.MaxWritten}} }

// changed returns the paths of the fields that a write changed, as for
// trace.Access.Changed.
func (w *writes) changed(call *client.Call) string {
	if sameRevision(call) {
		return ""
	}
	switch call.Verb {
	case client.VerbPatch:
		if call.PatchType == types.JSONPatchType {
			return trace.PatchFields(call.Patch)
		}
		return trace.MergeFields(call.Patch)
	case client.VerbApply:
		return trace.Among(w.differ.Changed(call.Before, call.Object), call.Patch)
	case client.VerbUpdate:
		return w.differ.Changed(call.Before, call.Object)
	}
	return ""
}

// sameRevision reports whether a write is known to have changed nothing.
func sameRevision(call *client.Call) bool {
	before, ok := call.Before.(metav1.Object)
	return ok && call.ResourceVersion != "" && before.GetResourceVersion() == call.ResourceVersion
}
