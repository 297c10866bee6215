// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package markers

import (
	"fmt"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Raw is the Go type of a marker that takes everything after the first '=' as it
// stands.
type Raw string

// Custom is implemented by pointers to Go types that read their own argument
// text instead of following the grammar. The name is the marker's, with the last
// segment included.
type Custom interface {
	ParseMarker(name, text string) error
}

// Help is what `-w` prints about a marker.
type Help struct {
	Category   string // the generator or theme it is listed under
	Summary    string // one sentence
	Deprecated string // the marker to use instead; empty if it is current
}

// Kind is the shape of one argument.
type Kind uint8

// The shapes of arguments. Any is guessed from the text.
const (
	Bool Kind = iota + 1
	Int
	Number
	String
	Any
	List
	Map
	raw
)

// Argument describes one argument of a marker.
type Argument struct {
	Name     string // empty for a marker with one nameless argument
	Kind     Kind
	Elem     *Argument // of lists and maps
	Optional bool
	Help     string

	field int // index into the struct; -1: the value itself
}

func (a *Argument) String() string {
	switch a.Kind {
	case Bool:
		return "bool"
	case Int:
		return "int"
	case Number:
		return "float64"
	case String:
		return "string"
	case Any:
		return "<any>"
	case List:
		return "[]" + a.Elem.String()
	case Map:
		return "map[string]" + a.Elem.String()
	}
	return "<raw>"
}

// Definition is one marker for one target. Definitions are immutable once made.
type Definition struct {
	Name   string
	Target Target
	Args   []Argument
	Help   Help

	output reflect.Type
	custom bool
}

// Anonymous reports whether the marker takes a single argument without a name.
func (d *Definition) Anonymous() bool { return len(d.Args) == 1 && d.Args[0].Name == "" }

// Define makes a definition whose values are of type T. A struct type names its
// arguments by its exported fields: a `marker:"name,optional"` tag overrides the
// name (by default the field's, first letter lowered) and lifts the requirement;
// a pointer is optional by itself; a `help:"..."` tag documents it; a field tagged
// `marker:",anonymous"` is the single argument without a name. Any other type is
// the one argument itself. It panics on a type that no marker can have, which is a
// mistake in the program.
func Define[T any](name string, target Target, help Help) *Definition {
	output := reflect.TypeFor[T]()
	def := &Definition{Name: name, Target: target, Help: help, output: output}
	_, def.custom = reflect.New(output).Interface().(Custom)
	if output.Kind() != reflect.Struct {
		arg := argumentOf(output)
		arg.field = -1
		def.Args = []Argument{arg}
		return def
	}
	for i := range output.NumField() {
		field := output.Field(i)
		if !field.IsExported() {
			continue
		}
		tag := strings.Split(field.Tag.Get("marker"), ",")
		arg := argumentOf(field.Type)
		arg.Name, arg.field, arg.Help = lowerFirst(field.Name), i, field.Tag.Get("help")
		if tag[0] != "" {
			arg.Name = tag[0]
		}
		for _, option := range tag[1:] {
			switch option {
			case "optional":
				arg.Optional = true
			case "anonymous":
				arg.Name = ""
			}
		}
		def.Args = append(def.Args, arg)
	}
	return def
}

// Lenient returns a copy of a nameless-argument definition whose argument may be
// left out.
func (d *Definition) Lenient() *Definition {
	lenient := *d
	lenient.Args = append([]Argument(nil), d.Args...)
	for i := range lenient.Args {
		lenient.Args[i].Optional = true
	}
	return &lenient
}

// For returns a copy under another name and target.
func (d *Definition) For(name string, target Target) *Definition {
	moved := *d
	moved.Name, moved.Target = name, target
	return &moved
}

func argumentOf(t reflect.Type) Argument {
	if t == reflect.TypeFor[Raw]() {
		return Argument{Kind: raw}
	}
	switch t.Kind() {
	case reflect.Pointer:
		arg := argumentOf(t.Elem())
		arg.Optional = true
		return arg
	case reflect.Bool:
		return Argument{Kind: Bool}
	case reflect.Int, reflect.Int32:
		return Argument{Kind: Int}
	case reflect.Float64:
		return Argument{Kind: Number}
	case reflect.String:
		return Argument{Kind: String}
	case reflect.Interface:
		return Argument{Kind: Any}
	case reflect.Slice:
		elem := argumentOf(t.Elem())
		return Argument{Kind: List, Elem: &elem}
	case reflect.Map:
		elem := argumentOf(t.Elem())
		return Argument{Kind: Map, Elem: &elem}
	}
	panic(fmt.Sprintf("markers: no marker argument can be a %s", t))
}

func lowerFirst(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToLower(r)) + s[size:]
}
