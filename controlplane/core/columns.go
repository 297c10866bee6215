// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
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

// none is shown where there is nothing.
const none = "<none>"

// columns makes column definitions from their names, "Name" and "Age" with their
// usual meaning. A name may carry a type after a colon (the default is string),
// and ends in an asterisk if it belongs to wide output. Descriptions are added
// from [columnDocs].
func columns(names ...string) []metav1.TableColumnDefinition {
	out := make([]metav1.TableColumnDefinition, 0, len(names))
	for _, name := range names {
		name, wide := strings.CutSuffix(name, "*")
		name, columnType, typed := strings.Cut(name, ":")
		switch {
		case name == "Name" && !wide:
			out = append(out, table.NameColumn())
			continue
		case name == "Age" && !typed:
			out = append(out, table.AgeColumn("string"))
			continue
		}
		c := metav1.TableColumnDefinition{Name: name, Type: "string"}
		if typed {
			c.Type = columnType
		}
		if wide {
			c.Priority = 1
		}
		if name == "Name" {
			c.Format = "name"
		}
		out = append(out, c)
	}
	return out
}

func age(obj metav1.Object) string { return table.Age(obj.GetCreationTimestamp()) }

// orNone shows a text, or that there is none.
func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// labelText shows labels as in "a=b,c=d".
func labelText(l map[string]string) string { return orNone(labels.FormatLabels(l)) }

// selectorText shows a selector in its text form.
func selectorText(s *metav1.LabelSelector) string { return metav1.FormatLabelSelector(s) }

// containerText lists the names and images of containers.
func containerText(containers []corev1.Container) (names, images string) {
	var n, i []string
	for _, c := range containers {
		n, i = append(n, c.Name), append(i, c.Image)
	}
	return strings.Join(n, ","), strings.Join(i, ",")
}

// keysText lists the keys of a map in order.
func keysText[K ~string, V any](m map[K]V) []string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, string(k))
	}
	return out
}

// value returns what a pointer points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// fill points a nil pointer at a value.
func fill[T any](p **T, v T) {
	if *p == nil {
		*p = &v
	}
}

// orDefault replaces a zero value.
func orDefault[T comparable](p *T, v T) {
	var zero T
	if *p == zero {
		*p = v
	}
}
