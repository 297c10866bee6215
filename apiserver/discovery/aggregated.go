// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// aggregatedType are the media type parameters of the aggregated form.
const aggregatedType = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// aggregated is the aggregated document of one prefix.
type aggregated struct {
	list *apidiscoveryv2.APIGroupDiscoveryList
	json []byte
	etag string
}

// aggregate builds the document of the core group, or of all others.
func aggregate(groups []group, core bool) *aggregated {
	list := &apidiscoveryv2.APIGroupDiscoveryList{
		TypeMeta: metav1.TypeMeta{APIVersion: "apidiscovery.k8s.io/v2", Kind: "APIGroupDiscoveryList"},
		Items:    []apidiscoveryv2.APIGroupDiscovery{},
	}
	for _, g := range groups {
		if (g.name == "") != core {
			continue
		}
		item := apidiscoveryv2.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: g.name}}
		for _, v := range g.versions {
			entry := apidiscoveryv2.APIVersionDiscovery{Version: v.Version, Freshness: apidiscoveryv2.DiscoveryFreshnessCurrent}
			if v.other != nil {
				entry.Resources = v.other.Resources
				if v.other.Stale {
					entry.Freshness = apidiscoveryv2.DiscoveryFreshnessStale
				}
			}
			for _, r := range v.resources {
				entry.Resources = append(entry.Resources, r.aggregate())
			}
			item.Versions = append(item.Versions, entry)
		}
		list.Items = append(list.Items, item)
	}
	body, err := json.Marshal(list)
	if err != nil {
		panic(fmt.Sprintf("discovery: encode %T: %v", list, err)) // plain strings and lists always encode
	}
	return &aggregated{list: list, json: body, etag: fmt.Sprintf("%q", fmt.Sprintf("%X", sha512.Sum512(body)))}
}

func (r *Resource) aggregate() apidiscoveryv2.APIResourceDiscovery {
	own := schema.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
	if r.Implied {
		own.Group, own.Version = "", ""
	}
	out := apidiscoveryv2.APIResourceDiscovery{
		Resource: r.Plural, ResponseKind: responseKind(own), Scope: apidiscoveryv2.ScopeCluster,
		SingularResource: r.Singular, Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
	}
	if r.Namespaced {
		out.Scope = apidiscoveryv2.ScopeNamespace
	}
	for _, s := range r.Subresources {
		kind := s.Kind
		if kind.Version == "" {
			kind.Group, kind.Version = own.Group, own.Version
		}
		if kind.Kind == "" {
			kind.Kind = own.Kind
		}
		out.Subresources = append(out.Subresources, apidiscoveryv2.APISubresourceDiscovery{
			Subresource: s.Name, ResponseKind: responseKind(kind), Verbs: s.Verbs,
		})
	}
	return out
}

func responseKind(k schema.GroupVersionKind) *metav1.GroupVersionKind {
	return &metav1.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Kind}
}
