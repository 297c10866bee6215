// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"net/http"
	"net/url"
	"testing"
)

// FuzzBodies: no body makes the server panic or answer 500, in any media type.
func FuzzBodies(f *testing.F) {
	for _, body := range []string{
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":3}}`,
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","labels":5,"finalizers":{}}}`,
		"apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: &x a, generateName: *x}", `{"metadata":[],"kind":7}`, "k8s\x00\x0a\x02v1", `[1]`, "null", "",
		`[{"op":"add","path":"/metadata/finalizers/-","value":"x"}]`, `{"spec":null,"metadata":{"ownerReferences":[{"uid":1}]}}`,
	} {
		for kind := range 6 {
			f.Add([]byte(body), uint8(kind))
		}
	}
	s := newServer(f)
	rt := s.RoundTripper(admin)
	const configMaps = "/api/v1/namespaces/default/configmaps"
	send(f, rt, http.MethodPost, widgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"seed"}}`)
	send(f, rt, http.MethodPost, configMaps, `{"metadata":{"name":"seed"}}`)
	f.Fuzz(func(t *testing.T, body []byte, kind uint8) {
		mediaTypes := []string{"application/json", "application/yaml", "application/vnd.kubernetes.protobuf", mergePatch, "application/json-patch+json", "application/apply-patch+yaml"}
		mediaType := mediaTypes[int(kind)%len(mediaTypes)]
		for _, path := range []string{widgetsPath, configMaps} {
			method, query := http.MethodPost, "?dryRun=All"
			if kind%6 >= 3 {
				method, query = http.MethodPatch, "/seed?dryRun=All&fieldManager=fuzz&force=true"
				if kind%6 < 5 {
					query = "/seed?dryRun=All"
				}
			}
			got := send(t, rt, method, path+query, string(body), "Content-Type", mediaType)
			if got.code >= 500 && got.code != 501 && !knownFailure(got.body) {
				t.Errorf("%s %s as %s: %d %s", method, path, mediaType, got.code, got.body)
			}
		}
	})
}

// FuzzQueries: the same for queries.
func FuzzQueries(f *testing.F) {
	for _, q := range []string{
		"labelSelector=a in (b,c),!d&limit=1", "fieldSelector=metadata.name=x,spec.colour!=y", "continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
		"resourceVersion=1&resourceVersionMatch=Exact", "sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "limit=-1&timeoutSeconds=x", "pretty=1&watch=0",
		"dryRun=All&propagationPolicy=Orphan&gracePeriodSeconds=-9223372036854775808",
	} {
		f.Add(q)
	}
	rt := newServer(f).RoundTripper(admin)
	send(f, rt, http.MethodPost, widgetsPath, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"seed"}}`)
	f.Fuzz(func(t *testing.T, query string) {
		values, err := url.ParseQuery(query)
		if err != nil {
			return
		}
		values.Del("watch")
		values.Set("timeout", "10ms")
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			values.Set("dryRun", "All")
			got := send(t, rt, method, widgetsPath+"?"+values.Encode(), "")
			if got.code >= 500 && got.code != 504 && !knownFailure(got.body) {
				t.Errorf("%s ?%s: %d %s", method, values.Encode(), got.code, got.body)
			}
		}
	})
}
