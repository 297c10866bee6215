// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"go/ast"
	"go/token"
	"go/types"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/schema"
)

// builder makes the schema of each type on first use.
type builder struct {
	program *load.Program
	options *Options
	strict  bool
	rules   ruleSet
	schemas map[schema.Ref]*schema.Schema
}

// schemaOf returns the schema of a type. While a type is being built, references
// to it find an empty schema, which is filled in later.
func (b *builder) schemaOf(ref schema.Ref) *schema.Schema {
	if s := b.schemas[ref]; s != nil {
		return s
	}
	s := known(ref.Package.Path, ref.Name, b.options.EmbeddedMetadata)
	if s != nil && !(b.options.fullMetadata && ref.Name == "ObjectMeta") {
		b.schemas[ref] = s
		return s
	}
	s = &schema.Schema{}
	b.schemas[ref] = s
	decl := ref.Package.Decl(ref.Name)
	if decl == nil {
		b.program.Problemf(token.NoPos, "unknown type %s.%s", ref.Package.Path, ref.Name)
		return s
	}
	*s = *b.declaration(decl, nil)
	return s
}

// scope is what surrounds a type expression.
type scope struct {
	*builder
	pkg  *load.Package
	decl *load.TypeDecl      // nil below pointers, slices, maps and fields
	args map[string]argument // of the generic type that is being built
}

// argument is what a type parameter stands for: an expression and where it was
// written.
type argument struct {
	scope *scope
	expr  ast.Expr
}

// declaration makes the schema of a declared type. A type that marshals itself
// says by a Type marker what it looks like; one that marshals to text is a string.
func (b *builder) declaration(decl *load.TypeDecl, args map[string]argument) *schema.Schema {
	c := &scope{builder: b, pkg: decl.Package, decl: decl, args: args}
	set := b.program.TypeMarkers(decl)
	if obj := decl.Package.Types.Scope().Lookup(decl.Spec.Name.Name); obj != nil {
		switch {
		case implements(obj.Type(), "MarshalJSON"):
			s := &schema.Schema{Pos: decl.Spec.Pos()}
			if set.Has(validation + "Type") {
				c.apply(set, markers.Type, s)
				return s
			}
		case implements(obj.Type(), "MarshalText"):
			s := &schema.Schema{Type: "string", Pos: decl.Spec.Pos()}
			c.apply(set, markers.Type, s)
			if s.Type != "string" {
				b.program.Problemf(decl.Spec.Type.Pos(), "%q implements encoding.TextMarshaler but its schema type is not string: %q", decl.Spec.Name.Name, s.Type)
			}
			return s
		}
	}
	return c.expr(decl.Spec.Type)
}

// implements reports whether a type or a pointer to it has func NAME() ([]byte,
// error).
func implements(t types.Type, method string) bool {
	obj, _, _ := types.LookupFieldOrMethod(t, true, nil, method)
	fn, ok := obj.(*types.Func)
	if !ok {
		return false
	}
	signature := fn.Signature()
	results := signature.Results()
	return signature.Params().Len() == 0 && results.Len() == 2 &&
		types.Identical(results.At(0).Type(), types.NewSlice(types.Typ[types.Uint8])) &&
		types.Identical(results.At(1).Type(), types.Universe.Lookup("error").Type())
}

// expr makes the schema of a type expression. The documentation and markers of
// the declaration in scope belong to it.
func (c *scope) expr(expr ast.Expr) *schema.Schema {
	var s *schema.Schema
	switch x := expr.(type) {
	case *ast.Ident:
		s = c.ident(x)
	case *ast.SelectorExpr:
		s = c.selector(x)
	case *ast.ArrayType:
		s = c.array(x)
	case *ast.MapType:
		s = c.mapping(x)
	case *ast.StarExpr:
		s = c.inner().expr(x.X)
	case *ast.StructType:
		s = c.structure(x)
	case *ast.IndexExpr:
		s = c.generic(x.X, x.Index)
	case *ast.IndexListExpr:
		s = c.generic(x.X, x.Indices...)
	case *ast.InterfaceType:
		return c.fail(expr, "interface types have no schema; use a named type or apiextensionsv1.JSON")
	default:
		return c.fail(expr, "unsupported type expression %s", types.ExprString(expr))
	}
	if s.Pos == token.NoPos {
		s.Pos = expr.Pos()
	}
	s.Description = ""
	if c.decl != nil {
		s.Description = c.doc(c.decl.Doc())
		c.apply(c.program.TypeMarkers(c.decl), markers.Type, s)
	}
	return s
}

