// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/apiserver/resource"
)

// Proxy passes HTTP requests on, upgrades included. The credentials of the client, and the
// headers that say for whom a proxy speaks, are not passed on; redirects are answers like
// others.
type Proxy struct {
	// Target returns where requests for an object go to; required. The path below the
	// subresource and the query are added to the URL. It decides where the server connects
	// to. Segments "." and ".." are refused.
	Target func(ctx context.Context, r *resource.Request) (*url.URL, error)
	// Transport sends the requests. nil: [http.DefaultTransport].
	Transport http.RoundTripper
}

// Subresource returns the subresource proxy, with the verbs of all methods.
func (p Proxy) Subresource() resource.Subresource {
	return resource.Subresource{Name: "proxy", Verbs: []string{"create", "delete", "get", "patch", "update"}, Backend: p}
}

// Connect implements [resource.Connecter].
func (p Proxy) Connect(ctx context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) {
	path, escaped, err := below(h.URL, r)
	if err != nil {
		fail(w, err)
		return
	}
	target, err := p.Target(ctx, r)
	if err != nil {
		fail(w, err)
		return
	}
	proxy := &httputil.ReverseProxy{
		Transport: p.Transport,
		Rewrite: func(out *httputil.ProxyRequest) {
			strip(out.Out.Header)
			to := *target
			to.RawPath = strings.TrimSuffix(to.EscapedPath(), "/") + escaped
			to.Path = strings.TrimSuffix(to.Path, "/") + path
			to.RawQuery = h.URL.RawQuery
			out.Out.URL, out.Out.Host = &to, ""
		},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			fail(w, apierrors.NewServiceUnavailable("error trying to reach "+r.Resource.Kind+" "+r.Name+": "+err.Error()))
		},
	}
	proxy.ServeHTTP(w, h.WithContext(ctx))
}

// below returns the path below the subresource of a request, and its encoded form. It
// refuses segments that would lead out of the path of the target.
func below(u *url.URL, r *resource.Request) (path, escaped string, err error) {
	parent := r.Resource.Plural + "/" + r.Name + "/" + r.Subresource
	if r.Namespace != "" {
		parent = "namespaces/" + r.Namespace + "/" + parent
	}
	at := "apis/" + r.Resource.Group + "/" + r.Version.Name + "/" + parent
	if r.Resource.Group == "" {
		at = "api/" + r.Version.Name + "/" + parent
	}
	path, ok := strings.CutPrefix(strings.TrimLeft(u.Path, "/"), at)
	if !ok || path != "" && path[0] != '/' {
		return "", "", apierrors.NewBadRequest("the path does not lead to " + at)
	}
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "." || segment == ".." {
			return "", "", apierrors.NewBadRequest("the path below " + r.Subresource + " must not have the segment " + strconv.Quote(segment))
		}
	}
	escaped = u.EscapedPath()
	for range len(u.Path) - len(path) { // a byte of the path is one of escaped, or three
		if escaped[0] == '%' {
			escaped = escaped[2:]
		}
		escaped = escaped[1:]
	}
	return path, escaped, nil
}

// strip removes what only the server may see, or may say.
func strip(h http.Header) {
	auth.StripCredentials(h, func(plain string) bool { return strings.HasPrefix(plain, "x-forwarded-") })
}
