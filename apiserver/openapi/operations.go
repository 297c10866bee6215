// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"strings"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Media types of bodies and answers.
const (
	mediaJSON     = "application/json"
	mediaYAML     = "application/yaml"
	mediaProtobuf = "application/vnd.kubernetes.protobuf"
)

// pathItem is one path with its operations by method, for both versions of OpenAPI.
type pathItem struct {
	parameters []parameter
	operations map[string]operation
}

// operation is one method of one path.
type operation struct {
	id, tag, description string
	action               string
	kind                 schema.GroupVersionKind
	parameters           []parameter
	// body is the definition name of the request body, empty for none, and
	// accepts its media types.
	body     string
	required bool
	accepts  []string
	// answers are definition names by status code.
	answers  map[string]string
	produces []string
}

// parameter is a parameter in the path or query.
type parameter struct{ name, in, schemaType, description string }

// paths returns the paths of a group version.
func (v *groupVersion) paths() map[string]pathItem {
	out := map[string]pathItem{}
	for i := range v.resources {
		v.addPaths(out, &v.resources[i])
	}
	return out
}

func (v *groupVersion) addPaths(out map[string]pathItem, r *Resource) {
	base := "/" + path(v.GroupVersion)
	b := builder{v: v, r: r}
	collection, scope := base+"/"+r.Plural, []parameter{pretty()}
	if r.Namespaced {
		collection = base + "/namespaces/{namespace}/" + r.Plural
		scope = []parameter{inNamespace(), pretty()}
		if r.has("list") {
			out[base+"/"+r.Plural] = pathItem{
				parameters: withPretty(listParameters()),
				operations: map[string]operation{"get": b.list("list" + b.prefix() + r.Kind + "ForAllNamespaces")},
			}
		}
	}
	name := parameter{"name", "path", "string", "name of the " + r.Kind}
	object := collection + "/{name}"
	objectScope := append([]parameter{name}, scope...)
	item := func(path string, parameters []parameter, operations map[string]operation) {
		if len(operations) > 0 {
			out[path] = pathItem{parameters: parameters, operations: operations}
		}
	}
	item(collection, scope, b.collection())
	item(object, objectScope, b.object())
	for i := range r.Subresources {
		s := &r.Subresources[i]
		item(object+"/"+s.Name, objectScope, b.subresource(s))
	}
}

// builder makes the operations of one resource.
type builder struct {
	v *groupVersion
	r *Resource
}

// prefix returns group and version in camel case, for operation ids.
func (b builder) prefix() string { return capitalise(b.group()) + capitalise(b.v.Version) }

// group returns the group in camel case, for operation ids and tags.
func (b builder) group() string {
	name := strings.TrimSuffix(b.v.Group, ".k8s.io")
	if name == "" {
		return "core"
	}
	parts := strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '-' })
	for i := range parts {
		if i > 0 {
			parts[i] = capitalise(parts[i])
		}
	}
	return strings.Join(parts, "")
}

func capitalise(s string) string {
	if s == "" {
		return ""
	}
	r := []rune(s)
	r[0] = unicode.ToUpper(r[0])
	return string(r)
}

// id returns the id of an operation, such as "readAppsV1NamespacedDeploymentStatus".
func (b builder) id(verb, suffix string) string {
	if b.r.Namespaced {
		return verb + b.prefix() + "Namespaced" + b.r.Kind + suffix
	}
	return verb + b.prefix() + b.r.Kind + suffix
}

func (b builder) operation(id, action, description string) operation {
	o := operation{
		id: id, tag: b.group() + "_" + b.v.Version, description: description, action: action, kind: b.v.WithKind(b.r.Kind),
		produces: []string{mediaJSON, mediaYAML},
	}
	if b.r.Type != nil || b.r.Protobuf {
		o.produces = append(o.produces, mediaProtobuf)
	}
	return o
}

// accepts returns the media types of whole objects.
func (b builder) accepts() []string {
	if b.r.Type != nil {
		return []string{"*/*"}
	}
	if b.r.Protobuf {
		return []string{mediaJSON, mediaYAML, mediaProtobuf}
	}
	return []string{mediaJSON, mediaYAML}
}

func (b builder) list(id string) operation {
	description := "list objects of kind " + b.r.Kind
	o := b.operation(id, "list", description)
	if b.r.Type != nil {
		o.description = "list or watch objects of kind " + b.r.Kind
	}
	if b.r.Type != nil || b.r.Protobuf {
		o.produces = append(o.produces, mediaJSON+";stream=watch", mediaProtobuf+";stream=watch")
	}
	o.answers = map[string]string{"200": b.r.listModel()}
	return o
}

