// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/storage"
)

// Resource describes one resource to the server. It is a value: build it and install
// it; to change it, install another one with the same name. It must not be changed
// after it was installed.
type Resource struct {
	Names
	// Storage says where and how objects are kept. With a Backend only its Version is
	// used: that of the backend's objects.
	Storage Storage
	// Versions are the versions of the objects, in the order of preference.
	Versions []Version
	// NameRule validates a name, or the prefix of a generated name, and returns error
	// messages. nil: names are DNS subdomains.
	NameRule func(name string, prefix bool) []string
	// Convert returns the objects in another version, in the same order. It may
	// do network I/O and may fail; it must not change its input. nil sets apiVersion on a
	// copy, which is only right for objects without a Go type.
	Convert func(ctx context.Context, objects []Object, version string) ([]Object, error)
	// RemoteConversion is set if Convert does network I/O and may change labels and
	// annotations: lists and watches convert many objects in one call, before they are
	// selected, and remember them; a read of one object converts it each time.
	RemoteConversion bool
	// Backend answers the verbs in place of the store. It implements any of
	// [Getter], [Lister], [Watcher], [Creater], [Updater], [Deleter] and
	// [Connecter]; the resource has exactly those verbs, and deletecollection with a
	// Lister and a Deleter. Its status and scale are read with a Getter, and written with
	// an Updater. nil: the store.
	Backend any
	// Update rules of the resource.
	Update UpdateRules
	// Deletion rules of the resource; with a Backend ReturnsObject alone, the others are
	// the backend's.
	Deletion DeletionRules
	// Committed runs after a change is durable and before its request is
	// answered; an error fails the request, but not the change. nil: nothing. It cannot be
	// set with a Backend, which knows its changes itself.
	Committed func(ctx context.Context, change Change) error
}

// StoredKind is the kind in the storage version.
func (r *Resource) StoredKind() schema.GroupVersionKind {
	if a := r.Storage.Alias; a != nil {
		return a.Kind
	}
	return r.GroupVersionKind(r.Storage.Version)
}

// APIVersion returns the apiVersion of objects in a version.
func (r *Resource) APIVersion(v *Version) string {
	if r.Group == "" {
		return v.Name
	}
	return r.Group + "/" + v.Name
}

// Key returns the key of an object in the store.
func (r *Resource) Key(namespace, name string) storage.Key {
	if r.Namespaced {
		name = namespace + "/" + name
	}
	return storage.Key{Bucket: r.Storage.Bucket, Name: name}
}

// Changed returns a copy of the resource after change has been called for each version.
// The lists of versions and of subresources are copied; what they refer to is shared.
func (r *Resource) Changed(change func(v *Version)) *Resource {
	out := *r
	out.Versions = slices.Clone(r.Versions)
	for i := range out.Versions {
		v := &out.Versions[i]
		v.Subresources = slices.Clone(v.Subresources)
		change(v)
	}
	return &out
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
	// Since is the revision from which on all objects in the bucket were written under
	// this definition and in the storage version, so that their bytes can be sent as
	// they are stored. Older records are decoded, converted and defaulted when they are
	// read. 0: all records can be sent as stored. [SinceInstalled]: the server writes a
	// record when the resource is installed, and takes its revision.
	Since storage.Revision
	// Alias is set if the objects in the bucket belong to a resource in another group,
	// which this one shows under its own kind. Version is then the version that the
	// alias translates from and to. nil: objects are stored as they are served.
	Alias *Alias
	// Definition is the stored object that the resource is made from, such as a
	// CustomResourceDefinition: a write is committed only while the definition is the
	// one that its request was validated against. nil: the resource does not change.
	Definition Definition
}

// SinceInstalled is a [Storage.Since] for resources that the process defines: an earlier
// process may have stored objects under another definition.
const SinceInstalled storage.Revision = -1

// Definition is the stored object that a resource is made from.
type Definition interface {
	// Condition names the version of the object that the resource was made from. It
	// advances with changes of the object that do not change the resource.
	Condition() storage.Condition
	// WaitSynced returns once the installed resource agrees with the current version of
	// the object. A request that was validated against an older one is then answered
	// again.
	WaitSynced(ctx context.Context) error
}

// Alias lets a resource share the objects of another one: keys, uids, revisions and
// history. Watchers of both see writes through either.
type Alias struct {
	// Kind of the objects as they are stored.
	Kind schema.GroupVersionKind
	// New returns an empty typed object of that kind.
	New func() Object
	// Load converts a stored object to the storage version of the resource. It may
	// change its argument.
	Load func(kept Object) Object
	// Save converts an object of the storage version to the stored kind. It may change
	// its argument.
	Save func(obj Object) Object
}

// Change is one durable change, as [Resource.Committed] sees it.
type Change struct {
	// Request that caused it.
	Request *Request
	// Object in the version of the request; for a deletion the final state.
	Object Object
	// Old is the state before; nil for a creation.
	Old Object
	// Deleted reports that the object was deleted.
	Deleted bool
	// Revision of the change.
	Revision storage.Revision
}
