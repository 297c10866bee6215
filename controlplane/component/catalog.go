// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/discovery"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
)

// catalog is what a server serves, as controllers need to know it.
type catalog struct {
	server *apiserver.Server

	mu         sync.Mutex
	generation uint64
	known      *resources
}

// resources is what was served at one generation.
type resources struct {
	byKind   map[schema.GroupVersionKind]step.Resource
	byBucket map[string]step.Resource
	sorted   []step.Resource
	// elsewhere is what other servers serve, delegated their versions.
	elsewhere step.Elsewhere
	delegated map[schema.GroupVersion]bool
}

// NewCatalog returns the catalog of a server.
func NewCatalog(server *apiserver.Server) step.Catalog { return &catalog{server: server} }

// Kind implements [step.Catalog].
func (c *catalog) Kind(apiVersion, kind string) (step.Resource, bool) {
	r, ok := c.current().byKind[schema.FromAPIVersionAndKind(apiVersion, kind)]
	return r, ok
}

// Bucket implements [step.Catalog].
func (c *catalog) Bucket(name string) (step.Resource, bool) {
	r, ok := c.current().byBucket[name]
	return r, ok
}

// Resources implements [step.Catalog].
func (c *catalog) Resources() iter.Seq[step.Resource] { return slices.Values(c.current().sorted) }

// Elsewhere implements [step.Catalog].
func (c *catalog) Elsewhere() *step.Elsewhere { return &c.current().elsewhere }

// Generation implements [step.Catalog].
func (c *catalog) Generation() uint64 { return c.server.Generation() }

func (c *catalog) current() *resources {
	now := c.server.Generation()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.known != nil && c.generation == now {
		return c.known
	}
	k := &resources{byKind: map[schema.GroupVersionKind]step.Resource{}, byBucket: map[string]step.Resource{}, delegated: map[schema.GroupVersion]bool{}}
	others := c.server.Delegated()
	slices.SortStableFunc(others, func(a, b discovery.Elsewhere) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(b.VersionPriority, a.VersionPriority), cmp.Compare(a.Version, b.Version))
	})
	for i := range others {
		k.addElsewhere(&others[i])
	}
	for _, r := range c.server.Resources() {
		k.add(r)
	}
	slices.SortFunc(k.sorted, func(a, b step.Resource) int { return cmp.Compare(a.Bucket, b.Bucket) })
	c.known, c.generation = k, now
	return k
}

// add takes in a resource that keeps objects, under its first served version; under the one
// in which they are stored, if that is served, where others need network I/O.
func (k *resources) add(r *resource.Resource) {
	if r.Backend != nil {
		return
	}
	var first *step.Resource
	for i := range r.Versions {
		v := &r.Versions[i]
		if v.NotServed || k.delegated[schema.GroupVersion{Group: r.Group, Version: v.Name}] {
			continue
		}
		s := step.Resource{
			Bucket: r.Storage.Bucket, Group: r.Group, Version: v.Name,
			Plural: r.Plural, Kind: r.Kind, Namespaced: r.Namespaced,
		}
		k.byKind[r.GroupVersionKind(v.Name)] = s
		if first == nil || r.RemoteConversion && v.Name == r.Storage.Version {
			first = &s
		}
	}
	if first == nil {
		return
	}
	if _, shared := k.byBucket[first.Bucket]; shared {
		return // two groups serve the same objects; one of them is enough
	}
	k.byBucket[first.Bucket] = *first
	k.sorted = append(k.sorted, *first)
}

// addElsewhere takes in a version that another server serves.
func (k *resources) addElsewhere(v *discovery.Elsewhere) {
	k.delegated[v.GroupVersion] = true
	e := &k.elsewhere
	if v.Stale {
		e.Stale = append(e.Stale, v.GroupVersion)
		return
	}
	if e.Kinds == nil {
		e.Kinds = map[schema.GroupVersionKind]int{}
	}
	for i := range v.Resources {
		r := &v.Resources[i]
		if r.ResponseKind == nil || strings.Contains(r.Resource, "/") {
			continue
		}
		bucket := step.ElsewhereBucket(v.Group, r.Resource)
		at := slices.IndexFunc(e.Resources, func(known step.Resource) bool { return known.Bucket == bucket })
		if at < 0 {
			at = len(e.Resources)
			e.Resources = append(e.Resources, step.Resource{
				Bucket: bucket, Group: v.Group, Version: v.Version, Plural: r.Resource, Kind: r.ResponseKind.Kind,
				Namespaced: r.Scope == apidiscoveryv2.ScopeNamespace, Verbs: slices.Concat([]string{}, r.Verbs),
			})
		}
		e.Kinds[v.WithKind(r.ResponseKind.Kind)] = at
	}
}
