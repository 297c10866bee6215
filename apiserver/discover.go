// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/discovery"
	"github.com/steer-dev/steer/apiserver/resource"
)

// documents returns the discovery documents of the served resources; the first call
// builds them.
func (t *served) documents() func() *discovery.Documents {
	return sync.OnceValue(func() *discovery.Documents {
		var out []discovery.Resource
		for _, in := range t.ordered() {
			for i := range in.Versions {
				if v := &in.Versions[i]; !v.NotServed {
					out = append(out, in.discovered(v))
				}
			}
		}
		var others []discovery.Elsewhere
		for _, d := range t.delegated {
			others = append(others, d.Elsewhere)
		}
		return discovery.New(out, discovery.Options{Elsewhere: others})
	})
}

// ordered returns the resources by group and name.
func (t *served) ordered() []*installed {
	all := make([]*installed, 0, len(t.resources))
	for _, in := range t.resources {
		all = append(all, in)
	}
	slices.SortFunc(all, func(a, b *installed) int {
		return cmp.Or(strings.Compare(a.Group, b.Group), strings.Compare(a.Plural, b.Plural))
	})
	return all
}

// discovered returns the discovery entry of a resource.
func (in *installed) discovered(v *resource.Version) discovery.Resource {
	r := discovery.Resource{
		Group: in.Group, Version: v.Name, Plural: in.Plural, Singular: in.Singular, Kind: in.Kind,
		ShortNames: in.ShortNames, Categories: in.Categories, Namespaced: in.Namespaced, Verbs: in.verbs(v),
	}
	r.Implied = v.Typed()
	if in.Backend == nil {
		r.Stored = in.StoredKind()
	}
	for i := range v.Subresources {
		sub := &v.Subresources[i]
		d := discovery.Subresource{Name: sub.Name, Kind: schema.GroupVersionKind{Kind: in.Kind}, Verbs: []string{"get", "patch", "update"}}
		if sub.Verbs != nil {
			d.Verbs = sub.Verbs
		}
		switch {
		case sub.Scale != nil:
			d.Kind = schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
		case sub.Backend != nil:
			if !sub.Kind.Empty() {
				d.Kind = sub.Kind
			}
			d.Verbs = resource.BackendVerbs(sub.Backend)
			if sub.Verbs != nil {
				d.Verbs = sub.Verbs
			}
		case sub.Action != nil:
			d.Kind, d.Verbs = sub.Kind, []string{"create"}
		}
		r.Subresources = append(r.Subresources, d)
	}
	if v.Typed() {
		slices.SortFunc(r.Subresources, func(a, b discovery.Subresource) int { return strings.Compare(a.Name, b.Name) })
	}
	return r
}

// verbs returns the verbs of a resource in the order of kube-apiserver.
func (in *installed) verbs(v *resource.Version) []string {
	switch {
	case in.Backend != nil:
		return resource.BackendVerbs(in.Backend)
	case in.Deletion.NoDeleteCollection:
		return []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	case v.Typed():
		return []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	}
	return []string{"delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"}
}
