// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

import (
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
)

// Extensions that identify kinds.
const (
	kindExtension       = "x-kubernetes-group-version-kind"
	actionExtension     = "x-kubernetes-action"
	selectableExtension = "x-kubernetes-selectable-fields"
)

var build = sync.OnceValue(func() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	out := info.Main.Version
	for _, m := range info.Deps {
		if strings.HasPrefix(m.Path, "k8s.io/api") {
			out += " " + m.Path + "@" + m.Version
		}
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" || s.Key == "vcs.time" {
			out += " " + s.Value
		}
	}
	return out
})

// builtWith returns the versions of the modules that the types come from.
func builtWith() string { return build() }

// nameOf returns the definition name of a type.
func nameOf[T any]() string { return gotypes.Name(reflect.TypeFor[T]()) }

// modelName is the definition name of a custom kind: the group in reverse, the
// version and the kind.
func modelName(group, version, kind string) string {
	parts := strings.Split(group, ".")
	slices.Reverse(parts)
	return strings.Join(parts, ".") + "." + version + "." + kind
}

// model returns the definition name of the kind of a resource.
func (r *Resource) model() string {
	if r.Type != nil {
		return gotypes.Name(r.Type)
	}
	return modelName(r.Group, r.Version, r.Kind) + r.suffix
}

// listModel returns the definition name of its list.
func (r *Resource) listModel() string {
	return strings.TrimSuffix(strings.TrimSuffix(r.model(), r.suffix), r.Kind) + r.ListKind + r.suffix
}

// beside returns the group version with other names for definitions of custom kinds that
// others have taken: built-in kinds, whose Go packages a group of such a kind may spell.
func (v *groupVersion) beside(taken map[string]*spec.Schema) *groupVersion {
	out := &groupVersion{GroupVersion: v.GroupVersion, resources: slices.Clone(v.resources)}
	for i := range out.resources {
		if r := &out.resources[i]; r.Type == nil && (taken[r.model()] != nil || taken[r.listModel()] != nil) {
			r.suffix = "_v2"
		}
	}
	return out
}

// model returns the definition name of the body of a subresource.
func (s *Subresource) model(r *Resource) string {
	if s.Type != nil {
		return gotypes.Name(s.Type)
	}
	return r.model()
}

// answer returns the model of the answers to create.
func (s *Subresource) answer() string { return gotypes.Name(s.Answer) }

// definitions returns all definitions that a group version refers to.
func (v *groupVersion) definitions() map[string]*spec.Schema {
	types := []reflect.Type{
		reflect.TypeFor[metav1.ObjectMeta](), reflect.TypeFor[metav1.ListMeta](),
		reflect.TypeFor[metav1.DeleteOptions](), reflect.TypeFor[metav1.Status](),
	}
	kinds := map[string]schema.GroupVersionKind{
		nameOf[metav1.Status]():        {Version: "v1", Kind: "Status"},
		nameOf[metav1.DeleteOptions](): {Group: v.Group, Version: v.Version, Kind: "DeleteOptions"},
	}
	for i := range v.resources {
		r := &v.resources[i]
		if r.Type != nil {
			types = append(types, r.Type)
			kinds[r.model()] = v.WithKind(r.Kind)
		}
		for j := range r.Subresources {
			if s := &r.Subresources[j]; s.Type != nil {
				types = append(types, s.Type)
				kinds[s.model(r)] = s.Kind
				if s.Answer != nil {
					types = append(types, s.Answer)
					kinds[s.answer()] = s.AnswerKind
				}
			}
		}
	}
	out := gotypes.Definitions(gotypes.Kubernetes(), types...)
	for i := range v.resources {
		r := &v.resources[i]
		if r.Type == nil {
			out[r.model()] = r.custom()
			kinds[r.model()] = v.WithKind(r.Kind)
		}
		if r.has("list") || r.Type == nil {
			out[r.listModel()] = r.list()
			kinds[r.listModel()] = v.WithKind(r.ListKind)
		}
	}
	if v.resources[0].Type != nil {
		maps.Copy(out, v.discovery().definitions())
	}
	out[nameOf[metav1.Patch]()] = object("Patch is provided to give a concrete name and type to the Kubernetes PATCH request body.")
	for name, kind := range kinds {
		if s := out[name]; s != nil {
			s.AddExtension(kindExtension, []any{gvk(kind)})
		}
	}
	return out
}

