// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package advice

import (
	"go/ast"
	"go/token"
	"go/types"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

func text(e ast.Expr) string { return types.ExprString(e) }

// defaults reads "if the field is not set, set it to a constant".
func (m *method) defaults(s *ast.IfStmt) bool {
	cond, ok := s.Cond.(*ast.BinaryExpr)
	if !ok || cond.Op != token.EQL || len(s.Body.List) != 1 {
		return false
	}
	set, ok := s.Body.List[0].(*ast.AssignStmt)
	if !ok || set.Tok != token.ASSIGN || len(set.Lhs) != 1 {
		return false
	}
	field, ok := m.access(set.Lhs[0])
	value := constant(set.Rhs[0])
	if !ok || value == "" || text(cond.X) != text(set.Lhs[0]) {
		return false
	}
	if !slices.Contains([]string{`""`, "0", "nil", "false"}, text(cond.Y)) {
		return false
	}
	m.add(s, "a marker could do it, +kubebuilder:default=%s on %s.%s", value, field.owner, field.name)
	return true
}

// sets reads "set the field to a constant".
func (m *method) sets(s *ast.AssignStmt) bool {
	if s.Tok != token.ASSIGN || len(s.Lhs) != 1 || constant(s.Rhs[0]) == "" {
		return false
	}
	if _, ok := m.access(s.Lhs[0]); !ok {
		return false
	}
	m.add(s, "a MutatingAdmissionPolicy could do it; a marker cannot replace what is set")
	return true
}

// constant is a literal, or a pointer to one, as a marker has it.
func constant(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind == token.CHAR || e.Kind == token.IMAG {
			return ""
		}
		if value, err := strconv.Unquote(e.Value); e.Kind == token.STRING && err == nil {
			return strconv.Quote(value)
		}
		return e.Value
	case *ast.Ident:
		if e.Name == "true" || e.Name == "false" {
			return e.Name
		}
	case *ast.CallExpr: // ptr.To(3), ptr.To[int32](3), new(3)
		fun := e.Fun
		if index, ok := fun.(*ast.IndexExpr); ok {
			fun = index.X
		}
		if name := text(fun); len(e.Args) == 1 && (strings.HasSuffix(name, ".To") || name == "new" || name == "int32" || name == "int64") {
			return constant(e.Args[0])
		}
	}
	return ""
}

// denies reads "if a condition of fields holds, deny".
func (m *method) denies(s *ast.IfStmt) bool {
	message, ok := m.denial(s.Body.List)
	if !ok {
		return false
	}
	rule, ok := m.negated(s.Cond)
	if !ok {
		return false
	}
	if message != "" {
		message = ",message=" + strconv.Quote(message)
	}
	marker := "+kubebuilder:validation:XValidation:rule=" + strconv.Quote(rule) + message + " on " + m.kind.name
	switch {
	case m.fn.Name.Name == "ValidateDelete":
		m.add(s, "a ValidatingAdmissionPolicy could do it, with the expression %s; rules of a CRD do not see deletions", rule)
	case m.fn.Name.Name == "ValidateUpdate" && !strings.Contains(rule, "oldSelf"):
		m.add(s, "a marker could do it, for creations too: %s", marker)
	case m.fn.Name.Name == "ValidateCreate":
		m.add(s, "a marker could do it, for updates too: %s", marker)
	default:
		m.add(s, "a marker could do it: %s", marker)
	}
	return true
}

// denial is the message of a body that returns or collects an error and does nothing else.
func (m *method) denial(body []ast.Stmt) (message string, ok bool) {
	if len(body) != 1 {
		return "", false
	}
	var err ast.Expr
	switch s := body[0].(type) {
	case *ast.ReturnStmt:
		if len(s.Results) > 0 {
			err = s.Results[len(s.Results)-1]
		}
	case *ast.AssignStmt:
		if len(s.Lhs) == 1 && slices.Contains(m.errs, text(s.Lhs[0])) {
			err = s.Rhs[0]
		}
	}
	if _, ok := err.(*ast.CallExpr); !ok {
		return "", false
	}
	ast.Inspect(err, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if value, err := strconv.Unquote(lit.Value); err == nil && !strings.Contains(value, "%") {
				message = value // the last one: errors of fields begin with their path
			}
		}
		return true
	})
	return message, true
}

// opposite is the comparison that holds where another does not; ILLEGAL for what is none.
func opposite(op token.Token) token.Token {
	switch op {
	case token.EQL:
		return token.NEQ
	case token.NEQ:
		return token.EQL
	case token.LSS:
		return token.GEQ
	case token.GEQ:
		return token.LSS
	case token.GTR:
		return token.LEQ
	case token.LEQ:
		return token.GTR
	}
	return token.ILLEGAL
}

// negated is the CEL expression that holds where a condition does not.
func (m *method) negated(cond ast.Expr) (string, bool) {
	if b, ok := cond.(*ast.BinaryExpr); ok && opposite(b.Op) != token.ILLEGAL {
		return m.condition(&ast.BinaryExpr{X: b.X, Op: opposite(b.Op), Y: b.Y})
	}
	if u, ok := cond.(*ast.UnaryExpr); ok && u.Op == token.NOT {
		return m.condition(u.X)
	}
	rule, ok := m.condition(cond)
	return "!(" + rule + ")", ok
}

