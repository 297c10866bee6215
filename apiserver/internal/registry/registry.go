// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Registry stores the objects of all resources of a server. It is safe for concurrent
// use.
type Registry struct {
	store       storage.Store
	identity    Identity
	admission   resource.Admission
	authorize   func(ctx context.Context, r *resource.Request) error
	encodings   *recordcache.Cache
	notes       *notes.Notes
	objectBytes int
}

// Identity generates the uid and the generated names of new objects.
type Identity interface {
	// UID returns the uid of a new object.
	UID() types.UID
	// Suffix returns n characters for the end of a generated name.
	Suffix(n int) string
}

// Options of a [Registry]. Store, Identity and AuthorizeCreate are required.
type Options struct {
	Store    storage.Store
	Identity Identity
	// Admission of writes; nil: none.
	Admission resource.Admission
	// AuthorizeCreate is called before a request that may also update an object creates
	// one.
	AuthorizeCreate func(ctx context.Context, r *resource.Request) error
	// CacheBytes bounds the memory of cached encodings other than the stored one. 0: 64
	// MiB. Negative: nothing is cached.
	CacheBytes int64
	// Notes of who wrote what; nil: none.
	Notes *notes.Notes
	// ObjectBytes bounds an object as it is stored. 0: no bound.
	ObjectBytes int
}

// New returns a registry.
func New(o Options) *Registry {
	return &Registry{
		store: o.Store, identity: o.Identity, admission: o.Admission, authorize: o.AuthorizeCreate,
		encodings: recordcache.New(o.CacheBytes), notes: o.Notes, objectBytes: o.ObjectBytes,
	}
}

// SetAdmission replaces [Options.Admission] for what is served from now on. It is not
// called concurrently with anything else.
func (g *Registry) SetAdmission(a resource.Admission) { g.admission = a }

// Served is a resource while it is served.
type Served struct {
	*resource.Resource
	// Admission of requests for it; nil: none.
	Admission resource.Admission
	// blank returns objects of the versions that have only a kind, made on first use.
	blank map[*resource.Version]func() resource.Object
	// watched counts the watches that read every object of a version as protobuf.
	watched map[*resource.Version]*atomic.Int32
	// EquivalentVersions are other versions of the kind whose bodies are accepted; see
	// [resource.Subresource.EquivalentVersions].
	EquivalentVersions []string
	// Gone is done once the resource was replaced or removed; nil for the kind of a
	// subresource.
	Gone context.Context
}

// Serve prepares a resource for requests.
func (g *Registry) Serve(r *resource.Resource) *Served {
	in := &Served{
		Resource: r, Admission: resource.ForResource(g.admission, r),
		blank:   map[*resource.Version]func() resource.Object{},
		watched: map[*resource.Version]*atomic.Int32{},
	}
	for i := range r.Versions {
		v := &r.Versions[i]
		in.watched[v] = &atomic.Int32{}
		in.blank[v] = sync.OnceValue(func() resource.Object { return in.newBlank(v) })
	}
	return in
}

// empty is the object that a new object of a version is compared with: it has only a
// kind. All requests share it.
func (in *Served) empty(v *resource.Version) resource.Object {
	if blank := in.blank[v]; blank != nil {
		return blank()
	}
	return in.newBlank(v)
}

func (in *Served) newBlank(v *resource.Version) resource.Object {
	obj := v.NewObject()
	obj.GetObjectKind().SetGroupVersionKind(in.GroupVersionKind(v.Name))
	return obj
}

// Version returns a version by name, or nil.
func (in *Served) Version(name string) *resource.Version {
	for i := range in.Versions {
		if v := &in.Versions[i]; v.Name == name {
			return v
		}
	}
	return nil
}
