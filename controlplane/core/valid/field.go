// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Field is a field of an object, and collects its errors. Without errors it allocates
// nothing: paths are made for errors alone.
//
// Methods with a name are about the child of that name, with [Self] about the field
// itself. A Field is used by one goroutine, and not after the one that
// it is in.
type Field struct {
	in    *Field
	name  string
	index int // of an element, if form is element
	form  form
	errs  *field.ErrorList
}

// Self is the name that stands for the field itself in the methods of a [Field].
const Self = ""

// form of a step of a path.
type form uint8

const (
	root form = iota
	child
	element
	entry // of a map
)

// Root is an object whose errors are added to errs.
func Root(errs *field.ErrorList) Field { return Field{errs: errs} }

// At is the field of a path.
func At(path *field.Path, errs *field.ErrorList) Field {
	return Field{form: child, name: path.String(), errs: errs}
}

// Child is the field of that name.
func (f *Field) Child(name string) Field {
	return Field{in: f, form: child, name: name, errs: f.errs}
}

// Index is an element of a list.
func (f *Field) Index(i int) Field { return Field{in: f, form: element, index: i, errs: f.errs} }

// Key is a value of a map.
func (f *Field) Key(key string) Field { return Field{in: f, form: entry, name: key, errs: f.errs} }

// Path of the field.
func (f *Field) Path() *field.Path {
	var above *field.Path
	if f.in != nil {
		above = f.in.Path()
	}
	// A copy of the name keeps it visible that nothing of f lives on.
	switch f.form {
	case child:
		if above == nil {
			return field.NewPath(strings.Clone(f.name))
		}
		return above.Child(strings.Clone(f.name))
	case element:
		return above.Index(f.index)
	case entry:
		return above.Key(strings.Clone(f.name))
	default:
		return above
	}
}

// PathOf is the path of a child, for rules that are written with paths.
func (f *Field) PathOf(name string) *field.Path { return f.path(name) }

func (f *Field) path(name string) *field.Path {
	switch path := f.Path(); {
	case name == Self:
		return path
	case path == nil:
		return field.NewPath(name)
	default:
		return path.Child(name)
	}
}

// Len is how many errors there are so far, of the whole object.
func (f *Field) Len() int { return len(*f.errs) }

// Add collects errors that were found elsewhere.
func (f *Field) Add(errs ...*field.Error) { *f.errs = append(*f.errs, errs...) }

// Required adds the error of a missing value.
func (f *Field) Required(name, detail string) { f.Add(field.Required(f.path(name), detail)) }

// Invalid adds the error of an invalid value.
func (f *Field) Invalid(name string, value any, detail string) {
	f.Add(field.Invalid(f.path(name), value, detail))
}

// Forbidden adds the error of a value that must not be set.
func (f *Field) Forbidden(name, detail string) { f.Add(field.Forbidden(f.path(name), detail)) }

// Duplicate adds the error of a value that is there twice.
func (f *Field) Duplicate(name string, value any) { f.Add(field.Duplicate(f.path(name), value)) }

// NotFound adds the error of a value that names what does not exist.
func (f *Field) NotFound(name string, value any) { f.Add(field.NotFound(f.path(name), value)) }

// TooMany adds the error of a list with too many elements.
func (f *Field) TooMany(name string, have, most int) { f.Add(field.TooMany(f.path(name), have, most)) }

// TooLong adds the error of a text that is too long.
func (f *Field) TooLong(name string, most int) { f.Add(field.TooLong(f.path(name), "", most)) }

// Problems adds an error for each problem that a rule has found.
func (f *Field) Problems(name string, value any, problems []string) {
	for _, problem := range problems {
		f.Invalid(name, value, problem)
	}
}

// NonEmpty requires a text, and reports whether there is one.
func (f *Field) NonEmpty(name, value string) bool {
	if value == "" {
		f.Required(name, "")
		return false
	}
	return true
}

// NotNegative checks a number.
func (f *Field) NotNegative(name string, n int64) {
	if n < 0 {
		f.Add(field.Invalid(f.path(name), n, notNegative).WithOrigin("minimum"))
	}
}

// Positive checks a number.
func (f *Field) Positive(name string, n int64) {
	if n <= 0 {
		f.Add(field.Invalid(f.path(name), n, "must be greater than zero").WithOrigin("minimum"))
	}
}

// NotSupported adds the error of a value that is none of the supported ones.
func NotSupported[S ~string](f *Field, name string, value S, values ...S) {
	f.Add(field.NotSupported(f.path(name), S(strings.Clone(string(value))), slices.Clone(values)))
}

// Supported checks that a value is one of the supported ones.
func Supported[S ~string](f *Field, name string, value S, values ...S) bool {
	if slices.Contains(values, value) {
		return true
	}
	NotSupported(f, name, value, values...)
	return false
}

// RequiredOf does the same for a value that has to be there.
func RequiredOf[S ~string](f *Field, name string, value S, values ...S) bool {
	if value == "" {
		f.Required(name, "")
		return false
	}
	return Supported(f, name, value, values...)
}

// Last is the newest error.
func (f *Field) Last() *field.Error { return (*f.errs)[len(*f.errs)-1] }
