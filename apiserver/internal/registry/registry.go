// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/internal/transcode"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Registry keeps the objects of all resources of a server. It is safe for
// concurrent use.
type Registry struct {
	store     storage.Store
	identity  Identity
	admission resource.Admission
	authorize func(ctx context.Context, r *resource.Request) error
	forms     *forms
	stopping  context.Context
}

// Identity makes objects somebody.
type Identity interface {
	// UID returns the uid of a new object.
	UID() types.UID
	// Suffix returns n characters for the end of a generated name.
	Suffix(n int) string
}

// Options of a [Registry]. Store, Identity, AuthorizeCreate and Stopping are
// required.
type Options struct {
	Store    storage.Store
	Identity Identity
	// Admission of writes; nil: none.
	Admission resource.Admission
	// AuthorizeCreate is asked when a request that may change an object is about
	// to create it.
	AuthorizeCreate func(ctx context.Context, r *resource.Request) error
	// CacheBytes bounds the memory for encoded forms other than the stored one.
	// 0: 64 MiB. Negative: none are kept.
	CacheBytes int64
	// Stopping ends what a selection reads beside the request that it belongs to.
	Stopping context.Context
}

// New returns a registry.
func New(o Options) *Registry {
	return &Registry{
		store: o.Store, identity: o.Identity, admission: o.Admission, authorize: o.AuthorizeCreate,
		forms: newForms(o.CacheBytes), stopping: o.Stopping,
	}
}

// Served is a resource while it is served.
type Served struct {
	*resource.Resource
	// Admission of requests for it; nil: none.
	Admission resource.Admission
	// blank are objects of the versions with nothing but a kind, made when first asked for.
	blank map[*resource.Version]func() resource.Object
	// plans write what is stored as protobuf; nil for types without a plan.
	plans map[*resource.Version]func() *transcode.Plan
	// watched counts who watches every object of a version as protobuf.
	watched map[*resource.Version]*atomic.Int32
	// EquivalentVersions are versions of the kind whose bodies are read as well; see
	// [resource.Subresource.EquivalentVersions].
	EquivalentVersions []string
	// Gone is done once the resource was replaced or removed; nil for what is
	// served as part of another resource.
	Gone context.Context
}

// Serve prepares what answers requests for a resource take.
func (g *Registry) Serve(r *resource.Resource) *Served {
	in := &Served{
		Resource: r, Admission: resource.ForResource(g.admission, r),
		plans: map[*resource.Version]func() *transcode.Plan{}, blank: map[*resource.Version]func() resource.Object{},
		watched: map[*resource.Version]*atomic.Int32{},
	}
	for i := range r.Versions {
		v := &r.Versions[i]
		if v.New != nil {
			in.watched[v] = &atomic.Int32{}
			in.plans[v] = sync.OnceValue(func() *transcode.Plan { return transcode.Of(v.New()) })
		}
		in.blank[v] = sync.OnceValue(func() resource.Object { return in.newBlank(v) })
	}
	return in
}

// nothing is what a new object of a version is compared with: one that has nothing but
// a kind. All requests share it.
func (in *Served) nothing(v *resource.Version) resource.Object {
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
