// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiservice

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// document is what a server says about a version. It is not changed once it is published.
type document struct {
	// resources of the version, nil if they are unknown; etag is that of the answer that had
	// them.
	resources []apidiscoveryv2.APIResourceDiscovery
	etag      string
	// openAPI is the URL of the description of version 3, relative to the server; empty: it has
	// none.
	openAPI string
	// stale reports that the server did not answer when it was asked last.
	stale bool
}

// acceptDiscovery are the forms of discovery that are understood.
const acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// describe asks the server what it says about a version, and returns last if that has not
// changed.
func (b *backend) describe(ctx context.Context, s service, last *document) (*document, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	next := &document{}
	if err := b.discover(ctx, s, last, next); err != nil {
		return nil, err
	}
	answer, err := b.get(ctx, checker(), "/openapi/v3", nil)
	if err != nil {
		return nil, err
	}
	if answer.code == http.StatusOK {
		var index struct {
			Paths map[string]struct {
				ServerRelativeURL string `json:"serverRelativeURL"`
			} `json:"paths"`
		}
		if err := json.Unmarshal(answer.body, &index); err != nil {
			return nil, fmt.Errorf("the index of OpenAPI: %w", err)
		}
		// What the server says about versions that are not its own is ignored.
		path := strings.TrimPrefix(versionPath(s), "/")
		if url := index.Paths[path].ServerRelativeURL; strings.HasPrefix(url, "/openapi/v3/"+path) {
			next.openAPI = url
		}
	}
	return next, nil
}

// discover asks for the resources of a version: in the form that has those of all versions,
// or that of one if the server has no other.
func (b *backend) discover(ctx context.Context, s service, last, next *document) error {
	header := http.Header{"Accept": {acceptDiscovery}}
	if last != nil && last.etag != "" {
		header["If-None-Match"] = []string{last.etag}
	}
	answer, err := b.get(ctx, checker(), "/apis", header)
	switch {
	case err != nil:
		return err
	case answer.code == http.StatusNotModified && last != nil:
		next.resources, next.etag = last.resources, last.etag
		return nil
	case answer.code == http.StatusServiceUnavailable:
		return fmt.Errorf("%s is answered with %d", "/apis", answer.code)
	case answer.code == http.StatusOK && isAggregated(answer.header.Get("Content-Type")):
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(answer.body, &list); err != nil {
			return fmt.Errorf("%s: %w", "/apis", err)
		}
		next.etag = answer.header.Get("ETag")
		next.resources = resourcesOf(&list, s)
		return nil
	}
	if answer, err = b.get(ctx, checker(), versionPath(s), http.Header{"Accept": {"application/json"}}); err != nil {
		return err
	}
	var list metav1.APIResourceList
	if answer.code != http.StatusOK {
		return fmt.Errorf("%s is answered with %d", versionPath(s), answer.code)
	}
	if err := json.Unmarshal(answer.body, &list); err != nil {
		return fmt.Errorf("%s: %w", versionPath(s), err)
	}
	next.resources = aggregated(list.APIResources)
	return nil
}

// isAggregated reports whether a media type is that of the form with all versions.
func isAggregated(text string) bool {
	_, parameters, err := mime.ParseMediaType(text)
	return err == nil && parameters["g"] == "apidiscovery.k8s.io" && parameters["as"] == "APIGroupDiscoveryList"
}

// resourcesOf returns the resources of a version, with the kinds that clients expect
// everywhere; none if the server does not list the version.
func resourcesOf(list *apidiscoveryv2.APIGroupDiscoveryList, s service) []apidiscoveryv2.APIResourceDiscovery {
	for _, g := range list.Items {
		for _, v := range g.Versions {
			if g.Name != s.Spec.Group || v.Version != s.Spec.Version {
				continue
			}
			for i := range v.Resources {
				r := &v.Resources[i]
				if r.ResponseKind == nil {
					r.ResponseKind = &metav1.GroupVersionKind{}
				}
				for k := range r.Subresources {
					if sub := &r.Subresources[k]; sub.ResponseKind == nil {
						sub.ResponseKind = &metav1.GroupVersionKind{}
					}
				}
			}
			return v.Resources
		}
	}
	return nil
}

// aggregated returns resources in the form that has them with their subresources.
func aggregated(list []metav1.APIResource) []apidiscoveryv2.APIResourceDiscovery {
	var out []apidiscoveryv2.APIResourceDiscovery
	at := map[string]int{}
	entry := func(name string, namespaced bool) *apidiscoveryv2.APIResourceDiscovery {
		i, ok := at[name]
		if !ok {
			i = len(out)
			at[name] = i
			scope := apidiscoveryv2.ScopeCluster
			if namespaced {
				scope = apidiscoveryv2.ScopeNamespace
			}
			out = append(out, apidiscoveryv2.APIResourceDiscovery{Resource: name, Scope: scope})
		}
		return &out[i]
	}
	for i := range list {
		r := &list[i]
		kind := &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
		parent, sub, isSub := strings.Cut(r.Name, "/")
		e := entry(parent, r.Namespaced)
		if isSub {
			e.Subresources = append(e.Subresources, apidiscoveryv2.APISubresourceDiscovery{Subresource: sub, ResponseKind: kind, Verbs: r.Verbs})
			continue
		}
		e.ResponseKind, e.Verbs, e.SingularResource, e.ShortNames, e.Categories = kind, r.Verbs, r.SingularName, r.ShortNames, r.Categories
	}
	return out
}
