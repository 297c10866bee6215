// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"testing"

	"github.com/steer-dev/steer/apiserver/openapi"
)

// swaggerOf describes widgets of a group, whose definition Widget has a property of its own.
func swaggerOf(group, property string) []byte {
	return fmt.Appendf(nil, `{"swagger":"2.0","info":{"title":"widgets","version":"v1"},"paths":{
"/apis/%[1]s/v1/widgets":{"get":{"responses":{"200":{"description":"OK","schema":{"$ref":"#/definitions/Widget"}}}}},
"/apis/apps/v1/stolen":{"get":{"responses":{"200":{"description":"OK"}}}}},
"definitions":{"Widget":{"type":"object","properties":{%[2]q:{"type":"string"}}}}}`, group, property)
}

func parsed(t *testing.T, data []byte) *openapi.Swagger {
	t.Helper()
	s, err := openapi.ParseSwagger(data, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// get returns the answer for a path, as JSON, and its ETag.
func get(t *testing.T, d *openapi.Documents, path string) (content map[string]any, etag string) {
	t.Helper()
	w := httptest.NewRecorder()
	d.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
	if w.Code == 200 {
		if err := json.Unmarshal(w.Body.Bytes(), &content); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return content, w.Header().Get("ETag")
}

func TestDocumentsMergeThoseOfOtherServers(t *testing.T) {
	t.Parallel()
	a, b := parsed(t, swaggerOf("a.example.com", "colour")), parsed(t, swaggerOf("b.example.com", "size"))
	same := parsed(t, swaggerOf("c.example.com", "colour"))
	d := openapi.New(nil, openapi.Options{Elsewhere: []openapi.Elsewhere{
		{Path: "apis/a.example.com/v1", Swagger: a}, {Path: "apis/b.example.com/v1", Swagger: b}, {Path: "apis/c.example.com/v1", Swagger: same},
	}})
	content, etag := get(t, d, "/openapi/v2")
	definitions, paths := content["definitions"].(map[string]any), content["paths"].(map[string]any)
	if len(definitions) != 2 || len(paths) != 3 || paths["/apis/apps/v1/stolen"] != nil {
		t.Fatalf("definitions %v, paths %v", definitions, paths)
	}
	for group, name := range map[string]string{"a": "Widget", "b": "Widget_v2", "c": "Widget"} {
		schema := paths["/apis/"+group+".example.com/v1/widgets"].(map[string]any)["get"].(map[string]any)["responses"].(map[string]any)["200"].(map[string]any)["schema"]
		if got := schema.(map[string]any)["$ref"]; got != "#/definitions/"+name {
			t.Errorf("group %s refers to %v, want %s", group, got, name)
		}
	}
	_, again := get(t, openapi.New(nil, openapi.Options{Elsewhere: []openapi.Elsewhere{
		{Path: "apis/a.example.com/v1", Swagger: a}, {Path: "apis/b.example.com/v1", Swagger: b}, {Path: "apis/c.example.com/v1", Swagger: same},
	}}), "/openapi/v2")
	_, other := get(t, openapi.New(nil, openapi.Options{Elsewhere: []openapi.Elsewhere{{Path: "apis/a.example.com/v1", Swagger: a}}}), "/openapi/v2")
	if etag == "" || etag != again || etag == other {
		t.Errorf("the ETag is %s, that of the same documents %s, of others %s", etag, again, other)
	}
}

func TestDocumentsConvertOldDescriptions(t *testing.T) {
	t.Parallel()
	const path = "apis/a.example.com/v1"
	s := parsed(t, swaggerOf("a.example.com", "colour"))
	d := openapi.New(nil, openapi.Options{Elsewhere: []openapi.Elsewhere{{Path: path, Swagger: s, Convert: true}}})
	index, _ := get(t, d, "/openapi/v3")
	url := index["paths"].(map[string]any)[path].(map[string]any)["serverRelativeURL"].(string)
	content, _ := get(t, d, url)
	if content["openapi"] != "3.0.0" || content["components"].(map[string]any)["schemas"].(map[string]any)["Widget"] == nil {
		t.Errorf("%s: %v", url, content)
	}
	d = openapi.New(nil, openapi.Options{Elsewhere: []openapi.Elsewhere{{Path: path, Swagger: s}}})
	if content, _ := get(t, d, "/openapi/v3/"+path); content != nil {
		t.Errorf("a document of a server that has others: %v", content)
	}
}

func TestParseSwaggerRefusesWhatCannotBeMerged(t *testing.T) {
	t.Parallel()
	for _, data := range []string{"", "no JSON", "[]", "null", "{}", `{"swagger":"3.0"}`, `{"openapi":"3.0.0","paths":{}}`, `{"swagger":"2.0","paths":[]}`, `{"swagger":"2.0","definitions":{"a":[]}}`} {
		if s, err := openapi.ParseSwagger([]byte(data), nil); err == nil {
			t.Errorf("%s is read as %v", data, s)
		}
	}
	first := parsed(t, swaggerOf("a.example.com", "colour"))
	if again, err := openapi.ParseSwagger(swaggerOf("a.example.com", "colour"), first); again != first || err != nil {
		t.Errorf("the same document is read again: %v", err)
	}
}

// FuzzParseSwagger: what is read can be merged and converted.
func FuzzParseSwagger(f *testing.F) {
	f.Add(swaggerOf("a.example.com", "colour"))
	f.Add([]byte(`{"swagger":"2.0","paths":{"/apis/a.example.com/v1/x":{"get":{"parameters":[{"$ref":"#/parameters/none"}]}}},"definitions":{"A":{"$ref":"#/definitions/A"}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := openapi.ParseSwagger(data, nil)
		if err != nil {
			return
		}
		const path = "apis/a.example.com/v1"
		d := openapi.New(nil, openapi.Options{Elsewhere: []openapi.Elsewhere{
			{Path: path, Swagger: parsed(t, swaggerOf("a.example.com", "colour"))}, {Path: path, Swagger: s, Convert: true},
		}})
		for _, path := range []string{"/openapi/v2", "/openapi/v3/" + path} {
			w := httptest.NewRecorder()
			d.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", path, nil))
			if w.Code != 200 {
				t.Errorf("%s: %d %s", path, w.Code, w.Body)
			}
		}
	})
}
