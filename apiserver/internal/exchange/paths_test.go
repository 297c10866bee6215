// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// FuzzTargets: a path is parsed to the same target as in kube-apiserver, because
// authorization depends on it.
func FuzzTargets(f *testing.F) {
	for _, path := range []string{
		"/", "/api", "/api/v1", "/api/v1/", "/apis/apps/v1", "/healthz", "/api/v1/nodes", "/api/v1/nodes/a/proxy/x/y/", "/api/v1/namespaces", "/api/v1/namespaces/a",
		"/api/v1/namespaces/a/status", "/api/v1/namespaces/a/finalize", "/api/v1/namespaces/a/finalize/x", "/api/v1/namespaces/a/pods/b/log", "/api/v1/namespaces/a/pods/",
		"//api//v1/pods", "/api/v1//pods", "/api/v1/namespaces//pods", "/api/v1/namespaces/a//b", "/apis//v1/things/x", "/apis/g.io/v1/watch/namespaces/a/things/b",
		"/api/v1/watch", "/api/v1/watch/", "/api/v1/watch/namespaces", "/api/v1/watch/watch/a", "/api/v1/proxy/nodes/a/b", "/api/v1/proxy", "/API/v1/pods", "/apis/g/v1/namespaces/a/namespaces/b/c",
	} {
		for _, method := range []string{"GET", "DELETE", "POST", "HEAD", "PUT", "PATCH", "OPTIONS"} {
			f.Add(method, path, "watch=1")
		}
		f.Add("GET", path, "fieldSelector=metadata.name%3Da&watch=false")
	}
	factory := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	f.Fuzz(func(t *testing.T, method, path, query string) {
		u := &url.URL{Path: path, RawQuery: query}
		info, err := factory.NewRequestInfo(&http.Request{Method: method, URL: u})
		got := exchange.ParsePath(path)
		if err != nil {
			if !got.Malformed {
				t.Errorf("%s is %+v, want it refused: %v", path, got, err)
			}
			return
		}
		want := exchange.RequestInfo{}
		verb := strings.ToLower(method)
		if info.IsResourceRequest {
			verb = info.Verb
			want = exchange.RequestInfo{
				Resource: true, Group: info.APIGroup, Version: info.APIVersion, Namespace: info.Namespace,
				Plural: info.Resource, Subresource: info.Subresource, Name: got.Name, Rest: got.Rest, Watch: verb == "watch" && got.Watch, Proxy: verb == "proxy",
			}
			if len(info.Parts) > 1 {
				want.Name = info.Parts[1]
			}
		}
		if got != want {
			t.Errorf("%s is %+v, want %+v", path, got, want)
		}
		if got.Resource {
			if is := got.Verb(method, u.Query); is != verb {
				t.Errorf("%s %s?%s is %q, want %q", method, path, query, is, verb)
			}
		}
	})
}
