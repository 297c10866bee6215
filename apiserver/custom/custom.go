// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"

	apiversion "k8s.io/apimachinery/pkg/version"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// BucketOf returns the bucket in which the objects of a definition are stored.
func BucketOf(crd *v1.CustomResourceDefinition) string {
	return crd.Spec.Group + "/" + crd.Spec.Names.Plural
}

// Options of [Resource]. The zero value works.
type Options struct {
	// Schemas compiles and remembers the schemas. nil: they are compiled for this resource.
	Schemas *Schemas
	// Since is that of [resource.Storage]. 0: all stored objects have the definition's form.
	Since storage.Revision
	// Convert converts objects between versions; nil: versions differ in apiVersion alone.
	Convert Converter
	// Remote is set if Convert does network I/O; see [resource.Resource.RemoteConversion].
	Remote bool
}

// Converter returns objects in another version of their resource, in the same order; see
// [resource.Resource.Convert].
type Converter func(ctx context.Context, objects []resource.Object, version string) ([]resource.Object, error)

// one converts one object for a field manager.
func (c Converter) one(ctx context.Context, obj apply.Object, to schema.GroupVersion) (apply.Object, error) {
	out, err := c(ctx, []resource.Object{obj}, to.Version)
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// Resource returns the resource of a definition whose names are accepted, as
// status.acceptedNames says. [Parse] returns such a definition.
func Resource(crd *v1.CustomResourceDefinition, o Options) (*resource.Resource, error) {
	if o.Schemas == nil {
		o.Schemas = NewSchemas()
	}
	names := crd.Status.AcceptedNames
	stored, _ := StorageVersion(crd)
	r := &resource.Resource{
		Names: resource.Names{
			Group: crd.Spec.Group, Plural: names.Plural, Singular: names.Singular,
			Kind: names.Kind, ListKind: names.ListKind,
			ShortNames: names.ShortNames, Categories: names.Categories,
			Namespaced: crd.Spec.Scope == v1.NamespaceScoped,
		},
		Storage:          resource.Storage{Bucket: BucketOf(crd), Version: stored, Since: o.Since},
		Convert:          o.Convert,
		RemoteConversion: o.Remote,
	}
	owners, err := ownershipOf(crd, o)
	if err != nil {
		return nil, err
	}
	for _, i := range versionsByPreference(crd) {
		v, err := versionOf(crd, &crd.Spec.Versions[i], o.Schemas, owners)
		if err != nil {
			return nil, err
		}
		r.Versions = append(r.Versions, v)
	}
	return r, nil
}

// StorageVersion returns the version that objects are stored in; an invalid definition
// may have none, or one without a name.
func StorageVersion(crd *v1.CustomResourceDefinition) (name string, ok bool) {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return crd.Spec.Versions[i].Name, true
		}
	}
	return "", false
}

// Last reports whether a definition is being deleted and serves no version: its storage
// version is then served nevertheless, because its objects are deleted through the API.
func Last(crd *v1.CustomResourceDefinition) bool {
	return apihelpers.IsCRDConditionTrue(crd, v1.Terminating) && !servesAny(crd)
}

// versionsByPreference returns the indexes of the versions, the most stable and newest one
// first. Objects may be stored in any, also in one that is neither served nor the storage
// version any more.
func versionsByPreference(crd *v1.CustomResourceDefinition) []int {
	out := make([]int, len(crd.Spec.Versions))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return apiversion.CompareKubeAwareVersionStrings(crd.Spec.Versions[b].Name, crd.Spec.Versions[a].Name)
	})
	return out
}

func versionOf(crd *v1.CustomResourceDefinition, v *v1.CustomResourceDefinitionVersion, schemas *Schemas, owners *ownership) (resource.Version, error) {
	schema, err := schemas.Of(v)
	if err != nil {
		return resource.Version{}, err
	}
	s := &strategy{schema: schema}
	s.kind.Group, s.kind.Version, s.kind.Kind = crd.Spec.Group, v.Name, crd.Status.AcceptedNames.Kind
	out := resource.Version{
		Name:           v.Name,
		NotServed:      !v.Served && !(v.Storage && Last(crd)),
		Strategy:       s,
		DefaultApplied: s.defaultApplied,
		Prune:          s.prune,
		FieldManager:   owners.object(v.Name),
		Schema:         schema.OpenAPI(),
		Printer:        newPrinter(v.AdditionalPrinterColumns),
		Selectable:     selectableFields(v.SelectableFields),
	}
	if v.Deprecated {
		out.Deprecation = deprecation(crd, v)
	}
	if sub := v.Subresources; sub != nil {
		s.hasStatus = sub.Status != nil
		s.scale = newScale(schema, sub.Scale)
		if v.Storage {
			out.Canonicalize = s.canonicalizer()
		}
		if s.hasStatus {
			out.Subresources = append(out.Subresources, resource.Subresource{Name: "status", Strategy: statusStrategy{s}, FieldManager: owners.status(v.Name)})
		}
		if s.scale != nil {
			out.Subresources = append(out.Subresources, resource.Subresource{Name: "scale", Scale: s.scale, FieldManager: owners.scale(v.Name)})
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
				value, found, err := unstructured.NestedFieldNoCopy(obj.(*resource.Doc).Content(keys[0]), keys...)
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
		results, err := parsed.FindResults(obj.(*resource.Doc).Content())
		if err != nil || len(results) == 0 || len(results[0]) == 0 || results[0][0].Interface() == nil {
			return ""
		}
		return fmt.Sprint(results[0][0].Interface())
	}
}
