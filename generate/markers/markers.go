// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package markers reads markers: comments such as
//
//	// +kubebuilder:validation:Maximum=10
//	// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
//
// that steer the generators. It has three parts that know nothing of Kubernetes:
//
//   - a [Definition] says what a marker is called, what it may stand on and which
//     arguments it takes; it is made from a Go type by [Define];
//   - the grammar turns the text of one marker into a value of that Go type
//     ([Definition.Parse]);
//   - a [Collector] walks a file, decides which package, type or field each marker
//     belongs to and hands out the parsed values in source order.
//
// The grammar and the placement rules are those of the kubebuilder ecosystem, to
// the letter, so that existing sources keep their meaning.
package markers

import (
	"go/token"
	"slices"
)

// Target is what a marker describes.
type Target uint8

// The places a marker can describe. A name may be defined once for each.
const (
	Package Target = iota
	Type
	Field
)

func (t Target) String() string {
	switch t {
	case Package:
		return "package"
	case Type:
		return "type"
	case Field:
		return "field"
	}
	return "unknown"
}

// Value is one marker as found in the source.
type Value struct {
	Name string    // the definition's name
	Data any       // a value of the definition's Go type
	Pos  token.Pos // of the comment that holds it
}

// Set holds the markers of one node in source order.
type Set []Value

// Has reports whether a marker with the name is present.
func (s Set) Has(name string) bool {
	return slices.ContainsFunc(s, func(v Value) bool { return v.Name == name })
}

// All returns the data of the markers with the name that are of type T.
func All[T any](s Set, name string) []T {
	var found []T
	for _, v := range s {
		if data, ok := v.Data.(T); ok && v.Name == name {
			found = append(found, data)
		}
	}
	return found
}

// First returns the data of the first marker with the name.
func First[T any](s Set, name string) (data T, found bool) {
	for _, v := range s {
		if data, ok := v.Data.(T); ok && v.Name == name {
			return data, true
		}
	}
	return data, false
}