// condition is a condition in CEL.
func (m *method) condition(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		inner, ok := m.condition(e.X)
		return "(" + inner + ")", ok
	case *ast.UnaryExpr:
		inner, ok := m.condition(e.X)
		return "!(" + inner + ")", ok && e.Op == token.NOT
	case *ast.BinaryExpr:
		if e.Op == token.LAND || e.Op == token.LOR {
			x, okX := m.condition(e.X)
			y, okY := m.condition(e.Y)
			return x + " " + e.Op.String() + " " + y, okX && okY
		}
		if opposite(e.Op) == token.ILLEGAL {
			return "", false
		}
		if text(e.Y) == "nil" {
			return m.presence(e)
		}
		x, okX := m.value(e.X)
		y, okY := m.value(e.Y)
		return x + " " + e.Op.String() + " " + y, okX && okY
	}
	return m.value(e)
}

// presence is a comparison with nil.
func (m *method) presence(e *ast.BinaryExpr) (string, bool) {
	field, ok := m.access(e.X)
	if !ok || len(field.optional) == 0 {
		return "", false
	}
	has := strings.Join(field.optional, " && ")
	switch e.Op {
	case token.NEQ:
		return has, true
	case token.EQL:
		return "!(" + has + ")", true
	}
	return "", false
}

// function is what a function of package strings is in CEL; empty for others.
func function(name string) string {
	switch name {
	case "strings.HasPrefix":
		return "startsWith"
	case "strings.HasSuffix":
		return "endsWith"
	case "strings.Contains":
		return "contains"
	}
	return ""
}

// value is a value in CEL: a constant, a field, or a function of them. A field that may be
// absent is its zero value then, as in Go.
func (m *method) value(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return m.value(e.X)
	case *ast.BasicLit:
		value := constant(e)
		return value, value != ""
	case *ast.UnaryExpr:
		value := constant(e.X)
		return "-" + value, e.Op == token.SUB && value != ""
	case *ast.CallExpr:
		if f := function(text(e.Fun)); f != "" && len(e.Args) == 2 {
			x, okX := m.value(e.Args[0])
			y, okY := m.value(e.Args[1])
			return x + "." + f + "(" + y + ")", okX && okY
		}
		return "", false
	case *ast.StarExpr:
		field, ok := m.access(e.X)
		return field.path, ok
	case *ast.Ident:
		value := constant(e)
		return value, value != ""
	}
	field, ok := m.access(e)
	if !ok || field.zero == "" {
		return "", false
	}
	if len(field.optional) == 0 {
		return field.path, true
	}
	return "(" + strings.Join(field.optional, " && ") + " ? " + field.path + " : " + field.zero + ")", true
}

// field is a field of an object.
type field struct {
	path        string   // in CEL
	optional    []string // the conditions that it and those above it are there
	owner, name string   // in Go
	typ         named    // of a struct; its name is empty for another
	zero        string   // its zero value in CEL; empty if it has none to compare with
}

// access resolves a selector that begins with an object.
func (m *method) access(e ast.Expr) (field, bool) {
	switch e := e.(type) {
	case *ast.Ident:
		variable, ok := m.params[e.Name]
		return field{path: variable, typ: m.kind}, ok && m.known
	case *ast.SelectorExpr:
		at, ok := m.access(e.X)
		if !ok {
			return field{}, false
		}
		return m.sub(at, e.Sel.Name)
	}
	return field{}, false
}

// sub is a field of a struct.
func (m *method) sub(at field, name string) (field, bool) {
	spec := m.types[at.typ.pkg][at.typ.name]
	if spec == nil {
		return field{}, false
	}
	body, ok := spec.Type.(*ast.StructType)
	if !ok {
		return field{}, false
	}
	for _, f := range body.Fields.List {
		if f.Tag == nil || !slices.ContainsFunc(f.Names, func(id *ast.Ident) bool { return id.Name == name }) {
			continue
		}
		tag, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			return field{}, false
		}
		json, options, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
		if json == "" || json == "-" {
			return field{}, false
		}
		out := field{path: at.path + "." + json, optional: slices.Clone(at.optional), owner: at.typ.name, name: name}
		if strings.Contains(options, "omit") {
			out.optional = append(out.optional, "has("+out.path+")")
		}
		typ := f.Type
		if pointer, ok := typ.(*ast.StarExpr); ok {
			typ = pointer.X
		} else {
			out.zero = m.zero(at.typ.pkg, typ)
		}
		if id, ok := typ.(*ast.Ident); ok {
			out.typ = named{at.typ.pkg, id.Name}
		}
		return out, true
	}
	if name == "Name" && at.path != "" && !strings.Contains(at.path, ".") { // of metadata
		return field{path: at.path + ".metadata.name", owner: at.typ.name, name: name, zero: `""`}, true
	}
	return field{}, false
}

// zero is the zero value of a basic type, or of one that is defined by it.
func (m *method) zero(pkg string, typ ast.Expr) string {
	id, ok := typ.(*ast.Ident)
	if !ok {
		return ""
	}
	switch id.Name {
	case "string":
		return `""`
	case "bool":
		return "false"
	case "int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32":
		return "0"
	}
	if spec := m.types[pkg][id.Name]; spec != nil && spec.Type != typ {
		if _, basic := spec.Type.(*ast.Ident); basic {
			return m.zero("", spec.Type)
		}
	}
	return ""
}
