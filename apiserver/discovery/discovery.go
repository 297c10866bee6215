// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package discovery tells clients what a server serves: the legacy documents
// (/api, /apis, /apis/GROUP, /apis/GROUP/VERSION) and the aggregated form, which
// holds all of it in one document per prefix.
//
// [New] takes the list of resources as it is at one moment and returns
// [Documents], an http.Handler that never changes: a server makes new ones after
// every change of its resources. Documents are encoded by the first request for
// them, so that a thousand changes in a row cost nothing but the list.
package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// Resource is one resource in one version.
type Resource struct {
	Group, Version         string
	Plural, Singular, Kind string
	ShortNames, Categories []string
	Namespaced             bool
	// Verbs as clients are told, in this order; none hides the resource itself,
	// but not its subresources.
	Verbs []string
	// Stored is the kind as which objects are stored; empty if they are not.
	Stored schema.GroupVersionKind
	// Implied says that the aggregated form leaves the group and the version of
	// response kinds empty where they are those of the resource, as it always was
	// for built-in kinds.
	Implied bool
	// Subresources, in this order.
	Subresources []Subresource
}

// Subresource is a path below the objects of a resource.
type Subresource struct {
	Name string
	// Kind of its body; the version of the resource fills what is empty.
	Kind  schema.GroupVersionKind
	Verbs []string
}

// Options of [New].
type Options struct {
	// ServerAddress is the host:port that /api names for clients anywhere.
	ServerAddress string
	// Stale lists group versions that are known but cannot be asked at present.
	Stale []schema.GroupVersion
}

// Documents are what a server tells about itself at one moment. They are safe
// for concurrent use.
type Documents struct {
	options Options
	groups  func() []group
	core    func() *aggregated
	named   func() *aggregated
}

// New returns the documents for a list of resources, which must not be changed
// any more.
func New(resources []Resource, o Options) *Documents {
	d := &Documents{options: o}
	d.groups = sync.OnceValue(func() []group { return arrange(resources) })
	d.core = sync.OnceValue(func() *aggregated { return aggregate(d.groups(), true, o) })
	d.named = sync.OnceValue(func() *aggregated { return aggregate(d.groups(), false, o) })
	return d
}

// group is a group with its versions, preferred first.
type group struct {
	name     string
	versions []groupVersion
}

type groupVersion struct {
	schema.GroupVersion
	resources []Resource
}

// arrange sorts resources into groups: groups by priority and name, versions by
// stability and number, resources by name.
func arrange(resources []Resource) []group {
	byVersion := map[schema.GroupVersion][]Resource{}
	versions := map[string][]string{}
	for _, r := range resources {
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		if byVersion[gv] == nil {
			versions[r.Group] = append(versions[r.Group], r.Version)
		}
		byVersion[gv] = append(byVersion[gv], r)
	}
	var groups []group
	for name, names := range versions {
		g := group{name: name}
		slices.SortFunc(names, func(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) })
		for _, v := range names {
			gv := schema.GroupVersion{Group: name, Version: v}
			slices.SortFunc(byVersion[gv], func(a, b Resource) int { return cmp.Compare(a.Plural, b.Plural) })
			g.versions = append(g.versions, groupVersion{gv, byVersion[gv]})
		}
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b group) int {
		return cmp.Or(cmp.Compare(priority(b.name), priority(a.name)), cmp.Compare(a.name, b.name))
	})
	return groups
}

// priority orders groups as clients see them: the built-in ones in their
// traditional order, then all others by name.
func priority(group string) int {
	order := [...]string{
		"flowcontrol.apiserver.k8s.io", "resource.k8s.io", "discovery.k8s.io", "node.k8s.io", "coordination.k8s.io",
		"scheduling.k8s.io", "apiextensions.k8s.io", "admissionregistration.k8s.io", "storage.k8s.io",
		"rbac.authorization.k8s.io", "policy", "networking.k8s.io", "certificates.k8s.io", "batch", "autoscaling",
		"authorization.k8s.io", "authentication.k8s.io", "events.k8s.io", "apps", "apiregistration.k8s.io",
	}
	return slices.Index(order[:], group) // -1 for others
}

// storageVersionHash is the fingerprint of the stored form, by which clients
// notice that objects may need to be rewritten.
func storageVersionHash(stored schema.GroupVersionKind) string {
	if stored.Empty() {
		return ""
	}
	sum := sha256.Sum256([]byte(stored.Group + "/" + stored.Version + "/" + stored.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}
