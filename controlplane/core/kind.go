// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"reflect"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
	"github.com/steer-dev/steer/apiserver/table"
)

// kind describes one built-in kind with objects of type *T. The fields without
// comment are those of apiserver.Names.
type kind[T any, P object[T]] struct {
	group, version, plural string
	// singular is the kind in lower case unless set.
	singular          string
	short, categories []string
	cluster           bool // cluster-scoped

	// alias keeps the objects as those of another kind, in its bucket; nil: as
	// what they are, in a bucket of their own.
	alias  *apiserver.Alias
	bucket string

	// family shares the description of types between kinds that have most of
	// them in common; nil: a family of its own.
	family *family

	// generations are counted: 1 at creation, one more with every change
	// outside metadata and status.
	generations bool
	// status is a subresource and cannot be written through the object.
	status bool
	// initialStatus is what a new object gets as status; nil: empty.
	initialStatus func(P)
	// keepsStatus lets a create set the status although it is a subresource.
	keepsStatus bool
	// subresources besides status.
	subresources []apiserver.Subresource

	// defaults fills in what the client left out, on every write.
	defaults func(P)
	// prepare applies rules of the kind; old is nil for a creation. It runs
	// after status and before generation are taken care of.
	prepare func(ctx context.Context, obj, old P)
	// validate checks an object about to be stored; old is nil for a creation.
	validate func(obj, old P) field.ErrorList
	// warnings about an object that is accepted.
	warnings func(obj, old P) []string

	// columns and row of the table; nil: name and age.
	columns []metav1.TableColumnDefinition
	row     func(P) []any
	// selectable fields besides name and namespace.
	selectable []selectable[P]

	// unconditional admits updates without a resourceVersion, creates admits a
	// PUT that creates.
	unconditional, creates bool
	deletion               apiserver.DeletionRules
}

// object is a pointer to an API type.
type object[T any] interface {
	*T
	apiserver.Object
}

// selectable is a field for selectors; keys is its path if it is a plain string
// in the object's JSON.
type selectable[P any] struct {
	path  string
	value func(P) string
	keys  []string
}

// leaf is a selectable field at the path of its name.
func leaf[P any](path string, value func(P) string) selectable[P] {
	return selectable[P]{path: path, value: value, keys: strings.Split(path, ".")}
}

// resource returns the kind as the API server wants it.
func (k kind[T, P]) resource() *apiserver.Resource {
	name := reflect.TypeFor[T]().Name()
	gvk := schema.GroupVersionKind{Group: k.group, Version: k.version, Kind: name}
	if k.singular == "" {
		k.singular = strings.ToLower(name)
	}
	if k.family == nil {
		k.family = newFamily()
	}
	k.family.add(gvk, reflect.TypeFor[T]())
	switch {
	case k.bucket != "":
	case k.group == "":
		k.bucket = k.plural
	default:
		k.bucket = k.group + "/" + k.plural
	}
	rules := &strategy[T, P]{kind: k}
	version := apiserver.Version{
		Name:           k.version,
		New:            func() apiserver.Object { return P(new(T)) },
		Strategy:       rules,
		Ownership:      k.ownership(gvk, "", "status"),
		Printer:        table.Default(),
		Subresources:   k.subresources,
		StrategicMerge: true,
	}
	if k.row != nil {
		docs := knownColumns()
		for i := range k.columns {
			if c := &k.columns[i]; c.Description == "" {
				c.Description = docs[name+"/"+c.Name]
			}
		}
		version.Printer = &table.Typed[P]{Definitions: k.columns, Row: k.row}
	}
	for _, s := range k.selectable {
		version.Selectable = append(version.Selectable, apiserver.SelectableField{
			Path: s.path, Keys: s.keys, Value: func(obj apiserver.Object) string { return s.value(obj.(P)) },
		})
	}
	if k.status {
		version.Subresources = append([]apiserver.Subresource{{
			Name: "status", Strategy: statusStrategy[T, P]{rules}, Ownership: k.ownership(gvk, "status", "spec"),
		}}, version.Subresources...)
	}
	return &apiserver.Resource{
		Names: apiserver.Names{
			Group: k.group, Plural: k.plural, Singular: k.singular, Kind: name, ListKind: name + "List",
			ShortNames: k.short, Categories: k.categories, Namespaced: !k.cluster,
		},
		Storage:  apiserver.Storage{Bucket: k.bucket, Version: k.version, Alias: k.alias},
		Versions: []apiserver.Version{version},
		Update:   apiserver.UpdateRules{Unconditional: k.unconditional, Creates: k.creates},
		Deletion: k.deletion,
	}
}

// ownership returns the tracker of an endpoint through which the field reset
// cannot be changed.
func (k kind[T, P]) ownership(gvk schema.GroupVersionKind, subresource, reset string) *apply.Manager {
	e := apply.Endpoint{
		Kind: gvk, Types: k.family.types, Subresource: subresource,
		New: func() apply.Object { return P(new(T)) },
	}
	if k.status {
		e.Resets = map[string]*fieldpath.Set{gvk.GroupVersion().String(): fieldpath.NewSet(fieldpath.MakePathOrDie(reset))}
	}
	return apply.New(e)
}

// family is a set of kinds whose types are described together.
type family struct {
	types *apply.Types
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]reflect.Type
}

func newFamily() *family {
	f := &family{kinds: map[schema.GroupVersionKind]reflect.Type{}}
	f.types = apply.FromOpenAPI(f.definitions)
	return f
}

func (f *family) add(gvk schema.GroupVersionKind, t reflect.Type) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds[gvk] = t
}

// definitions describes the kinds of the family; each is asked for once.
func (f *family) definitions() map[string]*spec.Schema {
	f.mu.Lock()
	defer f.mu.Unlock()
	var types []reflect.Type
	for _, t := range f.kinds {
		types = append(types, t)
	}
	definitions := gotypes.Definitions(gotypes.Kubernetes(), types...)
	for gvk, t := range f.kinds {
		definitions[gotypes.Name(t)].AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{
			"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind,
		}})
	}
	return definitions
}
