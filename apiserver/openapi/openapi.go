// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openapi describes the served resources as OpenAPI documents: version 3 with
// an index and one document per group version, and version 2 with everything in one.
// kubectl validate and kubectl explain use them. Paths of discovery and the like have documents of
// version 3, too.
//
// [New] takes a list of resources and returns [Documents], an immutable http.Handler: a
// server creates new ones after every change of its resources. That costs little,
// because documents are built on demand: the index consists of fingerprints, and a
// document is built and encoded by the first request for it.
//
// The operations are those that clients use: the verbs of resources and subresources,
// with kind, action and parameters. The deprecated paths under /watch are left out, and non-resource
// paths in version 2.
package openapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/openapiconv"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Resource is one resource in one version.
type Resource struct {
	Group, Version, Plural string
	Kind, ListKind         string
	Namespaced             bool
	// Verbs as in discovery.
	Verbs []string
	// Subresources, such as status and scale.
	Subresources []Subresource
	// Type is the Go type of the objects; nil for custom resources.
	Type reflect.Type
	// Schema of a custom resource, without metadata, which is added; nil: its objects
	// are not described. It is not changed.
	Schema *spec.Schema
	// Protobuf is set if a custom resource has a protobuf form.
	Protobuf bool
	// Selectable fields of a custom resource, such as "spec.colour".
	Selectable []string

	suffix string // of the names of its definitions in version 2, where others have them
}

// Subresource is a path below the objects of a resource.
type Subresource struct {
	Name  string
	Verbs []string
	// Kind of its body; empty means the kind of the resource.
	Kind schema.GroupVersionKind
	// Type of its body if it is not that of the resource.
	Type reflect.Type
	// Answer is the type of the answers to create, and AnswerKind their kind. nil: Type.
	Answer     reflect.Type
	AnswerKind schema.GroupVersionKind
}

// Options of [New].
type Options struct {
	// Version of Kubernetes in the documents, such as "v1.37.0".
	Version string
	// Paths reports whether the server answers at a path outside the resource API. nil: nowhere.
	Paths func(path string) bool
	// Elsewhere is what other servers say about their versions, in the order in which documents of
	// version 2 are merged.
	Elsewhere []Elsewhere
}

// Documents are the OpenAPI documents of a list of resources. They are safe for
// concurrent use.
type Documents struct {
	options  Options
	versions map[string]*groupVersion // by path, such as "apis/apps/v1"
	// converted are those made of documents of version 2 of other servers.
	converted map[string]*groupVersion
	// roots are those of paths outside the resources.
	roots map[string]*groupVersion
	// others are the documents of version 3 of other servers, by path.
	others map[string]other
	merged func() *document
	etag   func() string // of merged
}

// other is a document of another server.
type other struct {
	url     string
	handler http.Handler
}

// groupVersion is the document of one group version.
type groupVersion struct {
	schema.GroupVersion
	resources   []Resource
	fingerprint func() string
	document    func() *document
}

// New returns the documents of a list of resources, which must not be changed any more.
func New(resources []Resource, o Options) *Documents {
	d := &Documents{options: o, versions: map[string]*groupVersion{}, converted: map[string]*groupVersion{}}
	for _, r := range resources {
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		v := d.versions[path(gv)]
		if v == nil {
			v = &groupVersion{GroupVersion: gv}
			v.fingerprint = sync.OnceValue(func() string { return fingerprint(o.Version, v.resources) })
			v.document = sync.OnceValue(func() *document { return newDocument(v.v3(o), parseV3) })
			d.versions[path(gv)] = v
		}
		v.resources = append(v.resources, r)
	}
	d.etag = sync.OnceValue(func() string {
		var all strings.Builder
		for _, p := range slices.Sorted(maps.Keys(d.versions)) {
			all.WriteString(d.versions[p].fingerprint())
		}
		for _, e := range o.Elsewhere {
			if e.Swagger != nil {
				all.WriteString(e.Path + e.Swagger.hash)
			}
		}
		return sum([]byte(all.String()))
	})
	d.merged = sync.OnceValue(func() *document {
		content, err := merge(d.v2(), o.Elsewhere)
		if err != nil {
			return &document{err: err}
		}
		return newDocument(content, parseV2)
	})
	for _, e := range o.Elsewhere {
		if e.Convert && e.Swagger != nil {
			d.converted[e.Path] = &groupVersion{
				fingerprint: func() string { return e.Swagger.hash },
				document:    sync.OnceValue(func() *document { return newDocument(openapiconv.ConvertV2ToV3(e.Swagger.document), parseV3) }),
			}
		}
	}
	d.roots = roots(resources, o)
	d.others = others(d.own, o.Elsewhere)
	return d
}

// own returns the document of this server at a path, nil if it has none.
func (d *Documents) own(p string) *groupVersion {
	if v := d.converted[p]; v != nil {
		return v
	}
	if v := d.versions[p]; v != nil {
		return v
	}
	return d.roots[p]
}

// others returns the documents that other servers have, where own returns those of this one.
func others(own func(string) *groupVersion, elsewhere []Elsewhere) map[string]other {
	out := map[string]other{}
	for _, e := range elsewhere {
		out[e.Path] = other{url: e.Documents[e.Path], handler: e.Handler}
	}
	for _, e := range elsewhere {
		for p, url := range e.Documents {
			if _, taken := out[p]; !taken && own(p) == nil {
				out[p] = other{url: url, handler: e.Handler}
			}
		}
	}
	maps.DeleteFunc(out, func(_ string, o other) bool { return o.url == "" })
	return out
}

// path returns the path of a group version below the server's root.
func path(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

// fingerprint changes with everything that changes the document of the resources.
func fingerprint(version string, resources []Resource) string {
	type identity struct {
		Resource
		Type string
	}
	all := []any{version, builtWith()}
	for _, r := range resources {
		id := identity{Resource: r}
		if r.Type != nil {
			id.Type = r.Type.String()
			id.Resource.Type = nil
		}
		id.Subresources = slices.Clone(r.Subresources)
		for i := range id.Subresources {
			id.Subresources[i].Type = nil
		}
		all = append(all, id)
	}
	raw, err := json.Marshal(all)
	if err != nil {
		panic(fmt.Sprintf("openapi: encode %T: %v", all, err)) // schemas and strings always encode
	}
	return sum(raw)
}

func sum(data []byte) string { return fmt.Sprintf("%X", sha512.Sum512(data)) }