func (b builder) collection() map[string]operation {
	out := map[string]operation{}
	if b.r.has("list") {
		o := b.list(b.id("list", ""))
		o.parameters = listParameters()
		out["get"] = o
	}
	if b.r.has("create") {
		o := b.operation(b.id("create", ""), "post", "create "+article(b.r.Kind))
		o.parameters = writeParameters(metav1.CreateOptions{}.SwaggerDoc())
		o.body, o.required, o.accepts = b.r.model(), true, b.accepts()
		o.answers = map[string]string{"200": b.r.model(), "201": b.r.model(), "202": b.r.model()}
		out["post"] = o
	}
	if b.r.has("deletecollection") {
		verb := "delete" + b.prefix() + "Collection"
		if b.r.Namespaced {
			verb += "Namespaced"
		}
		o := b.operation(verb+b.r.Kind, "deletecollection", "delete collection of "+b.r.Kind)
		o.parameters = listParameters()
		o.answers = map[string]string{"200": nameOf[metav1.Status]()}
		if b.r.Type != nil {
			o.parameters = deleteCollectionParameters()
			o.body, o.accepts = nameOf[metav1.DeleteOptions](), b.accepts()
		}
		out["delete"] = o
	}
	return out
}

func (b builder) object() map[string]operation {
	out := map[string]operation{}
	for _, verb := range b.r.Verbs {
		switch verb {
		case "get":
			out["get"] = b.read("", "the specified "+b.r.Kind, b.r.model())
		case "update":
			out["put"] = b.replace("", "the specified "+b.r.Kind, b.r.model())
		case "patch":
			out["patch"] = b.patch("", "the specified "+b.r.Kind, b.r.model())
		case "delete":
			o := b.operation(b.id("delete", ""), "delete", "delete "+article(b.r.Kind))
			o.parameters = deleteParameters()
			o.body, o.accepts = nameOf[metav1.DeleteOptions](), b.accepts()
			o.answers = map[string]string{"200": nameOf[metav1.Status](), "202": nameOf[metav1.Status]()}
			out["delete"] = o
		}
	}
	return out
}

func (b builder) subresource(s *Subresource) map[string]operation {
	out := map[string]operation{}
	suffix, of, model := capitalise(s.Name), s.Name+" of the specified "+b.r.Kind, s.model(b.r)
	for _, verb := range s.Verbs {
		var o operation
		method := map[string]string{"get": "get", "update": "put", "patch": "patch", "create": "post"}[verb]
		switch verb {
		case "get":
			o = b.read(suffix, of, model)
		case "update":
			o = b.replace(suffix, of, model)
		case "patch":
			o = b.patch(suffix, of, model)
		case "create":
			o = b.operation(b.id("create", suffix), "post", "create "+s.Name+" of "+article(b.r.Kind))
			o.parameters = writeParameters(metav1.CreateOptions{}.SwaggerDoc())
			o.body, o.required, o.accepts = model, true, b.accepts()
			answer := model
			if s.Answer != nil {
				answer = s.answer()
			}
			o.answers = map[string]string{"200": answer, "201": answer, "202": answer}
		default:
			continue
		}
		if s.Kind.Kind != "" && b.r.Type != nil {
			o.kind = s.Kind
		}
		out[method] = o
	}
	return out
}

func (b builder) read(suffix, of, model string) operation {
	o := b.operation(b.id("read", suffix), "get", "read "+of)
	if b.r.Type == nil {
		o.parameters = []parameter{query("resourceVersion", "string", metav1.ListOptions{}.SwaggerDoc())}
	}
	o.answers = map[string]string{"200": model}
	return o
}

func (b builder) replace(suffix, of, model string) operation {
	o := b.operation(b.id("replace", suffix), "put", "replace "+of)
	o.parameters = writeParameters(metav1.UpdateOptions{}.SwaggerDoc())
	o.body, o.required, o.accepts = model, true, b.accepts()
	o.answers = map[string]string{"200": model, "201": model}
	return o
}

func (b builder) patch(suffix, of, model string) operation {
	o := b.operation(b.id("patch", suffix), "patch", "partially update "+of)
	docs := metav1.PatchOptions{}.SwaggerDoc()
	o.parameters = append(writeParameters(docs), query("force", "boolean", docs))
	o.body, o.required = nameOf[metav1.Patch](), true
	o.accepts = []string{"application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml"}
	o.answers = map[string]string{"200": model}
	if b.r.Type != nil {
		o.accepts = []string{"application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json", "application/apply-patch+yaml"}
		o.answers["201"] = model
	}
	return o
}

// article returns a kind with "a" or "an".
func article(kind string) string {
	if strings.ContainsRune("AEIOU", rune(kind[0])) {
		return "an " + kind
	}
	return "a " + kind
}
