// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// RequestInfo is a parsed path, before it is known whether the resource is served.
type RequestInfo struct {
	Resource    bool // in the resource API
	Group       string
	Version     string
	Plural      string
	Namespace   string
	Name        string
	Subresource string
	Rest        string // the path below the subresource
	Watch       bool   // by the deprecated /watch/ prefix
	Proxy       bool   // the /proxy/ prefix of old versions, which is not served
	Malformed   bool   // a prefix without a resource
}

// ParsePath reads a path of the resource API:
//
//	/api/VERSION/... or /apis/GROUP/VERSION/..., then
//	[watch/|proxy/][namespaces/NAMESPACE/]PLURAL[/NAME[/SUBRESOURCE[/...]]]
//
// Slashes at both ends are ignored. Between two slashes is an empty segment like any
// other, so that authorization and serving never see different names.
func ParsePath(p string) RequestInfo {
	t := RequestInfo{}
	p = strings.Trim(p, "/")
	more := true
	next := func() (part string, ok bool) {
		if !more {
			return "", false
		}
		part, p, more = strings.Cut(p, "/")
		return part, true
	}
	prefix, _ := next()
	switch prefix {
	case "api":
	case "apis":
		t.Group, _ = next()
	default:
		return RequestInfo{}
	}
	t.Version, _ = next()
	part, ok := next()
	if !ok {
		return RequestInfo{}
	}
	if part == "watch" || part == "proxy" {
		t.Watch, t.Proxy = part == "watch", part == "proxy"
		if part, ok = next(); !ok {
			return RequestInfo{Malformed: true}
		}
	}
	t.Resource, t.Plural = true, part
	if part == "namespaces" {
		if t.Namespace, ok = next(); !ok {
			return t
		}
		part, ok = next()
		if !ok || part == "status" || part == "finalize" {
			t.Name = t.Namespace
			t.below(part, p)
			return t
		}
		t.Plural = part
	}
	t.Name, _ = next()
	part, _ = next()
	t.below(part, p)
	return t
}

// below sets the part of the path after the name.
func (t *RequestInfo) below(subresource, rest string) {
	if t.Rest = rest; !t.Proxy { // the proxy prefix has no subresources
		t.Subresource = subresource
	}
}

// Verb returns the API verb of a method on a target; "" if there is none.
func (t *RequestInfo) Verb(method string, query func() url.Values) string {
	switch {
	case t.Watch:
		return "watch"
	case t.Proxy:
		return "proxy"
	}
	switch method {
	case http.MethodGet, http.MethodHead:
		switch {
		case t.Name != "":
			return "get"
		case IsTrue(query(), "watch"):
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
		if t.Name == "" {
			return "deletecollection"
		}
		return "delete"
	}
	return ""
}

// IsTrue reads a parameter as kube-apiserver reads booleans: all but false and 0 is true.
func IsTrue(query url.Values, name string) bool {
	values, ok := query[name]
	if !ok {
		return false
	}
	switch strings.ToLower(values[0]) {
	case "false", "0":
		return false
	}
	return true
}

// SelectedName returns the name to which the field selector of a list or watch limits
// it, so that permissions by name apply; "" for none. As in kube-apiserver,
// deletecollection, watches by the deprecated prefix and lists with invalid options
// have none.
func (t *RequestInfo) SelectedName(verb string, query func() url.Values) string {
	if t.Watch || t.Name != "" || verb != "list" && verb != "watch" {
		return ""
	}
	return selectedName(query())
}

// maxSelectorLength is the length up to which selectors of a request are searched for a
// name. This happens before authorization and costs a hundred times the length; a
// request with longer selectors needs permission for all names.
const maxSelectorLength = 512

func selectedName(query url.Values) string {
	if n := len(query.Get("fieldSelector")); n == 0 || n+len(query.Get("labelSelector")) > maxSelectorLength {
		return ""
	}
	for _, option := range []string{"limit", "timeoutSeconds"} {
		if values := query[option]; len(values) > 0 {
			if _, err := strconv.ParseInt(values[0], 10, 64); err != nil {
				return ""
			}
		}
	}
	if _, err := labels.Parse(query.Get("labelSelector")); err != nil {
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
