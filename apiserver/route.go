// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// request is an API request with what the server has found out about it.
type request struct {
	resource.Request
	http   *http.Request
	values url.Values // of the query; see query
	target exchange.Target
	in     *installed
	sub    *resource.Subresource
}

// newRequest parses a request and finds what serves it.
func (s *Server) newRequest(r *http.Request) *request {
	t := exchange.ParsePath(r.URL.Path)
	req := &request{Request: resource.Request{Path: r.URL.Path, UserAgent: r.UserAgent(), Warnings: &resource.Warnings{}}, http: r, target: t}
	if !t.Resource {
		req.Verb = strings.ToLower(r.Method)
		return req
	}
	req.Verb = t.Verb(r.Method, req.query)
	req.Namespace, req.Name, req.Subresource = t.Namespace, t.Name, t.Subresource
	if t.Name == "" && (req.Verb == "list" || req.Verb == "watch" || req.Verb == "deletecollection") {
		req.Name = exchange.SelectedName(req.query())
	}
	in := s.table.Load().resources[schema.GroupResource{Group: t.Group, Resource: t.Plural}]
	if in == nil || in.versions[t.Version] == nil || in.versions[t.Version].Unserved || !in.scoped(req) {
		return req
	}
	req.in, req.Resource, req.Version = in, in.Resource, in.versions[t.Version]
	if t.Subresource != "" {
		for i := range req.Version.Subresources {
			if sub := &req.Version.Subresources[i]; sub.Name == t.Subresource {
				req.sub = sub
			}
		}
	}
	return req
}

// scoped tells whether a path names a namespace if and only if the resource has
// them; lists and watches may span all.
func (in *installed) scoped(req *request) bool {
	if in.Group == "" && in.Plural == "namespaces" {
		return true
	}
	if !in.Namespaced {
		return req.Namespace == ""
	}
	return req.Namespace != "" || req.target.Name == "" && (req.Verb == "list" || req.Verb == "watch")
}

// query returns the parsed query; it parses once.
func (r *request) query() url.Values {
	if r.values == nil {
		r.values = r.http.URL.Query()
	}
	return r.values
}

func (r *request) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.target.Group, Resource: r.target.Plural}
}

// passage is what decides whether a request is let in.
func (r *request) passage() exchange.Passage {
	return exchange.Passage{
		User: r.User.Name, Exempt: r.User.In(auth.Masters), Read: r.Verb == "get" || r.Verb == "list" || r.Verb == "head",
		Long: r.longRunning(), Watch: r.Verb == "watch",
	}
}

// longRunning tells whether a request may take as long as it likes.
func (r *request) longRunning() bool {
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
	_, ok := backend.(resource.Connecter)
	return ok
}

// streams tells whether the answer of a request comes in pieces over time.
func (s *Server) streams(r *http.Request) bool {
	if s.table.Load().handler(r.URL.Path) != nil {
		return true
	}
	return s.newRequest(r).longRunning()
}
