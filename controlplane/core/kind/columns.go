// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/steer-dev/steer/apiserver/table"
)

var knownColumns = sync.OnceValue(columnDocs)

// None is shown where there is nothing.
const None = "<none>"

// Columns makes column definitions from their names, "Name" and "Age" with their
// usual meaning unless they carry a type. A name may carry a type after a colon (the
// default is string), and ends in an asterisk if it belongs to wide output. Descriptions
// are added from [columnDocs].
func Columns(names ...string) []metav1.TableColumnDefinition {
	out := make([]metav1.TableColumnDefinition, 0, len(names))
	for _, name := range names {
		name, wide := strings.CutSuffix(name, "*")
		name, columnType, typed := strings.Cut(name, ":")
		switch {
		case name == "Name" && !wide && !typed:
			out = append(out, table.NameColumn())
			continue
		case name == "Age" && !typed:
			out = append(out, table.AgeColumn("string"))
			continue
		}
		c := metav1.TableColumnDefinition{Name: name, Type: "string"}
		switch {
		case columnType == "name": // of another object
			c.Format = columnType
		case typed:
			c.Type = columnType
		}
		if wide {
			c.Priority = 1
		}
		if name == "Name" && !typed {
			c.Format = "name"
		}
		out = append(out, c)
	}
	return out
}

// Age of an object, as kubectl shows it.
func Age(obj metav1.Object) string { return table.Age(obj.GetCreationTimestamp()) }

// OrNone shows a text, or that there is none.
func OrNone(s string) string {
	if s == "" {
		return None
	}
	return s
}

// LabelText shows labels as in "a=b,c=d".
func LabelText(l map[string]string) string { return OrNone(labels.FormatLabels(l)) }

// SelectorText shows a selector in its text form.
func SelectorText(s *metav1.LabelSelector) string { return metav1.FormatLabelSelector(s) }

// ContainerText lists the names and images of containers.
func ContainerText(containers []corev1.Container) (names, images string) {
	var n, i []string
	for _, c := range containers {
		n, i = append(n, c.Name), append(i, c.Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// SortedKeys lists the keys of a map in order.
func SortedKeys[K ~string, V any](m map[K]V) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, string(k))
	}
	return out
}

// Value returns what a pointer points to, or the zero value.
func Value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// Fill points a nil pointer at a value.
func Fill[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// OrDefault replaces a zero value.
func OrDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}

// Count is how many there are, as a cell.
func Count[T any](list []T) int64 { return int64(len(list)) }

// Fraction shows how many of a number are there.
func Fraction(have, want int32) string { return fmt.Sprintf("%d/%d", have, want) }

// CreatedRow is the row of kinds that show nothing but when they were created.
func CreatedRow(obj metav1.Object) []any {
	return []any{obj.GetName(), obj.GetCreationTimestamp().UTC().Format("2006-01-02T15:04:05Z")}
}

// maxShown is how many of many addresses a cell shows.
const maxShown = 3

// Some shows the first few of a list.
func Some(list []string) string {
	if len(list) == 0 {
		return None
	}
	if len(list) > maxShown {
		return strings.Join(list[:maxShown], ",") + fmt.Sprintf(" + %d more...", len(list)-maxShown)
	}
	return strings.Join(list, ",")
}
