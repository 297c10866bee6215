// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// newRequest parses a request and finds what serves it.
func (s *Server) newRequest(r *http.Request) *endpoint.Request {
	t := exchange.ParsePath(r.URL.Path)
	req := &endpoint.Request{Request: resource.Request{Path: r.URL.Path, UserAgent: r.UserAgent(), Warnings: &resource.Warnings{}}, HTTP: r, Target: t}
	s.find(req)
	return req
}

// find fills in what the target of a request tells: its verb, and the resource as
// it is served now.
func (s *Server) find(req *endpoint.Request) {
	t, r := &req.Target, req.HTTP
	if !t.Resource {
		req.Verb = strings.ToLower(r.Method)
		return
	}
	req.Verb = t.Verb(r.Method, req.Query)
	req.Namespace, req.Name, req.Subresource = t.Namespace, t.Name, t.Subresource
	if t.Name == "" && (req.Verb == "list" || req.Verb == "watch" || req.Verb == "deletecollection") {
		req.Name = exchange.SelectedName(req.Query())
	}
	in := s.table.Load().resources[schema.GroupResource{Group: t.Group, Resource: t.Plural}]
	if in == nil || in.Version(t.Version) == nil || in.Version(t.Version).Unserved || !in.scoped(req) {
		return
	}
	req.Served, req.Resource, req.Version = in.Served, in.Resource, in.Version(t.Version)
	if t.Subresource != "" {
		for i := range req.Version.Subresources {
			if sub := &req.Version.Subresources[i]; sub.Name == t.Subresource {
				req.Sub = sub
			}
		}
	}
}

// scoped tells whether a path names a namespace if and only if the resource has
// them; lists and watches may span all, so that built-in kinds have a path there.
func (in *installed) scoped(req *endpoint.Request) bool {
	if in.Group == "" && in.Plural == "namespaces" {
		return true
	}
	if !in.Namespaced {
		return req.Namespace == ""
	}
	return req.Namespace != "" || req.Target.Name == "" && (req.Verb == "list" || req.Verb == "watch" || in.Version(req.Target.Version).Typed())
}

// passage is what decides whether a request is let in.
func passage(r *endpoint.Request) exchange.Passage {
	return exchange.Passage{
		User: r.User.Name, Exempt: r.User.In(auth.Masters), Read: r.Verb == "get" || r.Verb == "list" || r.Verb == "head",
		Long: r.LongRunning(), Watch: r.Verb == "watch",
	}
}

// streams tells whether the answer of a request comes in pieces over time.
func (s *Server) streams(r *http.Request) bool {
	if s.table.Load().handler(r.URL.Path) != nil {
		return true
	}
	return s.newRequest(r).LongRunning()
}
