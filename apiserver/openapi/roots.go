// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"encoding/json"
	"reflect"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
)

// root is a path outside the resources that has a document of its own.
type root struct {
	path, tag, id, description string
	media                      []string
	// answer is the type of the answer, and kind its kind; nil: text.
	answer reflect.Type
	kind   string
}

// roots returns the documents of a server by path: of its version, of discovery, and of the paths in
// Options.Paths that kube-apiserver describes. Groups of custom resources have none.
func roots(resources []Resource, o Options) map[string]*groupVersion {
	discovery := []string{mediaJSON, mediaYAML, mediaProtobuf}
	list := []root{
		{"version", "version", "getCodeVersion", "get the version information for this server", []string{mediaJSON}, reflect.TypeFor[version.Info](), ""},
		{"apis", "apis", "getAPIVersions", "get available API versions", discovery, reflect.TypeFor[metav1.APIGroupList](), "APIGroupList"},
	}
	seen := map[string]bool{}
	for i := range resources {
		r := &resources[i]
		if seen[r.Group] || r.Type == nil {
			continue
		}
		seen[r.Group] = true
		if r.Group == "" {
			list = append(list, root{"api", "core", "getCoreAPIVersions", "get available API versions", discovery, reflect.TypeFor[metav1.APIVersions](), "APIVersions"})
			continue
		}
		b := builder{v: &groupVersion{GroupVersion: schema.GroupVersion{Group: r.Group}}, r: r}
		list = append(list, root{"apis/" + r.Group, b.group(), "get" + capitalise(b.group()) + "APIGroup", "get information of a group", discovery, reflect.TypeFor[metav1.APIGroup](), "APIGroup"})
	}
	for _, r := range []root{
		{".well-known/openid-configuration", "WellKnown", "getServiceAccountIssuerOpenIDConfiguration", "get service account issuer OpenID configuration, also known as the 'OIDC discovery doc'", []string{mediaJSON}, nil, ""},
		{"openid/v1/jwks", "openid", "getServiceAccountIssuerOpenIDKeyset", "get service account issuer OpenID JSON Web Key Set (contains public token verification keys)", []string{"application/jwk-set+json"}, nil, ""},
	} {
		if o.Paths != nil && o.Paths("/"+r.path) {
			list = append(list, r)
		}
	}
	out := map[string]*groupVersion{}
	for _, r := range list {
		out[r.path] = &groupVersion{
			fingerprint: sync.OnceValue(func() string {
				text, err := json.Marshal([]string{o.Version, builtWith(), r.path, r.id, r.description})
				if err != nil {
					panic("openapi: " + err.Error()) // texts always encode
				}
				return sum(text)
			}),
			document: sync.OnceValue(func() *document { return newDocument(r.v3(o), parseV3) }),
		}
	}
	return out
}

// v3 builds the document.
func (r *root) v3(o Options) any {
	components := map[string]any{}
	if r.answer != nil {
		components["schemas"] = r.definitions()
	}
	return map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": o.Version},
		"paths": map[string]any{"/" + r.path + "/": map[string]any{"get": r.get()}}, "components": components,
	}
}

// definitions returns all that the answer refers to.
func (r *root) definitions() map[string]*spec.Schema {
	schemas := gotypes.Definitions(gotypes.Kubernetes(), r.answer)
	if r.kind != "" {
		schemas[gotypes.Name(r.answer)].AddExtension(kindExtension, []any{gvk(schema.GroupVersionKind{Version: "v1", Kind: r.kind})})
		if group := schemas[nameOf[metav1.APIGroup]()]; group != nil && r.kind == "APIGroupList" {
			group.AddExtension(kindExtension, []any{gvk(schema.GroupVersionKind{Version: "v1", Kind: "APIGroup"})})
		}
	}
	return schemas
}

// get is the operation.
func (r *root) get() map[string]any {
	shown := any(map[string]any{"type": "string"})
	if r.answer != nil {
		shown = spec.RefSchema(gotypes.RefPrefix + gotypes.Name(r.answer))
	}
	content := map[string]any{}
	for _, media := range r.media {
		content[media] = map[string]any{"schema": shown}
	}
	return map[string]any{
		"tags": []string{r.tag}, "description": r.description, "operationId": r.id,
		"responses": map[string]any{
			"200": map[string]any{"description": statusText("200"), "content": content},
			"401": map[string]any{"description": "Unauthorized"},
		},
	}
}

// discovery is the path of a group version itself.
func (v *groupVersion) discovery() *root {
	b := builder{v: v, r: &v.resources[0]}
	return &root{
		path(v.GroupVersion), b.group() + "_" + v.Version, "get" + b.prefix() + "APIResources", "get available resources",
		[]string{mediaJSON, mediaYAML, mediaProtobuf}, reflect.TypeFor[metav1.APIResourceList](), "APIResourceList",
	}
}
