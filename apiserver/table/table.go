// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table renders objects as the tables that kubectl shows: columns with
// their definitions, one row of cells per object.
//
// A [Printer] knows the columns of a resource: [Custom] has those of a custom
// resource, given as JSON paths, [Typed] has those of a Go type, and [Default]
// has name and age. [Row] and [Columns] put the pieces of a metav1.Table together.
//
// Cells that show an age depend on the moment: rows must not be kept.
package table

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// Object is an API object, typed or unstructured.
type Object = interface {
	runtime.Object
	metav1.Object
}

// Printer turns objects of one resource into cells. It is safe for concurrent
// use.
type Printer interface {
	// Columns of the table, in order; not to be changed.
	Columns() []metav1.TableColumnDefinition
	// Cells of one object, one per column.
	Cells(obj Object) ([]any, error)
}

// Row renders one object. include says what travels beside the cells: the
// object's metadata (metav1.IncludeMetadata, also if empty), the whole object or
// nothing.
func Row(p Printer, obj Object, include metav1.IncludeObjectPolicy) (metav1.TableRow, error) {
	cells, err := p.Cells(obj)
	if err != nil {
		return metav1.TableRow{}, fmt.Errorf("print %s: %w", obj.GetName(), err)
	}
	row := metav1.TableRow{Cells: cells}
	switch include {
	case metav1.IncludeNone:
	case metav1.IncludeObject:
		row.Object.Object = obj
	case metav1.IncludeMetadata, "":
		row.Object.Object = partial(obj)
	default:
		return metav1.TableRow{}, fmt.Errorf("unrecognized includeObject value: %q", include)
	}
	return row, nil
}

// partial is the metadata of an object as an object of its own.
func partial(obj Object) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata"},
	}
	if typed, ok := obj.(metav1.ObjectMetaAccessor); ok {
		if m, ok := typed.GetObjectMeta().(*metav1.ObjectMeta); ok {
			m.DeepCopyInto(&out.ObjectMeta)
			return out
		}
	}
	out.ObjectMeta = metav1.ObjectMeta{
		Name: obj.GetName(), GenerateName: obj.GetGenerateName(), Namespace: obj.GetNamespace(),
		UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion(), Generation: obj.GetGeneration(),
		CreationTimestamp: obj.GetCreationTimestamp(), DeletionTimestamp: obj.GetDeletionTimestamp(),
		DeletionGracePeriodSeconds: obj.GetDeletionGracePeriodSeconds(),
		Labels:                     obj.GetLabels(), Annotations: obj.GetAnnotations(),
		OwnerReferences: obj.GetOwnerReferences(), Finalizers: obj.GetFinalizers(), ManagedFields: obj.GetManagedFields(),
	}
	return out
}

// NameColumn is the first column of every table.
func NameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{
		Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
	}
}

// AgeColumn shows how long ago an object was created.
func AgeColumn(columnType string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{
		Name: "Age", Type: columnType, Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	}
}

// Age is the cell of a time: how long ago it is, such as "5m".
func Age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// Typed prints objects of a Go type.
type Typed[T Object] struct {
	// Definitions of the columns.
	Definitions []metav1.TableColumnDefinition
	// Row returns the cells of an object.
	Row func(obj T) []any
}

// Columns implements [Printer].
func (t *Typed[T]) Columns() []metav1.TableColumnDefinition { return t.Definitions }

// Cells implements [Printer].
func (t *Typed[T]) Cells(obj Object) ([]any, error) {
	typed, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("%T is not the type of this table", obj)
	}
	return t.Row(typed), nil
}

// Default returns the printer of resources that define no columns: name and age.
func Default() Printer {
	return &Typed[Object]{
		Definitions: []metav1.TableColumnDefinition{NameColumn(), AgeColumn("date")},
		Row: func(obj Object) []any {
			return []any{obj.GetName(), Age(obj.GetCreationTimestamp())}
		},
	}
}
