// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package table converts objects to the tables that kubectl shows: column definitions,
// and a row of cells per object.
//
// It has the printers of resources: [Custom] for the columns of a custom resource,
// given as JSON paths, [Typed] for a Go type, and [Default] with name and age.
//
// Cells with an age depend on the time, so rows must not be cached.
package table

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/steer-dev/steer/apiserver/resource"
)

// NameColumn is the first column of every table.
func NameColumn() metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{
		Name: "Name", Type: "string", Format: "name", Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
	}
}

// AgeColumn is the column with the time since an object was created.
func AgeColumn(columnType string) metav1.TableColumnDefinition {
	return metav1.TableColumnDefinition{
		Name: "Age", Type: columnType, Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
	}
}

// Age formats the time since t, such as "5m".
func Age(t metav1.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t.Time))
}

// Typed prints objects of a Go type.
type Typed[T resource.Object] struct {
	// Definitions of the columns.
	Definitions []metav1.TableColumnDefinition
	// Row returns the cells of an object.
	Row func(obj T) []any
}

// Columns implements [resource.Printer].
func (t *Typed[T]) Columns() []metav1.TableColumnDefinition { return t.Definitions }

// Cells implements [resource.Printer].
func (t *Typed[T]) Cells(obj resource.Object) ([]any, error) {
	typed, ok := obj.(T)
	if !ok {
		return nil, fmt.Errorf("%T is not the type of this table", obj)
	}
	return t.Row(typed), nil
}

// Default returns the printer of resources that define no columns: name and age.
func Default() resource.Printer {
	return &Typed[resource.Object]{
		Definitions: []metav1.TableColumnDefinition{NameColumn(), AgeColumn("date")},
		Row: func(obj resource.Object) []any {
			return []any{obj.GetName(), Age(obj.GetCreationTimestamp())}
		},
	}
}
