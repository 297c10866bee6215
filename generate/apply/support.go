// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	openapi "github.com/google/gnostic-models/openapiv2"
	"go.yaml.in/yaml/v2"
	"k8s.io/kube-openapi/pkg/schemaconv"
	"k8s.io/kube-openapi/pkg/util/proto"
	merge "sigs.k8s.io/structured-merge-diff/v6/schema"

	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/schema"
)

// outputs makes all files of a package.
func (t *target) outputs() ([]load.Output, error) {
	schema, err := t.schema()
	if err != nil {
		return nil, err
	}
	var all []load.Output
	add := func(output load.Output, err error) error {
		all = append(all, output)
		return err
	}
	for _, decl := range t.structs {
		if err := add(t.configuration(decl)); err != nil {
			return nil, fmt.Errorf("%s: %w", decl.Spec.Name.Name, err)
		}
	}
	if err := add(t.forKind()); err != nil {
		return nil, err
	}
	return all, add(t.parser(schema))
}

// forKind writes the function from kinds to apply configurations.
func (t *target) forKind() (load.Output, error) {
	base := path.Join(t.pkg.Path, t.dir)
	f := t.file(base)
	f.line("// ForKind returns an apply configuration type for the given GroupVersionKind, or nil if no")
	f.line("// apply configuration type exists for the given GroupVersionKind.")
	f.line("func ForKind(kind %s) interface{} {", f.ref("k8s.io/apimachinery/pkg/runtime/schema", "GroupVersionKind"))
	f.line("switch kind {")
	if len(t.structs) > 0 {
		f.line("// Group=%s, Version=%s", t.group, path.Base(t.pkg.Path))
	}
	for _, decl := range t.structs {
		name := decl.Spec.Name.Name
		f.line("case %s.WithKind(%q):", f.ref(t.pkg.Path, "SchemeGroupVersion"), name)
		f.line("return &%s{}", f.ref(path.Join(base, t.sub), name+suffix))
	}
	if len(t.structs) > 0 {
		f.line("")
	}
	f.line("}\nreturn nil\n}")
	f.line("\nfunc NewTypeConverter(scheme *%s) %s {", f.ref("k8s.io/apimachinery/pkg/runtime", "Scheme"), f.ref("k8s.io/apimachinery/pkg/util/managedfields", "TypeConverter"))
	f.line("return %s(scheme, %s())\n}", f.ref("k8s.io/apimachinery/pkg/util/managedfields", "NewSchemeTypeConverter"), f.ref(path.Join(base, "internal"), "Parser"))
	return f.output(path.Base(base), "utils.go")
}

// parser writes the schema that merging and extracting need.
func (t *target) parser(schema string) (load.Output, error) {
	const typed = "sigs.k8s.io/structured-merge-diff/v6/typed"
	f := t.file(path.Join(t.pkg.Path, t.dir, "internal"))
	f.line("func Parser() *%s {", f.ref(typed, "Parser"))
	f.line("parserOnce.Do(func() {\nvar err error\nparser, err = %s(schemaYAML)", f.ref(typed, "NewParser"))
	f.line("if err != nil {\npanic(%s(\"Failed to parse schema: %%v\", err))\n}\n})\nreturn parser\n}\n", f.ref("fmt", "Sprintf"))
	f.line("var parserOnce %s\nvar parser *%s", f.ref("sync", "Once"), f.ref(typed, "Parser"))
	f.line("var schemaYAML = %s(`%s`)", f.ref(typed, "YAMLObject"), schema)
	return f.output("internal", "internal/internal.go")
}

// schema makes the merge schema of the kinds and of what they are made of.
func (t *target) schema() (string, error) {
	all, err := crd.Definitions(t.program, t.kinds)
	if err != nil {
		return "", err
	}
	needed := map[string]any{}
	for _, kind := range t.kinds {
		name := schema.DefinitionName(t.pkg.Path, kind.Spec.Name.Name)
		definition, ok := all[name].(map[string]any)
		if !ok {
			continue
		}
		definition["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": t.group, "version": t.version, "kind": kind.Spec.Name.Name}}
		needed[name] = definition
		collect(definition, all, needed)
	}
	document, err := json.Marshal(map[string]any{
		"swagger": "2.0", "info": map[string]any{"title": "Apply configurations", "version": "v1"},
		"paths": map[string]any{}, "definitions": needed,
	})
	if err != nil {
		return "", err
	}
	parsed, err := openapi.ParseDocument(document)
	if err != nil {
		return "", err
	}
	models, err := proto.NewOpenAPIData(parsed)
	if err != nil {
		return "", err
	}
	made, err := schemaconv.ToSchema(models)
	if err != nil {
		return "", err
	}
	text, err := yaml.Marshal(ownMaps(made))
	return string(text), err
}

// ownMaps copies a schema with all its maps. Untyped values share one map in the whole
// process, in which a control plane of this process keeps an index of fields, made at its first
// search; yaml copies maps whole, that index included, without its lock.
func ownMaps(of *merge.Schema) *merge.Schema {
	var out merge.Schema
	for _, def := range of.Types {
		def.Atom = ownMap(def.Atom)
		out.Types = append(out.Types, def)
	}
	return &out
}

func ownMap(of merge.Atom) merge.Atom {
	if of.List != nil {
		list := *of.List
		list.ElementType.Inlined = ownMap(list.ElementType.Inlined)
		of.List = &list
	}
	if of.Map != nil {
		var own merge.Map
		of.Map.CopyInto(&own)
		own.ElementType.Inlined = ownMap(own.ElementType.Inlined)
		own.Fields = slices.Clone(own.Fields)
		for i := range own.Fields {
			own.Fields[i].Type.Inlined = ownMap(own.Fields[i].Type.Inlined)
		}
		of.Map = &own
	}
	return of
}

// collect adds the definitions that a value refers to.
func collect(value any, all, needed map[string]any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			collect(item, all, needed)
		}
	case map[string]any:
		for key, item := range value {
			link, ok := item.(string)
			if key != "$ref" || !ok {
				collect(item, all, needed)
				continue
			}
			name := strings.TrimPrefix(link, "#/definitions/")
			if needed[name] == nil && all[name] != nil {
				needed[name] = all[name]
				collect(all[name], all, needed)
			}
		}
	}
}
