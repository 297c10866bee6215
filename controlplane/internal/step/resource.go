// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"iter"
	"strings"

	"github.com/steer-dev/steer/storage"
)

// Resource is a served resource as controllers need to know it.
type Resource struct {
	// Bucket that holds its objects.
	Bucket string
	// Group, Version, Plural and Kind under which the controllers call it.
	Group, Version, Plural, Kind string
	// Namespaced reports whether its objects live in namespaces.
	Namespaced bool
	// Verbs that another server serves for the resource; nil for a resource of this server, for
	// which all are served. See [Elsewhere].
	Verbs []string
}

// Catalog lists what is served. It may change between steps, never during one.
type Catalog interface {
	// Kind returns the resource of this server that serves a kind in a group and version.
	Kind(apiVersion, kind string) (Resource, bool)
	// Bucket returns the resource whose objects a bucket holds.
	Bucket(name string) (Resource, bool)
	// Resources yields every resource of this server whose objects can be deleted, by bucket.
	Resources() iter.Seq[Resource]
	// Elsewhere returns what other servers serve.
	Elsewhere() *Elsewhere
	// Generation changes with every change of the catalog.
	Generation() uint64
}

// GroupResource returns the name of the resource in messages, "plural.group".
func (r Resource) GroupResource() string { return r.Plural + "." + r.Group }

// Collection returns the URL path of the objects of a namespace, or of all
// objects for an empty one.
func (r Resource) Collection(namespace string) string {
	var b strings.Builder
	if r.Group == "" {
		b.WriteString("/api/")
	} else {
		b.WriteString("/apis/")
		b.WriteString(r.Group)
		b.WriteByte('/')
	}
	b.WriteString(r.Version)
	if namespace != "" {
		b.WriteString("/namespaces/")
		b.WriteString(namespace)
	}
	b.WriteByte('/')
	b.WriteString(r.Plural)
	return b.String()
}

// Object returns the URL path of one object by its key in the store.
func (r Resource) Object(key storage.Key) string {
	namespace, name := SplitName(key.Name)
	return r.Collection(namespace) + "/" + name
}

// Key returns the key of an object in the store.
func (r Resource) Key(namespace, name string) storage.Key {
	if r.Namespaced {
		name = namespace + "/" + name
	}
	return storage.Key{Bucket: r.Bucket, Name: name}
}

// SplitName splits the name of a stored object into namespace, empty for a
// cluster-scoped one, and name.
func SplitName(stored string) (namespace, name string) {
	if i := strings.IndexByte(stored, '/'); i >= 0 {
		return stored[:i], stored[i+1:]
	}
	return "", stored
}
