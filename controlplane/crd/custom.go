// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// BucketOf is the bucket that holds the objects of a definition.
func BucketOf(crd *v1.CustomResourceDefinition) string {
	return crd.Spec.Group + "/" + crd.Spec.Names.Plural
}

// customResource returns what serves the objects of a definition, which is stored
// at a revision: what was written later was written under it.
func (d *Definitions) customResource(crd *v1.CustomResourceDefinition, at storage.Revision) (*resource.Resource, error) {
	names := crd.Status.AcceptedNames
	stored, _ := storageVersion(crd)
	r := &resource.Resource{
		Names: resource.Names{
			Group: crd.Spec.Group, Plural: names.Plural, Singular: names.Singular,
			Kind: names.Kind, ListKind: names.ListKind,
			ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced: crd.Spec.Scope == v1.NamespaceScoped,
		},
		Storage: resource.Storage{Bucket: BucketOf(crd), Version: stored, Since: at},
	}
	var convert *converter
	if usesWebhook(crd) {
		convert = d.converterOf(crd)
	}
	owners, err := d.ownershipOf(crd, convert)
	if err != nil {
		return nil, err
	}
	for _, i := range versionsByPreference(crd) {
		v, err := d.customVersion(crd, &crd.Spec.Versions[i], owners)
		if err != nil {
			return nil, err
		}
		r.Versions = append(r.Versions, v)
	}
	if convert != nil {
		r.Convert, r.RemoteConversion = convert.convert, true
	}
	return r, nil
}

// versionsByPreference returns the indexes of the versions that are served or
// stored, the most stable and newest one first.
func versionsByPreference(crd *v1.CustomResourceDefinition) []int {
	var out []int
	for i, v := range crd.Spec.Versions {
		if v.Served || v.Storage {
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return apiversion.CompareKubeAwareVersionStrings(crd.Spec.Versions[b].Name, crd.Spec.Versions[a].Name)
	})
	return out
}

func (d *Definitions) customVersion(crd *v1.CustomResourceDefinition, v *v1.CustomResourceDefinitionVersion, owners *ownership) (resource.Version, error) {
	schema, err := d.options.Schemas.Of(v)
	if err != nil {
		return resource.Version{}, err
	}
	s := &strategy{schema: schema}
	s.kind.Group, s.kind.Version, s.kind.Kind = crd.Spec.Group, v.Name, crd.Status.AcceptedNames.Kind
	out := resource.Version{
		Name: v.Name,
		// The objects of a definition that is going away are deleted through
		// the API, so one version stays within reach.
		NotServed:  !v.Served && !(v.Storage && terminating(crd) && !servesAny(crd)),
		Strategy:   s,
		RawMembers: true,
		Prune:      s.prune,
		Ownership:  owners.object(v.Name),
		Schema:     schema.OpenAPI(),
		Printer:    newPrinter(v.AdditionalPrinterColumns),
		Selectable: selectableFields(v.SelectableFields),
	}
	if v.Deprecated {
		out.Deprecation = deprecation(crd, v)
	}
	if sub := v.Subresources; sub != nil {
		s.hasStatus = sub.Status != nil
		s.scale = newScale(schema, sub.Scale)
		if v.Storage {
			out.Canonicalize = s.settler()
		}
		if s.hasStatus {
			out.Subresources = append(out.Subresources, resource.Subresource{Name: "status", Strategy: statusStrategy{s}, Ownership: owners.status(v.Name)})
		}
		if s.scale != nil {
			out.Subresources = append(out.Subresources, resource.Subresource{Name: "scale", Scale: s.scale, Ownership: owners.scale(v.Name)})
		}
	}
	return out, nil
}

func servesAny(crd *v1.CustomResourceDefinition) bool {
	return slices.ContainsFunc(crd.Spec.Versions, func(v v1.CustomResourceDefinitionVersion) bool { return v.Served })
}

// deprecation returns the warning of a deprecated version. Without a text of
// its own it names the newest served version that is not deprecated.
func deprecation(crd *v1.CustomResourceDefinition, v *v1.CustomResourceDefinitionVersion) string {
	if v.DeprecationWarning != nil {
		return *v.DeprecationWarning
	}
	text := fmt.Sprintf("%s/%s %s is deprecated", crd.Spec.Group, v.Name, crd.Spec.Names.Kind)
	newest := v.Name
	for _, o := range crd.Spec.Versions {
		if o.Served && !o.Deprecated && apiversion.CompareKubeAwareVersionStrings(newest, o.Name) < 0 {
			newest = o.Name
		}
	}
	if newest == v.Name {
		return text
	}
	return fmt.Sprintf("%s; use %s/%s %s", text, crd.Spec.Group, newest, crd.Spec.Names.Kind)
}

// simplePath matches a JSON path that is nothing but a chain of plain fields.
var simplePath = regexp.MustCompile(`^(\.[A-Za-z0-9_-]+)+$`)

func selectableFields(fields []v1.SelectableField) []resource.SelectableField {
	out := make([]resource.SelectableField, 0, len(fields))
	for _, f := range fields {
		s := resource.SelectableField{Path: strings.TrimPrefix(f.JSONPath, ".")}
		if simplePath.MatchString(f.JSONPath) {
			keys := fieldsOf(f.JSONPath)
			s.Keys = keys
			s.Value = func(obj resource.Object) string {
				value, found, err := unstructured.NestedFieldNoCopy(obj.(*unstructured.Unstructured).Object, keys...)
				if err != nil || !found || value == nil {
					return ""
				}
				return fmt.Sprint(value)
			}
		} else {
			s.Value = valueAt(f.JSONPath)
		}
		out = append(out, s)
	}
	return out
}

func valueAt(path string) func(resource.Object) string {
	parsed := jsonpath.New("selectable")
	parsed.AllowMissingKeys(true)
	err := parsed.Parse("{" + path + "}")
	return func(obj resource.Object) string {
		if err != nil {
			return ""
		}
		results, err := parsed.FindResults(obj.(*unstructured.Unstructured).Object)
		if err != nil || len(results) == 0 || len(results[0]) == 0 || results[0][0].Interface() == nil {
			return ""
		}
		return fmt.Sprint(results[0][0].Interface())
	}
}
