// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kind turns the description of a built-in kind into a resource of the
// API server: what all kinds share, with the functions of each kind in between.
package kind

import (
	"context"
	"reflect"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// Definition describes one built-in kind with objects of type *T. The fields without
// comment are those of resource.Names.
type Definition[T any, P Object[T]] struct {
	Group, Version, Plural string
	// Singular is the kind in lower case unless set.
	Singular          string
	Short, Categories []string
	Cluster           bool // cluster-scoped

	// Deprecation is that of resource.Version.
	Deprecation string
	// NameRule is that of resource.Resource.
	NameRule func(name string, prefix bool) []string

	// Alias keeps the objects as those of another kind, in its bucket; nil: as
	// what they are, in a bucket of their own.
	Alias  *resource.Alias
	Bucket string

	// Family shares the description of types between kinds that have most of
	// them in common; nil: a family of its own.
	Family *Family

	// Others are further versions of the kind, of the same family, and Convert
	// makes its objects of them and the reverse; nil: there are none. The result
	// may share memory with obj, which may be unstructured. [Joined] puts the
	// versions together.
	Others  []string
	Convert func(obj resource.Object, version string) (resource.Object, error)

	// Metadata is how metadata is checked.
	Metadata Metadata

	// Generations are counted: 1 at creation, one more with every change
	// outside metadata and status, and where LabelsCount with one of labels.
	Generations, LabelsCount bool
	// Status is a subresource and cannot be written through the object.
	Status bool
	// Unowned are top-level fields besides status that a write of the object, or of
	// its status, does not set; spec is one for writes of the status in any case.
	Unowned []string
	// InitialStatus is what a new object gets as status; nil: empty.
	InitialStatus func(P)
	// KeepsStatus lets a create set the status although it is a subresource.
	KeepsStatus bool
	// Subresources besides status.
	Subresources []resource.Subresource

	// Defaults fills in what the client left out, on every write.
	Defaults func(P)
	// Prepare applies rules of the kind; old is nil for a creation. It runs
	// after status and before generation are taken care of.
	Prepare func(ctx context.Context, obj, old P)
	// Validate checks an object about to be stored; old is nil for a creation. The rules
	// that Kubernetes declares with markers in the type are applied by themselves, and not
	// repeated here.
	Validate func(obj, old P) field.ErrorList
	// PrepareStatus and ValidateStatus do the same for writes of the status; nil:
	// nothing.
	PrepareStatus  func(ctx context.Context, obj, old P)
	ValidateStatus func(obj, old P) field.ErrorList
	// Warnings about an object that is accepted, StatusWarnings about a status; nil:
	// none.
	Warnings, StatusWarnings func(obj, old P) []string

	// Columns and Row of the table; nil: name and age.
	Columns []metav1.TableColumnDefinition
	Row     func(P) []any
	// Selectable fields besides name and namespace; FieldSelectorMessage is that of
	// [resource.Version].
	Selectable           []Selectable[P]
	FieldSelectorMessage string

	// Unconditional admits updates without a resourceVersion, Creates admits a
	// PUT that creates.
	Unconditional, Creates bool
	Deletion               resource.DeletionRules
}

// Metadata is how a kind checks the metadata of its objects, beside what the API server
// does for all. Where kinds differ, it is in how often a refusal names a mistake. The zero
// value is the usual: updates are checked as updates, finalizers have a domain.
type Metadata struct {
	// RepeatCreationErrors lists the errors of an update a second time, as those of a
	// creation; RepeatStatusCreationErrors, those of an update of the status.
	RepeatCreationErrors, RepeatStatusCreationErrors bool
	// ErrorsOnce lists each error of metadata once, that of the API server, and admits
	// finalizers as AnyFinalizer does; StatusErrorsOnce, for updates of the status.
	ErrorsOnce, StatusErrorsOnce bool
	// KeepMetadataInStatus reports that writes of the status leave labels, annotations,
	// finalizers, owners and the time of deletion as they are.
	KeepMetadataInStatus bool
	// KeepInStatus are single members of these that they leave as they are, where not all.
	KeepInStatus []string
	// AnyFinalizer admits finalizers without a domain which are not those of Kubernetes.
	AnyFinalizer bool
}

// keptInStatus are the members of metadata that writes of the status leave as they are.
func (m Metadata) keptInStatus() []string {
	if m.KeepMetadataInStatus {
		return []string{"labels", "annotations", "finalizers", "ownerReferences", "deletionTimestamp"}
	}
	return m.KeepInStatus
}

// errors is how often writes of the object list errors of metadata.
func (m Metadata) errors() resource.MetadataErrors {
	return resource.MetadataErrors{Once: m.ErrorsOnce, RepeatCreation: m.RepeatCreationErrors}
}

// statusErrors is how often writes of the status do.
func (m Metadata) statusErrors() resource.MetadataErrors {
	return resource.MetadataErrors{Once: m.StatusErrorsOnce, RepeatCreation: m.RepeatStatusCreationErrors}
}

// finalizers checks those of an object, as often as the other metadata.
func (m Metadata) finalizers(obj, old resource.Object, list resource.MetadataErrors) field.ErrorList {
	if m.AnyFinalizer || list.Once {
		return nil
	}
	var errs field.ErrorList
	f := valid.At(field.NewPath("metadata"), &errs)
	f.Finalizers("finalizers", obj.GetFinalizers())
	if old != nil && list.RepeatCreation {
		errs = append(errs, errs...)
	}
	return errs
}

// Object is a pointer to an API type.
type Object[T any] interface {
	*T
	resource.Object
}

// PathSegment is the [Definition.NameRule] of kinds whose names may be anything that fits into
// a path.
func PathSegment(name string, _ bool) []string { return content.IsPathSegmentName(name) }

// Selectable is a field for selectors; Keys is its path if it is a plain string
// in the object's JSON.
type Selectable[P any] struct {
	Path  string
	Value func(P) string
	Keys  []string
}

// Leaf is a selectable field at the path of its name.
func Leaf[P any](path string, value func(P) string) Selectable[P] {
	return Selectable[P]{Path: path, Value: value, Keys: strings.Split(path, ".")}
}

// Strategy returns the rules of the kind, for kinds that are answered and not
// stored.
func (k Definition[T, P]) Strategy() resource.Strategy { return k.rules() }

// FieldManager returns the tracker of field owners, for kinds that are answered and
// not stored.
func (k Definition[T, P]) FieldManager(subresource string) resource.FieldManager {
	if k.Family == nil {
		k.Family = NewFamily()
	}
	gvk := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: reflect.TypeFor[T]().Name()}
	k.Family.add(gvk, reflect.TypeFor[T]())
	return k.ownership(gvk, subresource, "status")
}

