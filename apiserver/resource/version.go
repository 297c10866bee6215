// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
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
	// New returns an empty object of the Go type; nil: the objects have none and are a [Doc].
	New func() Object
	// NewMessage returns an empty object of the Go type that has the protobuf form of a [Doc],
	// with methods Marshal and Unmarshal; in JSON it is as they are. nil: they have no
	// protobuf form.
	NewMessage func() Object
	// Strategy of creates and updates; required.
	Strategy Strategy
	// MetadataErrors says how often creates and updates list errors of metadata.
	MetadataErrors MetadataErrors
	// DefaultApplied takes the place of the Default of strategies for the result of an
	// apply, of the object and its status: nulls that the schema does not allow stay, and
	// are refused by the validation. nil: Default.
	DefaultApplied func(obj Object) error
	// Prune removes fields that the schema does not know from an object that was
	// converted to this version for a reader. Unlike Strategy.Default it sets no
	// defaults, because the object is not written. nil: nothing is pruned.
	Prune func(obj Object)
	// Canonicalize rewrites a validated object into the form in which readers get it;
	// it may only change notation, not meaning. It is called as the Canonicalize of the
	// strategies in k8s.io/apiserver is: before an object is stored. nil: no change.
	Canonicalize func(obj Object)
	// FieldManager tracks managedFields; nil tracks none, and apply answers 501.
	FieldManager FieldManager
	// Printer makes the rows of tables; nil prints name and age.
	Printer Printer
	// Selectable lists what field selectors may name besides metadata.name and
	// metadata.namespace.
	Selectable []SelectableField
	// FieldSelectorMessage is the format of the error for a selector that names another
	// field; empty: the message that most kinds have.
	FieldSelectorMessage string
	// Subresources, such as status and scale.
	Subresources []Subresource
	// Schema describes the objects for OpenAPI; nil: they are not described.
	Schema *spec.Schema
	// StrategicMerge allows strategic merge patches; typed objects only.
	StrategicMerge bool
}

// Typed reports whether objects of the version have a Go type.
func (v *Version) Typed() bool { return v.New != nil }

// Protobuf reports whether objects of the version have a protobuf form.
func (v *Version) Protobuf() bool { return v.New != nil || v.NewMessage != nil }

// NewProtobuf returns an empty object of the type that has the protobuf form.
func (v *Version) NewProtobuf() Object {
	if v.NewMessage != nil {
		return v.NewMessage()
	}
	return v.NewObject()
}

// NewObject returns an empty object.
func (v *Version) NewObject() Object {
	if v.New != nil {
		return v.New()
	}
	return &Doc{}
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

// Subresource returns the subresource of a name, nil if there is none. It belongs to the
// version.
func (v *Version) Subresource(name string) *Subresource {
	for i := range v.Subresources {
		if s := &v.Subresources[i]; s.Name == name {
			return s
		}
	}
	return nil
}

// SelectableField is a field that field selectors may name.
type SelectableField struct {
	// Path as written in selectors, such as "spec.nodeName".
	Path string
	// Value returns the field of an object of this version; "" if it is absent.
	Value func(Object) string
	// Keys is the path as JSON keys if the field is a scalar; selection then reads it
	// from the encoded object. nil: use Value.
	Keys []string
}

// Subresource is one path below an object. Exactly one of Strategy, Scale, Backend and
// Action is set; beside Backend and Action, Strategy may be set too and validates the
// bodies.
type Subresource struct {
	// Name as in the path, such as "status".
	Name string
	// Strategy makes it a view of the object itself, of the same kind, with its own
	// rules: get, update and patch. An example is /status.
	Strategy Strategy
	// MetadataErrors says how often updates by that Strategy list errors of metadata.
	MetadataErrors MetadataErrors
	// Verbs restricts the verbs: of a Strategy, nil: get, patch and update; of a
	// Backend, nil: those that it implements.
	Verbs []string
	// FieldManager of its updates; nil: they are not tracked. The one of a Scale may also
	// implement [ScaleFieldManager].
	FieldManager FieldManager
	// Scale makes it an autoscaling/v1 Scale of the object.
	Scale Scaler
	// Backend answers its verbs; see [Resource.Backend].
	Backend any
	// Action makes it something that a POST does to the object, such as binding a Pod
	// to a node: it changes obj according to body, and returns the answer. It is called
	// again if the object has changed meanwhile, and for a dry run, which
	// [Request.DryRun] reports; nothing is stored if it changes nothing. An error that is
	// not an API status is answered with 500, a nil answer with a Status. With a
	// [Resource.Backend] it needs an [Updater].
	Action func(ctx context.Context, obj, body Object) (answer Object, err error)
	// Target says how an Action gets the object, and which rules hold for what it
	// changes. nil: it gets the object in the version of the request, and there are none.
	Target *Target
	// Answer is the kind of the answers of an Action; the zero value: a Status.
	Answer schema.GroupVersionKind
	// NewAnswer returns an empty answer of that kind.
	NewAnswer func() Object
	// Kind of the bodies of a Backend or an Action.
	Kind schema.GroupVersionKind
	// EquivalentVersions are other versions of Kind with the same fields; bodies in
	// them are accepted too. nil: none.
	EquivalentVersions []string
	// New returns an empty body of that kind.
	New func() Object
	// Options returns the empty options of a [Connecter], such as *corev1.PodExecOptions:
	// admission gets them, decoded from the query; a field "path" is the path below the
	// subresource. nil: it gets none. A Connecter that has no verb but get is a read, about
	// which admission is not asked.
	Options func() runtime.Object
}

// Target is the object that an Action changes.
type Target struct {
	// Version in which the action gets the object, whatever that of the request is.
	Version string
	// Strategy of the changes, in that version; required.
	Strategy Strategy
	// FieldManager of the changes; nil: they are not tracked.
	FieldManager FieldManager
}
