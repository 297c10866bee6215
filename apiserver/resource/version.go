// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Version is one version of a resource's objects and the rules that hold for
// requests made in it.
type Version struct {
	// Name, such as "v1".
	Name string
	// NotServed hides the version: it exists for storage and conversion only. It is the
	// opposite of served in a CustomResourceDefinition, so that the zero value is served.
	NotServed bool
	// Deprecation is sent as a warning with every answer; empty for none.
	Deprecation string
	// New returns an empty typed object; nil means unstructured objects.
	New func() Object
	// Frozen allows unstructured objects to hold [Frozen] values on their way through a
	// write. Strategies, ownerships and the admission of the server have to know them.
	Frozen bool
	// Strategy of creates and updates; required.
	Strategy Strategy
	// Prune removes fields that the schema does not know from an object that
	// was converted to this version for a reader. Unlike Strategy.Normalize it
	// sets no defaults: nobody has written them. nil: nothing.
	Prune func(obj Object)
	// Canonicalize gives an object that has passed validation the form in which readers
	// get it; it may change nothing that somebody could mean. nil: it has it.
	Canonicalize func(obj Object)
	// Ownership tracks managedFields; nil tracks none, and apply answers 501.
	Ownership Ownership
	// Printer makes the rows of tables; nil prints name and age.
	Printer Printer
	// Selectable lists what field selectors may name besides metadata.name and
	// metadata.namespace.
	Selectable []SelectableField
	// FieldRefusal formats what is said to a selector that names another field; empty:
	// the words that most kinds have.
	FieldRefusal string
	// Subresources, such as status and scale.
	Subresources []Subresource
	// Schema describes the objects for OpenAPI; nil leaves them undescribed.
	Schema *spec.Schema
	// StrategicMerge allows strategic merge patches; typed objects only.
	StrategicMerge bool
}

// Typed reports whether objects of the version have a Go type.
func (v *Version) Typed() bool { return v.New != nil }

// NewObject returns an empty object.
func (v *Version) NewObject() Object {
	if v.New != nil {
		return v.New()
	}
	return &unstructured.Unstructured{Object: map[string]any{}}
}

// SelectableField returns the selectable field of a path.
func (v *Version) SelectableField(path string) (SelectableField, bool) {
	for _, f := range v.Selectable {
		if f.Path == path {
			return f, true
		}
	}
	return SelectableField{}, false
}

// SelectableField is a field that selectors may name.
type SelectableField struct {
	// Path as written in selectors, such as "spec.nodeName".
	Path string
	// Value reads it from an object of this version; an absent field is "".
	Value func(Object) string
	// Keys is the path as JSON keys when the value is a scalar leaf of the
	// object; with it, selection needs no decoding. nil: use Value.
	Keys []string
}

// Subresource is one path below an object. Set exactly one of Strategy, Scale,
// Backend and Action; beside the last two, Strategy holds the rules of the bodies.
type Subresource struct {
	// Name as in the path, such as "status".
	Name string
	// Strategy makes it a partial view of the object itself, of the same kind,
	// with its own rules: get, update and patch. /status is one of these.
	Strategy Strategy
	// Verbs of a Strategy, nil: get, patch and update; or those of a Backend, nil:
	// what it implements.
	Verbs []string
	// Ownership of its updates; nil tracks none. That of a Scale may also
	// implement [ScaleOwnership].
	Ownership Ownership
	// Scale makes it an autoscaling/v1 Scale of the object.
	Scale Scaler
	// Backend answers its verbs; see [Resource.Backend].
	Backend any
	// Action makes it something that a POST does to the object, such as binding
	// a Pod to a node: it changes obj as body says. Neither the strategy of the
	// object nor its ownership has a part in that. What it refuses with a plain
	// error is answered with 409, success with a Status.
	Action func(obj, body Object) error
	// Kind of the bodies of a Backend or an Action.
	Kind schema.GroupVersionKind
	// EquivalentVersions are other versions of Kind with the same fields; they are taken
	// for ones of Kind. nil: none.
	EquivalentVersions []string
	// New returns an empty body of that kind.
	New func() Object
}
