// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protobuf

import (
	"cmp"
	"fmt"
	"go/types"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
)

// kind is the wire type of a value.
func (v value) kind() string {
	switch v.class {
	case boolean, integer:
		return "protowire.VarintType"
	case float:
		return "protowire.Fixed32Type"
	case double:
		return "protowire.Fixed64Type"
	}
	return "protowire.BytesType"
}

// decoded is a value that is no message: of a number x, or of bytes x.
func (w *writer) decoded(v value, x string) string {
	t := w.syntax(v.typ)
	switch v.class {
	case boolean:
		return fmt.Sprintf("%s(%s != 0)", t, x)
	case float:
		return fmt.Sprintf("%s(%s.Float32frombits(uint32(%s)))", t, w.imports.use("math"), x)
	case double:
		return fmt.Sprintf("%s(%s.Float64frombits(%s))", t, w.imports.use("math"), x)
	case octets:
		return fmt.Sprintf("append(%s{}, %s...)", t, x)
	}
	return fmt.Sprintf("%s(%s)", t, x)
}

// received is the part of a received field that has a value.
func (v value) received(f string) string {
	if v.kind() == "protowire.BytesType" {
		return f + ".bytes"
	}
	return f + ".value"
}

// when runs body for a received field that is encoded as it should be.
func (w *writer) when(f string, v value, body func()) {
	w.block(fmt.Sprintf("if err = %s.is(%s); err == nil", f, v.kind()), body)
}

func (w *writer) read(f *field) {
	x := "m." + f.goName
	switch {
	case f.label == dict:
		w.readEntry(f, x)
	case f.label == list && f.value.kind() != "protowire.BytesType":
		w.line("var values []uint64")
		w.block(fmt.Sprintf("if values, err = f.values(%s); err == nil", f.value.kind()), func() {
			w.block("for _, v := range values", func() { w.line("%s = append(%s, %s)", x, x, w.decoded(f.value, "v")) })
		})
	default:
		w.when("f", f.value, func() { w.readValue(f, x) })
	}
}

// readValue reads a value of a field that is no map.
func (w *writer) readValue(f *field, x string) {
	message := f.value.class == nested
	switch {
	case f.label == list && message:
		w.line("%s = append(%s, %s{})", x, x, w.syntax(f.value.typ))
		w.line("err = %s[len(%s)-1].Unmarshal(f.bytes)", x, x)
	case f.label == list:
		w.line("%s = append(%s, %s)", x, x, w.decoded(f.value, f.value.received("f")))
	case f.label == pointer && message:
		w.line("if %s == nil { %s = new(%s) }", x, x, w.syntax(f.value.typ))
		w.line("err = %s.Unmarshal(f.bytes)", x)
	case f.label == pointer:
		w.line("v := %s", w.decoded(f.value, f.value.received("f")))
		w.line("%s = &v", x)
	case message:
		w.line("err = %s.Unmarshal(f.bytes)", x)
	default:
		w.line("%s = %s", x, w.decoded(f.value, f.value.received("f")))
	}
}

// readEntry reads an entry of a map.
func (w *writer) readEntry(f *field, x string) {
	w.line("var key %s", w.syntax(f.key.typ))
	w.line("var value %s", w.syntax(f.value.typ))
	if f.value.class == octets {
		w.line("value = %s{}", w.syntax(f.value.typ))
	}
	w.line("err = f.is(protowire.BytesType)")
	w.block("for entry := f.bytes; len(entry) > 0 && err == nil;", func() {
		w.line("var e protobufField")
		w.line("e, entry, err = nextProtobufField(entry)")
		w.block("switch e.number", func() {
			w.line("case 1:")
			w.when("e", f.key, func() { w.line("key = %s", w.decoded(f.key, f.key.received("e"))) })
			w.line("case 2:")
			w.when("e", f.value, func() {
				if f.value.class == nested {
					w.line("err = value.Unmarshal(e.bytes)")
					return
				}
				w.line("value = %s", w.decoded(f.value, f.value.received("e")))
			})
		})
	})
	w.block("if err == nil", func() {
		w.line("if %s == nil { %s = %s{} }", x, x, w.syntax(f.typ))
		w.line("%s[key] = value", x)
	})
}

// syntax is how a type is written in the package.
func (w *writer) syntax(t types.Type) string {
	return types.TypeString(t, func(pkg *types.Package) string {
		if pkg == w.pkg.Types {
			return ""
		}
		return w.imports.use(pkg.Path())
	})
}

// imports gives each imported package a name that no other has.
type imports struct {
	pkg    *load.Package
	byPath map[string]string
}

func newImports(pkg *load.Package) *imports { return &imports{pkg, map[string]string{}} }

// use returns the name under which a package is imported: the end of its path, with as many
// elements before it as it takes, two for a version.
func (i *imports) use(imported string) string {
	if name, known := i.byPath[imported]; known {
		return name
	}
	rest, name := path.Split(imported)
	name = identifier(name)
	for taken := i.taken(name); taken || isVersion(name); taken = i.taken(name) {
		var element string
		if rest, element = path.Split(strings.TrimSuffix(rest, "/")); element == "" {
			element = "x"
		}
		name = identifier(element) + name
	}
	i.byPath[imported] = name
	return name
}

func (i *imports) taken(name string) bool {
	return name == i.pkg.Name || slices.Contains(slices.Collect(maps.Values(i.byPath)), name)
}

func isVersion(name string) bool {
	return len(name) > 1 && name[0] == 'v' && name[1] >= '0' && name[1] <= '9'
}

// specs returns the import specifications, those of the standard library first.
func (i *imports) specs() string {
	var standard, others strings.Builder
	paths := slices.SortedFunc(maps.Keys(i.byPath), cmp.Compare[string])
	for _, imported := range paths {
		out := &others
		if first, _, _ := strings.Cut(imported, "/"); !strings.Contains(first, ".") {
			out = &standard
		}
		if name := i.byPath[imported]; name != path.Base(imported) {
			fmt.Fprintf(out, "\t%s %q\n", name, imported)
		} else {
			fmt.Fprintf(out, "\t%q\n", imported)
		}
	}
	return standard.String() + "\n" + others.String()
}