// inner is the scope inside a type expression, where no declaration's markers hold.
func (c *scope) inner() *scope { return &scope{builder: c.builder, pkg: c.pkg, args: c.args} }

// doc is the documentation of a declaration, or none where that of other people's
// packages is left out.
func (c *scope) doc(group *ast.CommentGroup) string {
	if c.options.OmitForeignDescriptions && !c.pkg.Root {
		return ""
	}
	return markers.Doc(group)
}

// generic refers to a generic type with its arguments filled in: each instance has
// a schema of its own.
func (c *scope) generic(base ast.Expr, indices ...ast.Expr) *schema.Schema {
	var ident *ast.Ident
	switch x := base.(type) {
	case *ast.Ident:
		ident = x
	case *ast.SelectorExpr:
		ident = x.Sel
	default:
		return c.fail(base, "unsupported type expression %s", types.ExprString(base))
	}
	name, ok := c.pkg.Info.Uses[ident].(*types.TypeName)
	if !ok || name.Pkg() == nil {
		return c.fail(base, "unknown type %s", types.ExprString(base))
	}
	pkg := c.program.Of(name.Pkg(), c.pkg)
	if pkg == nil || pkg.Decl(name.Name()) == nil {
		return c.fail(base, "unknown type %s", types.ExprString(base))
	}
	decl := pkg.Decl(name.Name())
	args := map[string]argument{}
	instance := name.Name() + "["
	var params []*ast.Ident
	for _, field := range decl.Spec.TypeParams.List {
		params = append(params, field.Names...)
	}
	for i, index := range indices {
		if i < len(params) {
			args[params[i].Name] = argument{c.inner(), index}
		}
		instance += c.written(index) + ";"
	}
	ref := schema.Ref{Package: pkg, Name: instance + "]"}
	s := &schema.Schema{Ref: &ref, Pos: base.Pos()}
	switch name.Type().Underlying().(type) {
	case *types.Slice:
		s.Type = "array"
	case *types.Map:
		s.Type = "object"
	}
	if c.schemas[ref] == nil {
		built := &schema.Schema{}
		c.schemas[ref] = built
		*built = *c.declaration(decl, args)
	}
	return s
}

// typeOf is the type of an expression, with type parameters replaced.
func (c *scope) typeOf(expr ast.Expr) types.Type {
	if ident, ok := expr.(*ast.Ident); ok {
		if arg, ok := c.args[ident.Name]; ok {
			return arg.scope.typeOf(arg.expr)
		}
	}
	return c.pkg.Info.TypeOf(expr)
}

// written is a type expression with its package and its type arguments resolved,
// to tell instances of a generic type apart.
func (c *scope) written(expr ast.Expr) string {
	if ident, ok := expr.(*ast.Ident); ok {
		if arg, ok := c.args[ident.Name]; ok {
			return arg.scope.written(arg.expr)
		}
	}
	if t := c.typeOf(expr); t != nil {
		return t.String()
	}
	return types.ExprString(expr)
}

func (c *scope) fail(at ast.Node, format string, args ...any) *schema.Schema {
	c.program.Problemf(at.Pos(), format, args...)
	return &schema.Schema{Pos: at.Pos()}
}

// ident is a basic type or a named type of this package, or one that a dot import
// brings.
func (c *scope) ident(ident *ast.Ident) *schema.Schema {
	if arg, ok := c.args[ident.Name]; ok {
		return arg.scope.expr(arg.expr)
	}
	t := c.pkg.Info.TypeOf(ident)
	if t == nil || t == types.Typ[types.Invalid] {
		return c.fail(ident, "unknown type %s", ident.Name)
	}
	if alias, ok := t.(*types.Alias); ok && ident.Name != "any" {
		t = alias.Rhs()
	}
	switch t := t.(type) {
	case *types.Basic:
		s := c.basic(ident, t)
		if t.Name() != ident.Name { // an alias of a basic type
			s.Ref = &schema.Ref{Package: c.pkg, Name: ident.Name}
			c.schemaOf(*s.Ref)
		}
		return s
	case *types.Interface:
		return c.fail(ident, "%s is an interface, which has no schema; use a named type or apiextensionsv1.JSON", ident.Name)
	case interface{ Obj() *types.TypeName }:
		name := t.Obj()
		if name.Pkg() == nil {
			return c.fail(ident, "%s is an interface, which has no schema; use a named type or apiextensionsv1.JSON", ident.Name)
		}
		if types.IsInterface(name.Type()) {
			return c.fail(ident, "%s is an interface, which has no schema; use a named type or apiextensionsv1.JSON", ident.Name)
		}
		s, ref := c.reference(name)
		if _, basic := types.Unalias(name.Type()).Underlying().(*types.Basic); basic && ref != nil {
			of := c.schemaOf(*ref)
			s.Type, s.Format = of.Type, of.Format
		}
		return s
	}
	return c.fail(ident, "%s stands for %s, which is not supported here: declare a named type", ident.Name, t)
}

