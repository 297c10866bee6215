// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery serves API discovery: the legacy documents (/api, /apis,
// /apis/GROUP, /apis/GROUP/VERSION) and the aggregated form, which has everything in
// one document per prefix.
//
// [New] takes a list of resources and returns [Documents], an immutable http.Handler: a
// server creates new ones after every change of its resources. Documents are encoded by
// the first request for them, so that a thousand changes in a row cost nothing but the
// list.
package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Resource is one resource in one version.
type Resource struct {
	Group, Version         string
	Plural, Singular, Kind string
	ShortNames, Categories []string
	Namespaced             bool
	// Verbs in this order; a resource without verbs is hidden, but not its
	// subresources.
	Verbs []string
	// Stored is the kind in which objects are stored; empty if they are not.
	Stored schema.GroupVersionKind
	// Implied leaves group and version of response kinds empty in the aggregated form
	// if they are those of the resource, as kube-apiserver does for built-in kinds.
	Implied bool
	// Subresources, in this order.
	Subresources []Subresource
}

// Subresource is a path below the objects of a resource.
type Subresource struct {
	Name string
	// Kind of its body; empty fields default to the version of the resource.
	Kind  schema.GroupVersionKind
	Verbs []string
}

// Options of [New].
type Options struct {
	// ServerAddress is the host:port in /api.
	ServerAddress string
	// Elsewhere lists group versions that other servers serve.
	Elsewhere []Elsewhere
}

// Elsewhere is a group version that another server serves. Groups and versions with
// higher priority are listed first; see [GroupPriority] and [VersionPriority] for those
// of this server.
type Elsewhere struct {
	schema.GroupVersion
	GroupPriority, VersionPriority int32
	// Resources as the server describes them, for the aggregated form; they must not be
	// changed any more. nil: they are unknown.
	Resources []apidiscoveryv2.APIResourceDiscovery
	// Stale reports that the server does not say at present what it serves.
	Stale bool
}

// Documents are the discovery documents of a list of resources. They are safe for
// concurrent use.
type Documents struct {
	options Options
	groups  func() []group
	core    func() *aggregated
	named   func() *aggregated
}

// New returns the documents of a list of resources, which must not be changed any more.
func New(resources []Resource, o Options) *Documents {
	d := &Documents{options: o}
	d.groups = sync.OnceValue(func() []group { return arrange(resources, o.Elsewhere) })
	d.core = sync.OnceValue(func() *aggregated { return aggregate(d.groups(), true) })
	d.named = sync.OnceValue(func() *aggregated { return aggregate(d.groups(), false) })
	return d
}

// group is a group with its versions, preferred first.
type group struct {
	name     string
	priority int32
	// first is the first name of the APIServices of the group with its priority.
	first    string
	versions []groupVersion
}

type groupVersion struct {
	schema.GroupVersion
	priority  int32
	resources []Resource
	other     *Elsewhere // nil: this server serves it
}

// arrange sorts resources into groups: groups and versions by priority, groups then by
// name, versions by stability and number, resources by name. Versions of other servers
// replace those of this one.
func arrange(resources []Resource, others []Elsewhere) []group {
	versions := map[schema.GroupVersion]*groupVersion{}
	groups := map[string]*group{}
	add := func(gv schema.GroupVersion, v *groupVersion, priority int32) {
		versions[gv] = v
		g := groups[gv.Group]
		if g == nil {
			g = &group{name: gv.Group}
			groups[gv.Group] = g
		}
		name := gv.Version + "." + gv.Group
		if g.first == "" || priority > g.priority || priority == g.priority && name < g.first {
			g.priority, g.first = priority, name
		}
	}
	for i := range others {
		o := &others[i]
		add(o.GroupVersion, &groupVersion{GroupVersion: o.GroupVersion, priority: o.VersionPriority, other: o}, o.GroupPriority)
	}
	for _, r := range resources {
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		v := versions[gv]
		if v == nil {
			v = &groupVersion{GroupVersion: gv, priority: VersionPriority(gv)}
			add(gv, v, GroupPriority(gv.Group))
		}
		if v.other == nil {
			v.resources = append(v.resources, r)
		}
	}
	for gv, v := range versions {
		slices.SortFunc(v.resources, func(a, b Resource) int { return cmp.Compare(a.Plural, b.Plural) })
		groups[gv.Group].versions = append(groups[gv.Group].versions, *v)
	}
	out := make([]group, 0, len(groups))
	for _, g := range groups {
		slices.SortFunc(g.versions, func(a, b groupVersion) int {
			return cmp.Or(cmp.Compare(b.priority, a.priority), version.CompareKubeAwareVersionStrings(b.Version, a.Version))
		})
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b group) int { return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.name, b.name)) })
	return out
}

// GroupPriority is the priority of a group of this server: built-in groups have that of
// kube-apiserver, all others the same.
func GroupPriority(group string) int32 {
	switch group {
	case "apiregistration.k8s.io":
		return 20001 // before all others, which may have 20000
	case "":
		return 18000
	case "apps":
		return 17800
	case "events.k8s.io":
		return 17750
	case "authentication.k8s.io":
		return 17700
	case "authorization.k8s.io":
		return 17600
	case "autoscaling":
		return 17500
	case "batch":
		return 17400
	case "certificates.k8s.io":
		return 17300
	case "networking.k8s.io":
		return 17200
	case "policy":
		return 17100
	case "rbac.authorization.k8s.io":
		return 17000
	case "storage.k8s.io":
		return 16800
	case "admissionregistration.k8s.io", "apiextensions.k8s.io":
		return 16700
	case "scheduling.k8s.io":
		return 16600
	case "coordination.k8s.io":
		return 16500
	case "node.k8s.io":
		return 16300
	case "discovery.k8s.io", "resource.k8s.io":
		return 16200
	case "flowcontrol.apiserver.k8s.io":
		return 16100
	case "storagemigration.k8s.io":
		return 15800
	}
	return customPriority
}

// customPriority is the priority of groups that are not built in.
const customPriority = 1000

// VersionPriority is the priority of a version of a group of this server.
func VersionPriority(gv schema.GroupVersion) int32 {
	switch {
	case gv.Group == "":
		return 1
	case GroupPriority(gv.Group) == customPriority:
		return 100
	case gv.Group == "autoscaling" && gv.Version == "v2":
		return 30
	case gv.Group == "resource.k8s.io", gv.Group == "flowcontrol.apiserver.k8s.io":
		return 21
	}
	return 15
}

// storageVersionHash identifies the storage version; clients notice by it that objects
// may need to be migrated.
func storageVersionHash(stored schema.GroupVersionKind) string {
	if stored.Empty() {
		return ""
	}
	sum := sha256.Sum256([]byte(stored.Group + "/" + stored.Version + "/" + stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
