// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"cmp"
	"context"
	"fmt"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"

	internal "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	api "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"

	server "github.com/steer-dev/steer/crdvalidation"
	"github.com/steer-dev/steer/generate/load"
)

// Lint records what the API server would say against the definitions in the named
// outputs: rules that do not compile or cost too much, defaults that do not fit,
// schemas that are not structural; and what it takes without a word, paths to fields
// that there are not. [Generator.Generate] must have run. Compiling
// rules takes longer than all the rest, so it is for the caller to leave out what
// has not changed.
func (g *Generator) Lint(p *load.Program, names []string) {
	for _, d := range g.made {
		if !slices.Contains(names, d.file()) {
			continue
		}
		var in internal.CustomResourceDefinition
		out := d.object()
		api.SetDefaults_CustomResourceDefinition(out)
		api.SetDefaults_CustomResourceDefinitionSpec(&out.Spec)
		if err := api.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(out, &in, nil); err != nil {
			p.Problemf(d.versions[0].decl.Spec.Pos(), "kind %s: %v", d.kind, err)
			continue
		}
		for _, v := range out.Spec.Versions {
			if v.Storage {
				in.Status.StoredVersions = []string{v.Name}
			}
		}
		d.lint(p, &in)
		for i := range d.versions {
			d.versions[i].checkPaths(p, d.kind)
		}
	}
}

// lint validates a definition. Rules are only looked at once the schema is sound, so
// what is unsound is reported, stripped and then left out, and the rest validated
// again.
func (d *definition) lint(p *load.Program, in *internal.CustomResourceDefinition) {
	const passes = 4
	stripped := map[string]bool{}
	for range passes {
		mended := false
		for _, err := range server.Validate(context.Background(), in) {
			if strings.HasPrefix(err.Field, "metadata.") {
				continue // approval annotations are often added later
			}
			if at, field := d.locate(err.Field); !stripped[err.Field+err.Detail] {
				stripped[err.Field+err.Detail] = true
				p.Problemf(at, "kind %s, %s: %s", d.kind, field, cmp.Or(err.Detail, err.ErrorBody()))
			}
			if !strings.Contains(err.Field, "x-kubernetes-validations") {
				mended = mend(in, err.Field, stripped) || mended
			}
		}
		if !mended {
			return
		}
	}
}

// mend takes out of a schema what makes the field that an error names unsound: at
// first what is not needed to type rules, then the whole node.
func mend(in *internal.CustomResourceDefinition, field string, stripped map[string]bool) bool {
	before, path, ok := strings.Cut(field, "openAPIV3Schema")
	if !ok {
		return false
	}
	var root *internal.JSONSchemaProps
	var index int
	switch n, _ := fmt.Sscanf(before, "spec.versions[%d]", &index); {
	case n == 1 && index < len(in.Spec.Versions) && in.Spec.Versions[index].Schema != nil:
		root = in.Spec.Versions[index].Schema.OpenAPIV3Schema
	case n == 0 && in.Spec.Validation != nil:
		root = in.Spec.Validation.OpenAPIV3Schema
	}
	var nodes []string
	for m := step.FindString(path); m != ""; m = step.FindString(path) {
		nodes, path = append(nodes, m), path[len(m):]
	}
	node := before + strings.Join(nodes, "")
	if root == nil || len(nodes) == 0 {
		return false
	}
	descend(root, nodes, func(s *internal.JSONSchemaProps) {
		if stripped[node] || s.Type == "" {
			yes := true
			*s = internal.JSONSchemaProps{XPreserveUnknownFields: &yes}
			return
		}
		*s = internal.JSONSchemaProps{
			Type: s.Type, Items: s.Items, Properties: s.Properties, Required: s.Required, AdditionalProperties: s.AdditionalProperties,
			MaxLength: s.MaxLength, MaxItems: s.MaxItems, MaxProperties: s.MaxProperties, XValidations: s.XValidations,
		}
	})
	stripped[node] = true
	return true
}

