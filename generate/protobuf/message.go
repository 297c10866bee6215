// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protobuf

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
)

// message is a struct that gets a protobuf form.
type message struct {
	name, doc     string
	fields        []*field // by number, once they have one
	reserved      []int
	reservedNames []string
}

// field is a field of a message.
type field struct {
	pos    token.Pos
	goName string
	name   string // in protobuf
	number int    // 0: none yet
	doc    string
	label  label
	typ    types.Type // of the Go field
	key    value      // of a dict
	value  value
}

// label is how often a value occurs in a field.
type label uint8

const (
	single  label = iota // always
	pointer              // unless nil
	list
	dict
)

// class is how a value is encoded.
type class uint8

const (
	boolean class = iota + 1
	integer       // a varint
	float         // 4 bytes
	double        // 8 bytes
	str           // a string
	octets        // a []byte
	nested        // a message
)

// value is a value of a field.
type value struct {
	class class
	// proto is the type in protobuf: a scalar, or the name of a message, in another package
	// with the package before it.
	proto string
	// file declares a message of another package.
	file string
	typ  types.Type
}

// form is the type of a field as far as it matters to those who have read it before.
func (f *field) form() string {
	form := wireForm(f.value.proto)
	switch f.label {
	case list:
		return "repeated " + form
	case dict:
		return "map<" + f.key.proto + ", " + form + ">"
	}
	return form
}

// travels reports whether a field is in the protobuf of its struct: TypeMeta is in the
// envelope, and what JSON does not have protobuf has only with a tag.
func travels(f *types.Var, in *types.Struct) bool {
	if !f.Exported() {
		return false
	}
	var tag reflect.StructTag
	for i := range in.NumFields() {
		if in.Field(i) == f {
			tag = reflect.StructTag(in.Tag(i))
		}
	}
	spec, tagged := tag.Lookup("protobuf")
	if named, ok := types.Unalias(f.Type()).(*types.Named); ok && !tagged && f.Embedded() && named.Obj().Name() == "TypeMeta" {
		return false
	}
	return spec != "-" && (tagged || tag.Get("json") != "-")
}

// message returns the message of a type, its fields not yet numbered.
func (b *builder) message(pkg *load.Package, name string) *message {
	decl := pkg.Decl(name)
	t := pkg.Info.TypeOf(decl.Spec.Name)
	fields := t.Underlying().(*types.Struct)
	m := &message{name: name, doc: markers.Doc(decl.Doc())}
	docs := docsOf(decl)
	for i := range fields.NumFields() {
		v := fields.Field(i)
		if !travels(v, fields) {
			continue
		}
		f := &field{pos: v.Pos(), goName: v.Name(), typ: v.Type()}
		if i < len(docs) {
			f.doc = docs[i]
		}
		tag := reflect.StructTag(fields.Tag(i))
		f.name = nameOf(v, tag)
		reason := b.shape(pkg, f)
		if reason == "" {
			reason = f.tagged(tag)
		}
		if reason != "" {
			b.program.Problemf(f.pos, "field %s.%s has no protobuf form: %s", name, f.goName, reason)
			continue
		}
		m.fields = append(m.fields, f)
	}
	return m
}

// docsOf returns the documentation of the fields of a struct, in their order.
func docsOf(decl *load.TypeDecl) (docs []string) {
	spec, ok := decl.Spec.Type.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range spec.Fields.List {
		for range max(1, len(f.Names)) {
			docs = append(docs, markers.Doc(f.Doc))
		}
	}
	return docs
}

// nameOf returns the name of a field in protobuf: that of its tag, else that of JSON, else
// that of Go.
func nameOf(v *types.Var, tag reflect.StructTag) string {
	for part := range strings.SplitSeq(tag.Get("protobuf"), ",") {
		if name, ok := strings.CutPrefix(part, "name="); ok && name != "" {
			return identifier(name)
		}
	}
	if name, _, _ := strings.Cut(tag.Get("json"), ","); name != "" && name != "-" {
		return identifier(name)
	}
	first, size := utf8.DecodeRuneInString(v.Name())
	return identifier(string(unicode.ToLower(first)) + v.Name()[size:])
}

// tagged takes the number of a field from its tag, and returns what is wrong about it.
func (f *field) tagged(tag reflect.StructTag) string {
	spec, ok := tag.Lookup("protobuf")
	if !ok {
		return ""
	}
	parts := strings.Split(spec, ",")
	if len(parts) < 2 {
		return fmt.Sprintf("its tag protobuf:%q has no number, write protobuf:\"%s,NUMBER,opt,name=%s\", or leave it out", spec, f.encoding(), f.name)
	}
	number, err := strconv.Atoi(parts[1])
	switch {
	case err != nil || !valid(number):
		return fmt.Sprintf("%q is not the number of a field: those are 1 to 18999 and 20000 to 536870911", parts[1])
	case parts[0] != f.encoding() && parts[0] != "bytes" && parts[0] != "varint": // Kubernetes confuses these two
		return fmt.Sprintf("its tag says %q, its type is encoded as %q", parts[0], f.encoding())
	}
	f.number = number
	return ""
}

