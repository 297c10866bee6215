// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// target is a parsed path: what a request is about, before it is known whether
// anything serves it.
type target struct {
	resource    bool // in the resource API
	group       string
	version     string
	plural      string
	namespace   string
	name        string
	subresource string
	rest        string // of the path below the subresource
	watch       bool   // by the deprecated /watch/ prefix
}

// parsePath reads a path of the resource API:
//
//	/api/VERSION/... or /apis/GROUP/VERSION/..., then
//	[watch/][namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE[/...]]]
func parsePath(p string) target {
	t := target{}
	next := func() (part string, ok bool) {
		p = strings.TrimPrefix(p, "/")
		if p == "" {
			return "", false
		}
		part, p, _ = strings.Cut(p, "/")
		return part, true
	}
	prefix, _ := next()
	switch prefix {
	case "api":
	case "apis":
		t.group, _ = next()
	default:
		return target{}
	}
	t.version, _ = next()
	part, ok := next()
	if !ok {
		return target{}
	}
	if part == "watch" {
		t.watch = true
		if part, ok = next(); !ok {
			return target{}
		}
	}
	t.resource, t.plural = true, part
	if part == "namespaces" {
		namespace, ok := next()
		if !ok {
			return t
		}
		t.namespace = namespace
		part, ok = next()
		if !ok || part == "status" || part == "finalize" {
			t.name, t.subresource = namespace, part
			t.rest = p
			return t
		}
		t.plural = part
	}
	t.name, _ = next()
	t.subresource, _ = next()
	t.rest = p
	return t
}

// verb returns what a method does to a target; empty when nothing.
func (t *target) verb(method string, query func() url.Values) string {
	if t.watch {
		return "watch"
	}
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case t.name != "":
			return "get"
		case isWatch(query()):
			return "watch"
		}
		return "list"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if t.name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}

func isWatch(query url.Values) bool {
	values, ok := query["watch"]
	if !ok {
		return false
	}
	switch strings.ToLower(values[0]) {
	case "false", "0":
		return false
	}
	return true
}

// selectedName is the name that a field selector pins down, so that permissions
// by name hold for lists and watches.
func selectedName(query url.Values) string {
	if query.Get("fieldSelector") == "" {
		return ""
	}
	selector, err := fields.ParseSelector(query.Get("fieldSelector"))
	if err != nil {
		return ""
	}
	name, ok := selector.RequiresExactMatch("metadata.name")
	if !ok || len(content.IsPathSegmentName(name)) > 0 {
		return ""
	}
	return name
}

// newRequest parses a request and finds what serves it.
func (s *Server) newRequest(r *http.Request) *Request {
	t := parsePath(r.URL.Path)
	req := &Request{Path: r.URL.Path, UserAgent: r.UserAgent(), http: r, target: t, warnings: &warnings{}}
	if !t.resource {
		req.Verb = strings.ToLower(r.Method)
		return req
	}
	req.Verb = t.verb(r.Method, req.query)
	req.Namespace, req.Name, req.Subresource = t.namespace, t.name, t.subresource
	if t.name == "" && (req.Verb == "list" || req.Verb == "watch" || req.Verb == "deletecollection") {
		req.Name = selectedName(req.query())
	}
	in := s.table.Load().resources[schema.GroupResource{Group: t.group, Resource: t.plural}]
	if in == nil || in.versions[t.version] == nil || in.versions[t.version].Unserved || !in.scoped(req) {
		return req
	}
	req.in, req.Resource, req.Version = in, in.Resource, in.versions[t.version]
	if t.subresource != "" {
		for i := range req.Version.Subresources {
			if sub := &req.Version.Subresources[i]; sub.Name == t.subresource {
				req.sub = sub
			}
		}
	}
	return req
}

// scoped tells whether a path names a namespace if and only if the resource has
// them; lists and watches may span all.
func (in *installed) scoped(req *Request) bool {
	if in.Group == "" && in.Plural == "namespaces" {
		return true
	}
	if !in.Namespaced {
		return req.Namespace == ""
	}
	return req.Namespace != "" || req.target.name == "" && (req.Verb == "list" || req.Verb == "watch")
}

// query returns the parsed query; it parses once.
func (r *Request) query() url.Values {
	if r.values == nil {
		r.values = r.http.URL.Query()
	}
	return r.values
}

// group, version and plural of the path, also when nothing serves it.
func (r *Request) groupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: r.target.group, Version: r.target.version}
}

func (r *Request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.target.group, Resource: r.target.plural}
}

// longRunning tells whether a request may take as long as it likes.
func (r *Request) longRunning() bool {
	if r.Verb == "watch" {
		return true
	}
	if r.in == nil {
		return false
	}
	backend := r.in.Backend
	if r.sub != nil {
		backend = r.sub.Backend
	}
	_, ok := backend.(Connecter)
	return ok
}

// streams tells whether the answer of a request comes in pieces over time.
func (s *Server) streams(r *http.Request) bool {
	if s.table.Load().handler(r.URL.Path) != nil {
		return true
	}
	return s.newRequest(r).longRunning()
}