func (r *Resource) has(verb string) bool { return slices.Contains(r.Verbs, verb) }

func gvk(k schema.GroupVersionKind) map[string]any {
	return map[string]any{"group": k.Group, "version": k.Version, "kind": k.Kind}
}

func object(description string) *spec.Schema {
	return new(spec.Schema).Typed("object", "").WithDescription(description)
}

// refer wraps a reference, because siblings of a $ref are ignored.
func refer(model, description string) *spec.Schema {
	return &spec.Schema{SchemaProps: spec.SchemaProps{
		Description: description, AllOf: []spec.Schema{*spec.RefSchema(gotypes.RefPrefix + model)},
	}}
}

// custom returns the definition of a custom kind: its schema with apiVersion, kind and
// metadata.
func (r *Resource) custom() *spec.Schema {
	if r.Schema == nil {
		return object("")
	}
	out := embed(r.Schema, true)
	r.selectable(out)
	return out
}

func (r *Resource) selectable(s *spec.Schema) {
	if len(r.Selectable) == 0 {
		return
	}
	var fields []any
	for _, f := range r.Selectable {
		fields = append(fields, map[string]any{"fieldPath": f})
	}
	s.AddExtension(selectableExtension, fields)
}

// embed copies a schema and adds the members of an object to it, and to embedded
// objects.
func embed(s *spec.Schema, root bool) *spec.Schema {
	out := *s
	out.Extensions = make(spec.Extensions, len(s.Extensions))
	for k, v := range s.Extensions {
		out.Extensions[k] = v
	}
	if s.Properties != nil {
		out.Properties = make(map[string]spec.Schema, len(s.Properties)+3)
		for name, p := range s.Properties {
			out.Properties[name] = *embed(&p, false)
		}
	}
	if s.Items != nil && s.Items.Schema != nil {
		out.Items = &spec.SchemaOrArray{Schema: embed(s.Items.Schema, false)}
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: true, Schema: embed(s.AdditionalProperties.Schema, false)}
	}
	embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource")
	if !root && !embedded {
		return &out
	}
	docs := metav1.TypeMeta{}.SwaggerDoc()
	apiVersion, kind := docs["apiVersion"], docs["kind"]
	if embedded {
		const more = " More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#"
		apiVersion = "apiVersion defines the versioned schema of this representation of an object." + more + "resources"
		kind = "kind is a string value representing the type of this object. In CamelCase." + more + "types-kinds"
		for _, name := range []string{"kind", "apiVersion"} {
			if !slices.Contains(out.Required, name) {
				out.Required = append(slices.Clip(out.Required), name)
			}
		}
	}
	out.SetProperty("apiVersion", *spec.StringProperty().WithDescription(apiVersion))
	out.SetProperty("kind", *spec.StringProperty().WithDescription(kind))
	out.SetProperty("metadata", *refer(nameOf[metav1.ObjectMeta](), metav1.PartialObjectMetadata{}.SwaggerDoc()["metadata"]))
	return &out
}

// list returns the definition of the list of a resource.
func (r *Resource) list() *spec.Schema {
	docs := metav1.TypeMeta{}.SwaggerDoc()
	items := spec.ArrayProperty(spec.RefSchema(gotypes.RefPrefix + r.model())).WithDescription("List of " + r.Plural +
		". More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md")
	out := object(r.ListKind+" is a list of "+r.Kind).
		WithRequired("items").
		SetProperty("apiVersion", *spec.StringProperty().WithDescription(docs["apiVersion"])).
		SetProperty("items", *items).
		SetProperty("kind", *spec.StringProperty().WithDescription(docs["kind"])).
		SetProperty("metadata", *refer(nameOf[metav1.ListMeta](), metav1.PartialObjectMetadataList{}.SwaggerDoc()["metadata"]))
	r.selectable(out)
	return out
}

// ScaleType is the Go type of scale subresources.
func ScaleType() reflect.Type { return reflect.TypeFor[autoscalingv1.Scale]() }
