// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Proxy passes HTTP requests on, upgrades included. The credentials of the client, and the
// headers that say for whom a proxy speaks, are not passed on; redirects are answers like
// others.
type Proxy struct {
	// Target returns where requests for an object go to; required. The path below the
	// subresource and the query are added to the URL. It decides where the server connects
	// to.
	Target func(ctx context.Context, r *resource.Request) (*url.URL, error)
	// Transport sends the requests. nil: [http.DefaultTransport].
	Transport http.RoundTripper
}

// Connect implements [resource.Connecter].
func (p Proxy) Connect(ctx context.Context, r *resource.Request, w http.ResponseWriter, h *http.Request) {
	target, err := p.Target(ctx, r)
	if err != nil {
		fail(w, err)
		return
	}
	below := below(h.URL.Path, r)
	proxy := &httputil.ReverseProxy{
		Transport: p.Transport,
		Rewrite: func(out *httputil.ProxyRequest) {
			strip(out.Out.Header)
			to := *target
			to.Path = strings.TrimSuffix(to.Path, "/") + below
			to.RawPath, to.RawQuery = "", h.URL.RawQuery
			out.Out.URL, out.Out.Host = &to, ""
		},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			fail(w, apierrors.NewServiceUnavailable("error trying to reach "+r.Resource.Kind+" "+r.Name+": "+err.Error()))
		},
	}
	proxy.ServeHTTP(w, h.WithContext(ctx))
}

// below returns the path below the subresource of a request.
func below(path string, r *resource.Request) string {
	parent := r.Resource.Plural + "/" + r.Name + "/" + r.Subresource
	if r.Namespace != "" {
		parent = "namespaces/" + r.Namespace + "/" + parent
	}
	at := "/apis/" + r.Resource.Group + "/" + r.Version.Name + "/" + parent
	if r.Resource.Group == "" {
		at = "/api/" + r.Version.Name + "/" + parent
	}
	return strings.TrimPrefix(path, at)
}

// strip removes what only the server may see, or may say.
func strip(h http.Header) {
	for name := range h {
		lower := strings.ToLower(name)
		switch {
		case lower == "authorization", lower == "cookie", lower == "proxy-authorization",
			strings.HasPrefix(lower, "x-remote-"), strings.HasPrefix(lower, "impersonate-"), strings.HasPrefix(lower, "x-forwarded-"):
			h.Del(name)
		}
	}
}
