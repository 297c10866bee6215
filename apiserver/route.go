// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/endpoint"
	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/resource"
)

// newRequest parses a request and finds the resource that it names.
func (s *Server) newRequest(r *http.Request) (*endpoint.Request, *installed) {
	t := exchange.ParsePath(r.URL.Path)
	req := &endpoint.Request{Request: resource.Request{Path: r.URL.Path, RawQuery: r.URL.RawQuery, UserAgent: r.UserAgent(), Warnings: &resource.Warnings{}}, HTTP: r, Info: t}
	return req, s.find(req)
}

// find sets the verb and the resource of a request from its target, and returns the
// resource as it is served now; nil for none.
func (s *Server) find(req *endpoint.Request) *installed {
	t, r := &req.Info, req.HTTP
	if !t.Resource {
		req.Verb = strings.ToLower(r.Method)
		return nil
	}
	req.Verb = t.Verb(r.Method, req.Query)
	req.Namespace, req.Name, req.Subresource = t.Namespace, t.Name, t.Subresource
	if name := t.SelectedName(req.Verb, req.Query); name != "" {
		req.Name = name
	}
	served := s.table.Load()
	if req.Elsewhere = served.elsewhere(r.URL.Path) != nil; req.Elsewhere {
		return nil
	}
	in := served.resources[schema.GroupResource{Group: t.Group, Resource: t.Plural}]
	if in == nil || t.Proxy || strings.HasPrefix(r.URL.Path, "//") {
		return nil
	}
	v := in.Version(t.Version)
	if v == nil || v.NotServed || !in.scoped(req, v) {
		return nil
	}
	req.Served, req.Resource, req.Version = in.Served, in.Resource, v
	if t.Subresource != "" {
		req.Sub = v.Subresource(t.Subresource)
	}
	return in
}

// scoped reports whether a path names a namespace if and only if the resource is
// namespaced; lists and watches of built-in kinds may cover all namespaces.
func (in *installed) scoped(req *endpoint.Request, v *resource.Version) bool {
	if in.Group == "" && in.Plural == "namespaces" {
		return true
	}
	if !in.Namespaced {
		return req.Namespace == ""
	}
	return req.Namespace != "" || req.Info.Name == "" && (req.Verb == "list" || req.Verb == "watch" || v.Typed())
}

// streams reports whether the answer of a request is sent in pieces over time.
func (s *Server) streams(r *http.Request) bool {
	if s.table.Load().handler(r.URL.Path) != nil {
		return true
	}
	req, _ := s.newRequest(r)
	return req.LongRunning()
}
