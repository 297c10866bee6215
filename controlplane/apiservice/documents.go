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
	"time"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/openapi"
)

// document is what a server says about a version. It is not changed once it is published.
type document struct {
	// resources of the version, nil if they are unknown; etag is that of the answer that had
	// them.
	resources []apidiscoveryv2.APIResourceDiscovery
	etag      string
	// openAPI are the URLs of the descriptions of version 3 that the server has, relative to it, by what
	// they describe; nil: it has none.
	openAPI map[string]string
	// onlyOld reports that the server has no descriptions of version 3 at all.
	onlyOld bool
	// swagger is the description of version 2, nil if the server has none, and swaggerETag the ETag of
	// the answer that had it.
	swagger     *openapi.Swagger
	swaggerETag string
	// stale reports that the server did not answer when it was asked last.
	stale bool
}

// acceptDiscovery are the forms of discovery that are understood.
const acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// openAPI asks the server for its descriptions, and returns last with what is new of them. What it
// described last holds while it does not answer, or answers nonsense.
func (b *backend) openAPI(ctx context.Context, last document) *document {
	ctx, cancel := context.WithTimeout(ctx, openAPITimeout)
	defer cancel()
	next := last
	if answer, err := b.get(ctx, checker(), "/openapi/v3", nil); err == nil {
		next.openAPI, next.onlyOld = indexed(answer, last.openAPI), answer.code == http.StatusNotFound
	}
	header := http.Header{"Accept": {"application/json"}}
	if last.swagger != nil && last.swaggerETag != "" {
		header["If-None-Match"] = []string{last.swaggerETag}
	}
	answer, err := b.get(ctx, checker(), "/openapi/v2", header)
	switch {
	case err != nil:
	case answer.code == http.StatusNotFound:
		next.swagger, next.swaggerETag = nil, ""
	case answer.code == http.StatusOK:
		if swagger, err := openapi.ParseSwagger(answer.body, last.swagger); err == nil {
			next.swagger, next.swaggerETag = swagger, answer.header.Get("ETag")
		}
	}
	return &next
}

// indexed returns the URLs in an index of OpenAPI v3; nil: it has none.
func indexed(answer *fetched, last map[string]string) map[string]string {
	if answer.code == http.StatusNotFound {
		return nil
	}
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if answer.code != http.StatusOK || json.Unmarshal(answer.body, &index) != nil {
		return last
	}
	out := map[string]string{}
	for described, at := range index.Paths {
		if strings.HasPrefix(at.ServerRelativeURL, "/openapi/v3/"+described) {
			out[described] = at.ServerRelativeURL
		}
	}
	return out
}

// openAPITimeout bounds the requests for the descriptions of a server.
const openAPITimeout = 30 * time.Second

// invalidError is the error of a server that answers with what is no discovery.
type invalidError struct {
	path string
	err  error
}

func (e *invalidError) Error() string { return e.path + ": " + e.err.Error() }

func (e *invalidError) Unwrap() error { return e.err }

// discover asks for the resources of a version: in the form that has those of all versions,
// or that of one if the server has no other. The error of an answer is an [invalidError].
func (b *backend) discover(ctx context.Context, s service, last, next *document) error {
	// A Service that leads nowhere has no discovery, although a connection may be open.
	if _, err := b.where(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
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
		return &invalidError{"/apis", fmt.Errorf("it is answered with %d", answer.code)}
	case answer.code == http.StatusOK && isAggregated(answer.header.Get("Content-Type")):
		var list apidiscoveryv2.APIGroupDiscoveryList
		if err := json.Unmarshal(answer.body, &list); err != nil {
			return &invalidError{"/apis", err}
		}
		if list.Kind != "APIGroupDiscoveryList" {
			return &invalidError{"/apis", fmt.Errorf("it is answered with a %q", list.Kind)}
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
		return &invalidError{versionPath(s), fmt.Errorf("it is answered with %d", answer.code)}
	}
	if err := json.Unmarshal(answer.body, &list); err != nil {
		return &invalidError{versionPath(s), err}
	}
	if list.Kind != "APIResourceList" {
		return &invalidError{versionPath(s), fmt.Errorf("it is answered with a %q", list.Kind)}
	}
	next.resources, next.etag = aggregated(list.APIResources), ""
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
