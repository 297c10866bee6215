// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/internal/wire"
)

// Frozen is a JSON value in its canonical text, as objects of a [Version] with Frozen
// set may have it in place of maps and lists: so a write costs nothing for what nobody
// looks into.
//
// Such objects come to the strategies and ownerships of the version, and to admission.
// All of them have to expect it in any member of the object but apiVersion, kind and
// metadata, and as managedFields of the metadata, and to [Thaw] the object, or a copy, before they use anything that knows
// maps only, copying it in depth included. Everybody else gets thawed objects: readers,
// subresources without a strategy, conversions, [Resource.Committed].
type Frozen = wire.Frozen

// Reader walks over a [Frozen] value.
type Reader = wire.Reader

// Freeze returns the frozen form of a decoded JSON value, if it has one.
func Freeze(value any) (frozen Frozen, ok bool) { return wire.FreezeValue(value) }

// Thaw decodes what is frozen in an object, in place. It does nothing to typed objects
// and to nil.
func Thaw(obj Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok && u != nil {
		wire.Thaw(u.Object)
	}
}

// ThawContent is [Thaw] of an unstructured object's content. It reports whether something
// was frozen.
func ThawContent(content map[string]any) bool { return wire.Thaw(content) }

// FreezeContent freezes the members of an unstructured object where that is possible.
func FreezeContent(content map[string]any) { wire.Freeze(content) }

// Thawed returns the content of an unstructured object without frozen members. It is the
// same, or shares what was not frozen.
func Thawed(content map[string]any) map[string]any { return wire.Thawed(content) }

// Equal compares JSON values, frozen or not. What two of them share is not walked.
func Equal(a, b any) bool { return wire.Equal(a, b) }
