// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package access tells the flight recorder what a call of a client read or wrote. It
// stands alone because it needs nothing of a controller but the call.
package access

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

// Calls makes accesses of calls. The plans of its comparisons are kept, so share one. It
// is safe for concurrent use.
type Calls struct{ differ trace.Differ }

// NewCalls returns one that names as many fields as a record takes.
func NewCalls() *Calls { return &Calls{trace.Differ{Most: trace.MaxWritten}} }

// Of returns what a call read or wrote; false for verbs that are not recorded.
func (c *Calls) Of(call *client.Call) (trace.Access, bool) {
	verb := trace.VerbOf(string(call.Verb))
	if verb == 0 {
		return trace.Access{}, false
	}
	access := trace.Access{
		Verb: verb,
		Object: trace.Object{
			Group: call.GVK.Group, Kind: call.GVK.Kind,
			Namespace: call.Key.Namespace, Name: call.Key.Name,
		},
		Subresource: call.SubResource,
		Revision:    call.ResourceVersion,
		Items:       call.Items,
		Cached:      call.Origin != client.OriginServer,
	}
	switch {
	case verb.Reads() && apierrors.IsNotFound(call.Err):
		access.Absent = true
	case call.Err != nil:
		access.Error = call.Err.Error()
	case !call.DryRun:
		access.Changed = c.changed(call)
	}
	return access, true
}

// changed returns the paths of the fields that a write changed, as for
// [trace.Access.Changed].
func (c *Calls) changed(call *client.Call) string {
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
		return trace.Among(c.differ.Changed(call.Before, call.Object), call.Patch)
	case client.VerbUpdate:
		return c.differ.Changed(call.Before, call.Object)
	}
	return ""
}

// sameRevision reports whether a write is known to have changed nothing.
func sameRevision(call *client.Call) bool {
	before, ok := call.Before.(metav1.Object)
	return ok && call.ResourceVersion != "" && before.GetResourceVersion() == call.ResourceVersion
}