// selector is a named type of another package.
func (c *scope) selector(sel *ast.SelectorExpr) *schema.Schema {
	t := c.pkg.Info.TypeOf(sel)
	if t == nil || t == types.Typ[types.Invalid] {
		return c.fail(sel, "unknown type %s", types.ExprString(sel))
	}
	named, ok := t.(interface{ Obj() *types.TypeName })
	if !ok || types.IsInterface(t) {
		return c.fail(sel, "%s is an interface, which has no schema; use a named type or apiextensionsv1.JSON", types.ExprString(sel))
	}
	s, _ := c.reference(named.Obj())
	return s
}

// reference is a schema that refers to a named type. Lists and maps say so, so
// that markers at the place of use can tell.
func (c *scope) reference(name *types.TypeName) (*schema.Schema, *schema.Ref) {
	pkg := c.program.Of(name.Pkg(), c.pkg)
	if pkg == nil {
		c.program.Problemf(token.NoPos, "package %s of type %s was not loaded", name.Pkg().Path(), name.Name())
		return &schema.Schema{}, nil
	}
	ref := &schema.Ref{Package: pkg, Name: name.Name()}
	s := &schema.Schema{Ref: ref}
	switch types.Unalias(name.Type()).Underlying().(type) {
	case *types.Slice:
		s.Type = "array"
	case *types.Map:
		s.Type = "object"
	}
	c.schemaOf(*ref)
	return s, ref
}

func (c *scope) basic(at ast.Node, t *types.Basic) *schema.Schema {
	s := &schema.Schema{Pos: at.Pos()}
	switch info := t.Info(); {
	case info&types.IsBoolean != 0:
		s.Type = "boolean"
	case info&types.IsString != 0:
		s.Type = "string"
	case info&types.IsInteger != 0:
		s.Type = "integer"
	case info&types.IsFloat != 0:
		if !c.options.AllowDangerousTypes {
			return c.fail(at, "floats differ between languages and should not be used in an API: serialise as a string, use resource.Quantity, or allow them with crd:allowDangerousTypes=true")
		}
		s.Type = "number"
	default:
		return c.fail(at, "unsupported type %q", t)
	}
	switch t.Kind() {
	case types.Int32, types.Uint32:
		s.Format = "int32"
	case types.Int64, types.Uint64:
		s.Format = "int64"
	}
	return s
}

func (c *scope) array(array *ast.ArrayType) *schema.Schema {
	if array.Len == nil && c.typeOf(array.Elt) == types.Universe.Lookup("byte").Type() {
		return &schema.Schema{Type: "string", Format: "byte"}
	}
	return &schema.Schema{Type: "array", Items: c.inner().expr(array.Elt)}
}

func (c *scope) mapping(m *ast.MapType) *schema.Schema {
	key := c.typeOf(m.Key)
	if key == nil {
		return c.fail(m.Key, "unknown type %s", types.ExprString(m.Key))
	}
	if basic, ok := key.Underlying().(*types.Basic); (!ok || basic.Info()&types.IsString == 0) && !implements(key, "MarshalText") {
		return c.fail(m.Key, "map keys must be strings or implement encoding.TextMarshaler, not %s", key)
	}
	switch m.Value.(type) {
	case *ast.InterfaceType:
		return c.fail(m.Value, "interface types have no schema; use a named type or apiextensionsv1.JSON")
	case *ast.StructType:
		return c.fail(m.Value, "inline struct types are not supported, use a named type instead")
	}
	return &schema.Schema{Type: "object", Additional: c.inner().expr(m.Value)}
}