// Resource returns the kind as the API server wants it.
func (k Definition[T, P]) Resource() *resource.Resource {
	name := reflect.TypeFor[T]().Name()
	gvk := schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: name}
	if k.Singular == "" {
		k.Singular = strings.ToLower(name)
	}
	if k.Family == nil {
		k.Family = NewFamily()
	}
	k.Family.add(gvk, reflect.TypeFor[T]())
	switch {
	case k.Bucket != "":
	case k.Group == "":
		k.Bucket = k.Plural
	default:
		k.Bucket = k.Group + "/" + k.Plural
	}
	rules := k.rules()
	version := resource.Version{
		Name:                 k.Version,
		New:                  func() resource.Object { return P(new(T)) },
		Strategy:             rules,
		MetadataErrors:       k.Metadata.errors(),
		Canonicalize:         rules.canonicalize,
		FieldManager:         k.ownership(gvk, "", "status"),
		Printer:              table.Default(),
		Subresources:         k.Subresources,
		StrategicMerge:       true,
		Deprecation:          k.Deprecation,
		FieldSelectorMessage: k.FieldSelectorMessage,
	}
	if k.Row != nil {
		docs := knownColumns()
		for i := range k.Columns {
			if c := &k.Columns[i]; c.Description == "" {
				c.Description = docs[name+"/"+c.Name]
			}
		}
		version.Printer = &table.Typed[P]{Definitions: k.Columns, Row: k.Row}
	}
	for _, s := range k.Selectable {
		version.Selectable = append(version.Selectable, resource.SelectableField{
			Path: s.Path, Keys: s.Keys, Value: func(obj resource.Object) string { return s.Value(obj.(P)) },
		})
	}
	if k.Status {
		version.Subresources = append([]resource.Subresource{{
			Name: "status", Strategy: statusStrategy[T, P]{rules}, MetadataErrors: k.Metadata.statusErrors(), FieldManager: k.ownership(gvk, "status", "spec"),
		}}, version.Subresources...)
	}
	return &resource.Resource{
		Names: resource.Names{
			Group: k.Group, Plural: k.Plural, Singular: k.Singular, Kind: name, ListKind: name + "List",
			ShortNames: k.Short, Categories: k.Categories, Namespaced: !k.Cluster,
		},
		Storage:  resource.Storage{Bucket: k.Bucket, Version: k.Version, Alias: k.Alias},
		NameRule: k.NameRule,
		Versions: []resource.Version{version},
		Update:   resource.UpdateRules{Unconditional: k.Unconditional, Creates: k.Creates},
		Deletion: k.Deletion,
	}
}

