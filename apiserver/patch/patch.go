// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package patch applies the patch formats of the Kubernetes API to
// objects: JSON patch (RFC 6902), JSON merge patch (RFC 7396) and strategic
// merge patch.
//
// [Parse] parses a request body once; the [Patch] it returns is immutable and can be
// applied to as many revisions of an object as a write needs. Server-side apply, the
// fourth format, is field ownership rather than a patch and is in package apply.
//
// The package has no I/O and no state. Failures are API status errors with the codes
// and messages of kube-apiserver: a body that cannot be parsed is a 400, a patch of too
// many operations a 413, a format that the object does not support a 415, a patch that
// does not fit the object a 422.
//
// The patched object is not validated here: unknown fields of it are found by the
// decoder that reads the result. Errors in the patch itself (duplicate fields, unknown
// members of a JSON patch operation) are reported by [Patch.Strict].
package patch

import (
	"encoding/json"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/steer-dev/steer/apiserver/internal/doc"
)

// Default limits of a patch.
const (
	DefaultMaxOperations = 10_000
	DefaultMaxCopyBytes  = 3 << 20
)

// maxDepth is how deep a patched object may nest: the depth that JSON decoders accept.
// A deeper object could be written but never be read again.
const maxDepth = 10_000

// maxShift is how many elements of lists all inserts and removals of a JSON patch
// may shift together. It is about a second of processor time, and more than 10,000
// inserts at the front of a list of 20,000 need.
const maxShift = 1 << 28

// Patch is a parsed patch. It is immutable and safe for concurrent use.
type Patch interface {
	// Apply returns an object, a [resource.Doc], with the patch applied, and leaves
	// the one that it is given alone. Members that the patch does not name are not
	// decoded.
	//
	// [resource.Doc]: https://pkg.go.dev/github.com/steer-dev/steer/apiserver/resource#Doc
	Apply(d *doc.Doc) (*doc.Doc, error)

	// Strict lists duplicate and unknown fields of the patch body in the order
	// in which they occur. It is empty unless [Options.Strict] was set.
	Strict() []error
}

// Options of [Parse]. The zero value is for custom resources with
// fieldValidation=Ignore.
type Options struct {
	// Strict collects the errors of [Patch.Strict], for the field validation levels
	// Strict and Warn.
	Strict bool

	// Schema defines how strategic merge patches treat the lists and maps of the
	// object's Go type (see strategicpatch.NewPatchMetaFromStruct; build it once per
	// type). Nil: the object does not support strategic merge patch.
	Schema strategicpatch.LookupPatchMeta

	// MaxOperations bounds the operations of a JSON patch.
	// 0 means DefaultMaxOperations.
	MaxOperations int

	// MaxCopyBytes bounds how many bytes the copy operations of one JSON patch may add
	// to the object. 0 means DefaultMaxCopyBytes.
	MaxCopyBytes int
}

// Parse parses the body of a patch request of the given type. Types other than JSON
// patch, merge patch and (with a schema) strategic merge patch are unsupported media
// types.
func Parse(t types.PatchType, body []byte, o Options) (Patch, error) {
	p, err := parse(t, body, o)
	if err != nil && !apierrors.IsUnsupportedMediaType(err) && !json.Valid(body) {
		return nil, badRequest("invalid JSON patch")
	}
	return p, err
}

func parse(t types.PatchType, body []byte, o Options) (Patch, error) {
	switch {
	case t == types.JSONPatchType:
		return parseJSON(body, o)
	case t == types.MergePatchType:
		return parseMerge(body, o)
	case t == types.StrategicMergePatchType && o.Schema != nil:
		return parseStrategic(body, o)
	default:
		return nil, unsupported(o)
	}
}

// findings are the strict errors of a patch body.
type findings []error

func (f findings) Strict() []error { return f }

// decoded has a library change some members of an object, or all if none is named, as decoded
// JSON. managedFields, mostly the longest of all, are left out unless they change.
func decoded(d *doc.Doc, names []string, managedFields bool, change func(content map[string]any) (map[string]any, error)) (*doc.Doc, error) {
	out, record := d.Copy(), doc.ManagedFields(d)
	if !managedFields {
		doc.SetManagedFields(out, doc.Value{})
	}
	content, err := change(out.Content(names...))
	if err != nil {
		return nil, err
	}
	out.SetContent(content, names...)
	if !managedFields {
		doc.SetManagedFields(out, record)
	}
	return out, nil
}

// namesManagedFields reports whether a merge patch may change managedFields.
func namesManagedFields(patch map[string]any) bool {
	value, has := patch["metadata"]
	metadata, isObject := value.(map[string]any)
	if !isObject {
		return has
	}
	for name := range metadata {
		if name == "managedFields" || strings.HasPrefix(name, "$") { // a directive of a strategic merge patch
			return true
		}
	}
	return false
}