// encoding is the encoding of a field as tags name it.
func (f *field) encoding() string {
	if f.label == dict {
		return "bytes"
	}
	switch f.value.class {
	case boolean, integer:
		return "varint"
	case float:
		return "fixed32"
	case double:
		return "fixed64"
	}
	return "bytes"
}

// shape sets the label and the type of a field, and returns what is wrong about them.
func (b *builder) shape(pkg *load.Package, f *field) (reason string) {
	t := types.Unalias(f.typ)
	if p, ok := t.(*types.Pointer); ok {
		f.label = pointer
		if f.value, reason = b.value(pkg, p.Elem()); f.value.class == octets {
			return "a pointer to a list: use the list"
		}
		return reason
	}
	switch under := t.Underlying().(type) {
	case *types.Slice:
		if isByte(under.Elem()) {
			break
		}
		f.label = list
		f.value, reason = b.value(pkg, under.Elem())
		return reason
	case *types.Map:
		f.label = dict
		if f.key, reason = b.value(pkg, under.Key()); reason == "" && f.key.class != str && f.key.class != integer {
			reason = fmt.Sprintf("a map with keys of type %s: use strings", under.Key())
		}
		if reason == "" {
			f.value, reason = b.value(pkg, under.Elem())
		}
		return reason
	}
	f.value, reason = b.value(pkg, t)
	return reason
}

func isByte(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Kind() == types.Uint8
}

// value returns how a value of a type is encoded, and what is wrong about it.
func (b *builder) value(pkg *load.Package, t types.Type) (v value, reason string) {
	t = types.Unalias(t)
	v.typ = t
	switch under := t.Underlying().(type) {
	case *types.Basic:
		return v, v.basic(under)
	case *types.Slice:
		if isByte(under.Elem()) {
			v.class, v.proto = octets, "bytes"
			return v, ""
		}
		return v, "a list within a list or a map: use a struct that has the inner list as a field"
	case *types.Struct:
		named, ok := t.(*types.Named)
		switch {
		case !ok:
			return v, "a struct without a name: declare a type"
		case named.TypeArgs().Len() > 0:
			return v, fmt.Sprintf("%s is generic: declare a type without parameters", t)
		}
		return v, b.nested(pkg, &v, named)
	case *types.Map:
		return v, "a map within a list or a map: use a struct that has the inner map as a field"
	case *types.Pointer:
		return v, "a pointer within a pointer, a list or a map: use the value"
	case *types.Interface:
		return v, fmt.Sprintf("the type %s: use runtime.RawExtension", t)
	}
	return v, fmt.Sprintf("the type %s", t)
}

// basic sets the encoding of a basic type.
func (v *value) basic(t *types.Basic) (reason string) {
	switch t.Kind() {
	case types.Bool:
		v.class, v.proto = boolean, "bool"
	case types.Int32:
		v.class, v.proto = integer, "int32"
	case types.Int, types.Int64:
		v.class, v.proto = integer, "int64"
	case types.Uint32:
		v.class, v.proto = integer, "uint32"
	case types.Uint, types.Uint64:
		v.class, v.proto = integer, "uint64"
	case types.Float32:
		v.class, v.proto = float, "float"
	case types.Float64:
		v.class, v.proto = double, "double"
	case types.String:
		v.class, v.proto = str, "string"
	case types.Invalid:
		return "unknown type"
	case types.Int8, types.Int16, types.Uint8, types.Uint16:
		return fmt.Sprintf("the type %s: use int32", t)
	default:
		return fmt.Sprintf("the type %s", t)
	}
	return ""
}

// nested sets the encoding of a struct with a name.
func (b *builder) nested(pkg *load.Package, v *value, t *types.Named) (reason string) {
	v.class = nested
	name := t.Obj().Name()
	in := b.program.Of(t.Obj().Pkg(), pkg)
	if in == pkg {
		if v.proto = name; contains(b.closure(pkg), name) {
			return ""
		}
		return fmt.Sprintf("%s is marked +protobuf=false", name)
	}
	if in == nil {
		return "unknown type"
	}
	v.file = in.Path + "/" + protoFile
	if in.Root && contains(b.closure(in), name) {
		v.proto = safe(in.Path) + "." + name
		return ""
	}
	declared, err := b.proto(in)
	if err != nil {
		return err.Error()
	}
	if _, ok := declared.messages[name]; ok {
		v.proto = declared.pkg + "." + name
		return ""
	}
	switch {
	case in.Root:
		return fmt.Sprintf("%s.%s has none: mark its package with +k8s:protobuf-gen=package", in.Path, name)
	case in.Path == "time":
		return "time.Time has none: use metav1.Time or metav1.MicroTime"
	}
	return fmt.Sprintf("%s.%s has none: that package has no %s with it", in.Path, name, protoFile)
}