// Joined returns a resource with the versions of another after its own. convert is
// [Definition.Convert] of both.
func Joined(r, other *resource.Resource, convert func(resource.Object, string) (resource.Object, error)) *resource.Resource {
	r.Versions = append(r.Versions, other.Versions...)
	r.Convert = func(_ context.Context, objects []resource.Object, version string) ([]resource.Object, error) {
		out := make([]resource.Object, len(objects))
		for i, obj := range objects {
			converted, err := convert(obj.DeepCopyObject().(resource.Object), version)
			if err != nil {
				return nil, err
			}
			out[i] = converted
		}
		return out, nil
	}
	return r
}

// ownership returns the tracker of an endpoint through which the field reset, and
// those without an owner, cannot be changed.
func (k Definition[T, P]) ownership(gvk schema.GroupVersionKind, subresource, reset string) *apply.FieldManager {
	e := apply.Endpoint{
		Kind: gvk, Types: k.Family.types, Subresource: subresource,
		New: func() apply.Object { return P(new(T)) },
	}
	if k.Status {
		e.Resets = map[string]*fieldpath.Set{}
		for _, version := range append([]string{k.Version}, k.Others...) {
			gv := schema.GroupVersion{Group: k.Group, Version: version}
			set := fieldpath.NewSet(fieldpath.MakePathOrDie(reset))
			for _, name := range k.Unowned {
				set.Insert(fieldpath.MakePathOrDie(name))
			}
			switch {
			case subresource != "status":
			case k.Metadata.KeepMetadataInStatus:
				set.Insert(fieldpath.MakePathOrDie("metadata"))
			default:
				for _, name := range k.Metadata.KeepInStatus {
					set.Insert(fieldpath.MakePathOrDie("metadata", name))
				}
			}
			e.Resets[gv.String()] = set
		}
	}
	for _, version := range k.Others {
		e.Versions = append(e.Versions, schema.GroupVersion{Group: k.Group, Version: version})
	}
	if k.Convert != nil {
		e.Convert = func(_ context.Context, obj apply.Object, to schema.GroupVersion) (apply.Object, error) {
			return k.Convert(obj.DeepCopyObject().(resource.Object), to.Version)
		}
	}
	return apply.New(e)
}

// Family is a set of kinds whose types are described together.
type Family struct {
	types *apply.Types
	mu    sync.Mutex
	kinds map[schema.GroupVersionKind]reflect.Type
}

// NewFamily returns an empty family.
func NewFamily() *Family {
	f := &Family{kinds: map[schema.GroupVersionKind]reflect.Type{}}
	f.types = apply.FromOpenAPI(f.definitions)
	return f
}

func (f *Family) add(gvk schema.GroupVersionKind, t reflect.Type) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds[gvk] = t
}

// definitions describes the kinds of the family; each is asked for once.
func (f *Family) definitions() map[string]*spec.Schema {
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
