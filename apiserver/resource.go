// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/storage"
)

// Object is one API object: a typed built-in or an *unstructured.Unstructured.
// It is an alias so that packages below this one, which do not know it, can
// implement the interfaces here.
type Object = interface {
	runtime.Object
	metav1.Object
}

// Resource is everything the server needs to know to serve one resource. It is
// a value: build it, install it with [Server.Install], and change it by
// installing another one in its place. Once installed nobody may write to it.
type Resource struct {
	Names
	// Storage says where and how objects are kept. Unused with a Backend.
	Storage Storage
	// Versions are the versions of the objects, in the order of preference.
	Versions []Version
	// NameRule returns what is wrong with a name, or with the prefix of a
	// generated one. nil: names are DNS subdomains.
	NameRule func(name string, prefix bool) []string
	// Convert returns the objects in another version, in the same order. It may
	// do network I/O and may fail; it must not change its input. nil sets
	// apiVersion on a copy, which is only right for unstructured objects.
	Convert func(ctx context.Context, objects []Object, version string) ([]Object, error)
	// Backend answers the verbs in place of the store. It implements any of
	// [Getter], [Lister], [Watcher], [Creater], [Updater], [Deleter] and
	// [Connecter]; the resource has exactly those verbs. nil: the store.
	Backend any
	// Update rules of the resource.
	Update UpdateRules
	// Deletion rules of the resource.
	Deletion DeletionRules
	// Committed runs after a change is durable and before its request is
	// answered; an error fails the request, but not the change. nil: nothing.
	Committed func(ctx context.Context, change Change) error
}

// Names are a resource's names. All but ShortNames and Categories are required.
type Names struct {
	Group      string // "" for the core group
	Plural     string // the name in paths
	Singular   string
	Kind       string
	ListKind   string
	ShortNames []string
	Categories []string
	Namespaced bool
}

// GroupResource returns the group and plural name.
func (n *Names) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: n.Group, Resource: n.Plural}
}

// GroupVersionKind returns the kind in a version.
func (n *Names) GroupVersionKind(version string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: n.Group, Version: version, Kind: n.Kind}
}

// Storage is the identity of a resource's objects in the store. They are kept
// as the JSON of one version, exactly as it goes over the wire.
type Storage struct {
	// Bucket of the keys; "group/plural" by custom.
	Bucket string
	// Version in which objects are written.
	Version string
	// Since is the revision from which on everything in the bucket was written
	// under this very definition, in the storage version, and so can be sent as
	// it lies. Older records are decoded, converted and normalised on the way
	// out. 0: all of them can be sent as they lie.
	Since storage.Revision
	// Alias tells that the objects in the bucket are those of a resource in
	// another group, which this one shows in its own way. Version is then the
	// version that the alias translates from and to. nil: they are kept as they
	// are served.
	Alias *Alias
}

// Alias lets a resource share the objects of another one: same keys, uids,
// revisions and history. Who writes through one of the two is seen by the
// watchers of both.
type Alias struct {
	// Kind of the objects as they are kept.
	Kind schema.GroupVersionKind
	// New returns an empty typed object of that kind.
	New func() Object
	// Load returns a kept object in the storage version of the resource. It takes
	// its argument over.
	Load func(kept Object) Object
	// Save returns an object of the storage version as it is kept. It takes its
	// argument over.
	Save func(obj Object) Object
}

// kept is the kind as which the objects are stored.
func (r *Resource) kept() schema.GroupVersionKind {
	if a := r.Storage.Alias; a != nil {
		return a.Kind
	}
	return r.GroupVersionKind(r.Storage.Version)
}

// Version is one version of a resource's objects and the rules that hold for
// requests made in it.
type Version struct {
	// Name, such as "v1".
	Name string
	// Unserved hides the version: it exists for storage and conversion only.
	Unserved bool
	// Deprecation is sent as a warning with every answer; empty for none.
	Deprecation string
	// New returns an empty typed object; nil means unstructured objects.
	New func() Object
	// Strategy of creates and updates; required.
	Strategy Strategy
	// Prune removes fields that the schema does not know from an object that
	// was converted to this version for a reader. Unlike Strategy.Normalize it
	// sets no defaults: nobody has written them. nil: nothing.
	Prune func(obj Object)
	// Ownership tracks managedFields; nil tracks none, and apply answers 501.
	Ownership Ownership
	// Printer makes the rows of tables; nil prints name and age.
	Printer Printer
	// Selectable lists what field selectors may name besides metadata.name and
	// metadata.namespace.
	Selectable []SelectableField
	// Subresources, such as status and scale.
	Subresources []Subresource
	// Schema describes the objects for OpenAPI; nil leaves them undescribed.
	Schema *spec.Schema
	// StrategicMerge allows strategic merge patches; typed objects only.
	StrategicMerge bool
	// alike are the versions whose objects are read as ones of this; see
	// [Subresource.Alike].
	alike []string
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
	// Alike are other versions of Kind in which bodies say the same; they are taken
	// for ones of Kind. nil: none.
	Alike []string
	// New returns an empty body of that kind.
	New func() Object
}

// UpdateRules say which updates a resource admits.
type UpdateRules struct {
	// Unconditional admits updates without a resourceVersion.
	Unconditional bool
	// Creates lets a PUT of an absent object create it.
	Creates bool
}

// DeletionRules say how objects of a resource go away.
type DeletionRules struct {
	// Propagation when the request does not say: Background or Orphan; empty is
	// Background.
	Propagation metav1.DeletionPropagation
	// Advice is a warning for requests that do not say; empty: none.
	Advice string
	// Uncollectable resources are not garbage collected: propagation policies
	// leave no finalizer on them.
	Uncollectable bool
	// Grace returns the seconds an object is kept after it was marked, given
	// what the request asks for (nil: nothing). nil: always 0.
	Grace func(obj Object, asked *int64) int64
	// Mark replaces how an object that stays for now is marked as deleted. It is
	// called once, with deletionTimestamp set. nil: deletionGracePeriodSeconds
	// is set and the generation counted up.
	Mark func(obj Object)
	// OneByOne refuses to delete whole collections.
	OneByOne bool
	// ReturnsObject answers a finished deletion with the object in place of a
	// Status.
	ReturnsObject bool
	// Holds tells whether something besides metadata.finalizers keeps a marked
	// object, such as a namespace's spec.finalizers. nil: nothing.
	Holds func(obj Object) bool
}

// Change is one durable change, as [Resource.Committed] sees it.
type Change struct {
	// Request that caused it.
	Request *Request
	// Object in the version of the request; for a deletion the final state.
	Object Object
	// Old is the state before; nil for a creation.
	Old Object
	// Deleted tells that the object is gone.
	Deleted bool
	// Revision of the change.
	Revision storage.Revision
}

// Scaler reads and writes the replica counts of an object.
type Scaler interface {
	// Replicas returns the wished and the actual count and the selector of the
	// replicas in string form.
	Replicas(obj Object) (spec, status int32, selector string, err error)
	// SetReplicas changes the wished count.
	SetReplicas(obj Object, replicas int32) error
}

// Printer turns objects into table cells.
type Printer interface {
	// Columns of the table, in order.
	Columns() []metav1.TableColumnDefinition
	// Cells of one object, one per column.
	Cells(obj Object) ([]any, error)
}