// descend changes the node at the end of a path, or the last one above it that there
// is.
func descend(s *internal.JSONSchemaProps, path []string, change func(*internal.JSONSchemaProps)) {
	if len(path) > 0 {
		m := step.FindStringSubmatch(path[0])
		child, named := s.Properties[m[1]]
		switch {
		case m[1] != "" && named:
			descend(&child, path[1:], change)
			s.Properties[m[1]] = child
			return
		case m[2] == "items" && s.Items != nil && s.Items.Schema != nil:
			descend(s.Items.Schema, path[1:], change)
			return
		case m[2] == "additionalProperties" && s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
			descend(s.AdditionalProperties.Schema, path[1:], change)
			return
		}
	}
	change(s)
}

func (d *definition) file() string { return fmt.Sprintf("%s_%s.yaml", d.group, d.plural) }

// object is the definition as the API's own type.
func (d *definition) object() *api.CustomResourceDefinition {
	out := &api.CustomResourceDefinition{
		ObjectMeta: meta.ObjectMeta{Name: d.plural + "." + d.group, Annotations: d.annotations, Labels: d.labels},
		Spec: api.CustomResourceDefinitionSpec{
			Group: d.group, Scope: api.ResourceScope(d.scope),
			Names: api.CustomResourceDefinitionNames{
				Kind: d.kind, ListKind: d.kind + "List", Plural: d.plural, Singular: d.singular,
				ShortNames: d.shortNames, Categories: d.categories,
			},
		},
	}
	for i := range d.versions {
		v := &d.versions[i]
		version := api.CustomResourceDefinitionVersion{
			Name: v.name, Served: v.served, Storage: v.storage, Deprecated: v.deprecated, DeprecationWarning: v.warning,
			Schema: &api.CustomResourceValidation{OpenAPIV3Schema: v.schema.Props(nil)},
		}
		for _, c := range v.columns {
			version.AdditionalPrinterColumns = append(version.AdditionalPrinterColumns, api.CustomResourceColumnDefinition{
				Name: c.Name, Type: c.Type, JSONPath: c.JSONPath, Description: c.Description, Format: c.Format, Priority: c.Priority,
			})
		}
		for _, path := range v.selectable {
			version.SelectableFields = append(version.SelectableFields, api.SelectableField{JSONPath: path})
		}
		if v.hasSubresources {
			version.Subresources = &api.CustomResourceSubresources{}
			if v.status {
				version.Subresources.Status = &api.CustomResourceSubresourceStatus{}
			}
			if v.scale != nil {
				version.Subresources.Scale = &api.CustomResourceSubresourceScale{
					SpecReplicasPath: v.scale.SpecPath, StatusReplicasPath: v.scale.StatusPath, LabelSelectorPath: v.scale.SelectorPath,
				}
			}
		}
		out.Spec.Versions = append(out.Spec.Versions, version)
	}
	return out
}

// step is one element of a path into a schema.
var step = regexp.MustCompile(`^\.?(?:properties\[([^\]]*)\]|(items|additionalProperties)|allOf\[(\d+)\])`)

// locate finds the source of what a field path of the API server's means, and
// shortens the path to what an author knows.
func (d *definition) locate(field string) (token.Pos, string) {
	v := &d.versions[0]
	rest, inSchema := strings.CutPrefix(field, "spec.validation.openAPIV3Schema")
	if !inSchema {
		var index int
		if n, _ := fmt.Sscanf(field, "spec.versions[%d]", &index); n == 1 && index < len(d.versions) {
			v = &d.versions[index]
		}
		_, rest, inSchema = strings.Cut(field, "openAPIV3Schema")
	}
	pos := v.decl.Spec.Pos()
	if !inSchema {
		return pos, field
	}
	path := v.name
	s := v.schema
	for s != nil {
		if s.Pos.IsValid() {
			pos = s.Pos
		}
		m := step.FindStringSubmatch(rest)
		if m == nil {
			break
		}
		rest = rest[len(m[0]):]
		switch {
		case m[1] != "":
			path, s = path+"."+m[1], s.Properties[m[1]]
		case m[2] == "items":
			path, s = path+"[]", s.Items
		case m[2] != "":
			path, s = path+".*", s.Additional
		default:
			n, _ := strconv.Atoi(m[3])
			if n >= len(s.AllOf) {
				return pos, path + rest
			}
			s = s.AllOf[n]
		}
	}
	return pos, path + rest
}
