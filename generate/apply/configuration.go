// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"go/ast"
	"go/types"
	"path"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/schema"
)

// configuration writes the twin of one struct and its methods.
type configuration struct {
	*file
	decl   *load.TypeDecl
	name   string // of the struct
	self   string // of the twin
	public map[string]bool
}

// embedding is the embedded struct through which fields are reached.
type embedding struct {
	name   string // of the field
	inline bool
	plain  bool // the API's own struct, which has no apply configuration
}

func (t *target) configuration(decl *load.TypeDecl) (load.Output, error) {
	name := decl.Spec.Name.Name
	in := path.Join(t.pkg.Path, t.dir, t.sub)
	c := &configuration{file: t.file(in), decl: decl, name: name, self: name + suffix, public: map[string]bool{}}
	obj := t.pkg.Types.Scope().Lookup(name)
	s := obj.Type().Underlying().(*types.Struct)

	c.structure(obj.Type(), s)
	hasTypeMeta := slices.ContainsFunc(members(s), func(m member) bool {
		return m.Embedded() && m.Type().String() == metaPath+".TypeMeta"
	})
	c.constructor(hasTypeMeta)
	if t.isKind(name) {
		c.extract(s)
	}
	if t.isKind(name) || hasTypeMeta {
		c.line("\nfunc (b %s) IsApplyConfiguration() {}\n", c.self)
	}
	c.setters(obj.Type(), s, nil)
	c.getters(obj.Type(), s, nil)
	return c.output(path.Base(in), path.Join(t.sub, strings.ToLower(name)+".go"))
}

func (c *configuration) structure(owner types.Type, s *types.Struct) {
	c.line("// %s represents a declarative configuration of the %s type for use", c.self, c.name)
	c.line("// with apply.")
	if doc := prose(comments(c.decl)); doc != "" {
		c.line("//")
		c.WriteString(doc)
	}
	docs := map[string]*ast.CommentGroup{}
	for _, field := range c.decl.Spec.Type.(*ast.StructType).Fields.List {
		for _, name := range field.Names {
			docs[name.Name] = field.Doc
		}
		if len(field.Names) == 0 {
			docs[embeddedName(field.Type)] = field.Doc
		}
	}
	c.line("type %s struct {", c.self)
	for _, m := range members(s) {
		if hidden(owner, m.Name()) {
			continue
		}
		c.WriteString(prose(text(docs[m.Name()])))
		twin := c.twin(m.Type())
		switch {
		case m.inline:
			c.line("%s `json:\"\"`", twin)
		case m.Embedded():
			c.line("*%s `json:\"%s,omitempty\"`", twin, m.name)
		case nillable(m.Type()):
			c.line("%s %s `json:\"%s,omitempty\"`", m.Name(), twin, m.name)
		default:
			c.line("%s *%s `json:\"%s,omitempty\"`", m.Name(), twin, m.name)
		}
	}
	c.line("}")
}

func embeddedName(expr ast.Expr) string {
	switch x := expr.(type) {
	case *ast.StarExpr:
		return embeddedName(x.X)
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}

func (c *configuration) constructor(hasTypeMeta bool) {
	kind := c.target.isKind(c.name)
	subject := c.self
	if kind {
		subject = c.name
	}
	c.line("\n// %s constructs a declarative configuration of the %s type for use with", subject, c.name)
	c.line("// apply.")
	parameters := ""
	if kind {
		parameters = "name, namespace string"
		if c.target.clusterWide(c.decl) {
			parameters = "name string"
		}
	}
	c.line("func %s(%s) *%s {", c.name, parameters, c.self)
	if !kind && !hasTypeMeta {
		c.line("return &%s{}\n}", c.self)
		return
	}
	c.line("b := &%s{}", c.self)
	if kind {
		c.line("b.WithName(name)")
		if !c.target.clusterWide(c.decl) {
			c.line("b.WithNamespace(namespace)")
		}
	}
	c.identity()
	c.line("return b\n}")
}

func (c *configuration) identity() {
	c.line("b.WithKind(%q)", c.name)
	c.line("b.WithAPIVersion(%q)", c.target.group+"/"+path.Base(c.target.pkg.Path))
}

func (c *configuration) extract(s *types.Struct) {
	subject := lowerFirst(c.name)
	object := c.ref(c.target.pkg.Path, c.name)
	c.line(`
// Extract%[2]sFrom extracts the applied configuration owned by fieldManager from
// %[1]s for the specified subresource. Pass an empty string for subresource to extract
// the main resource. Common subresources include "status", "scale", etc.
// %[1]s must be a unmodified %[2]s API object that was retrieved from the Kubernetes API.
// Extract%[2]sFrom provides a way to perform a extract/modify-in-place/apply workflow.
// Note that an extracted apply configuration will contain fewer fields than what the fieldManager previously
// applied if another fieldManager has updated or force applied any of the previously applied fields.
func Extract%[2]sFrom(%[1]s *%[3]s, fieldManager string, subresource string) (*%[4]s, error) {
	b := &%[4]s{}
	err := %[5]s(%[1]s, %[6]s().Type(%[7]q), fieldManager, b, subresource)
	if err != nil {
		return nil, err
	}
	b.WithName(%[1]s.Name)`, subject, c.name, object, c.self,
		c.ref("k8s.io/apimachinery/pkg/util/managedfields", "ExtractInto"),
		c.ref(path.Join(c.target.pkg.Path, c.target.dir, "internal"), "Parser"),
		schema.DefinitionName(c.target.pkg.Path, c.name))
	if !c.target.clusterWide(c.decl) {
		c.line("b.WithNamespace(%s.Namespace)", subject)
	}
	c.line("")
	c.identity()
	c.line("return b, nil\n}")
	c.line(`
// Extract%[2]s extracts the applied configuration owned by fieldManager from
// %[1]s. If no managedFields are found in %[1]s for fieldManager, a
// %[4]s is returned with only the Name, Namespace (if applicable),
// APIVersion and Kind populated. It is possible that no managed fields were found for because other
// field managers have taken ownership of all the fields previously owned by fieldManager, or because
// the fieldManager never owned fields any fields.
// %[1]s must be a unmodified %[2]s API object that was retrieved from the Kubernetes API.
// Extract%[2]s provides a way to perform a extract/modify-in-place/apply workflow.
// Note that an extracted apply configuration will contain fewer fields than what the fieldManager previously
// applied if another fieldManager has updated or force applied any of the previously applied fields.
func Extract%[2]s(%[1]s *%[3]s, fieldManager string) (*%[4]s, error) {
	return Extract%[2]sFrom(%[1]s, fieldManager, "")
}`, subject, c.name, object, c.self)
	hasStatus := slices.ContainsFunc(members(s), func(m member) bool { return m.Name() == "Status" })
	if hasStatus && !hasTag(c.decl, "+genclient:noStatus") {
		c.line(`
// Extract%[2]sStatus extracts the applied configuration owned by fieldManager from
// %[1]s for the status subresource.
func Extract%[2]sStatus(%[1]s *%[3]s, fieldManager string) (*%[4]s, error) {
	return Extract%[2]sFrom(%[1]s, fieldManager, "status")
}`, subject, c.name, object, c.self)
	}
}

// setters writes a With method for each field, those of embedded structs too.
func (c *configuration) setters(owner types.Type, s *types.Struct, in *embedding) {
	for _, m := range members(s) {
		if hidden(owner, m.Name()) || c.public[m.Name()] {
			continue
		}
		c.public[m.Name()] = true
		if m.Embedded() {
			c.embedded(m)
			continue
		}
		c.setter(m, in)
	}
}

func (c *configuration) embedded(m member) {
	twin := c.twin(m.Type())
	e := &embedding{name: twin[strings.LastIndexByte(twin, '.')+1:], inline: m.inline, plain: !c.target.isTwin(m.Type())}
	t := m.Type()
	if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
		t = pointer.Elem()
	}
	if nested, ok := t.Underlying().(*types.Struct); ok {
		c.setters(t, nested, e)
	}
	if !m.inline {
		c.line("\nfunc (b *%s) ensure%sExists() {\nif b.%s == nil {\nb.%s = &%s{}\n}\n}\n", c.self, e.name, e.name, e.name, twin)
	}
}

func (c *configuration) ensure(in *embedding) {
	if in != nil && !in.inline {
		c.line("b.ensure%sExists()", in.name)
	}
}

func (c *configuration) setter(m member, in *embedding) {
	field := "b." + m.Name()
	if in != nil {
		field = "b." + in.name + "." + m.Name()
	}
	twin := c.twin(m.Type())
	switch t := types.Unalias(m.Type()).(type) {
	case *types.Slice:
		value, item := strings.TrimPrefix(twin, "[]"), "values[i]"
		if c.target.isTwin(t.Elem()) {
			value, item = "*"+value, "*values[i]"
		}
		c.line("// With%[1]s adds the given value to the %[1]s field in the declarative configuration", m.Name())
		c.line("// and returns the receiver, so that objects can be build by chaining \"With\" function invocations.")
		c.line("// If called multiple times, values provided by each call will be appended to the %s field.", m.Name())
		c.line("func (b *%s) With%s(values ...%s) *%s {", c.self, m.Name(), value, c.self)
		c.ensure(in)
		c.line("for i := range values {")
		if item != "values[i]" {
			c.line("if values[i] == nil {\npanic(\"nil value passed to With%s\")\n}", m.Name())
		}
		c.line("%[1]s = append(%[1]s, %[2]s)\n}", field, item)
	case *types.Map:
		c.line("// With%[1]s puts the entries into the %[1]s field in the declarative configuration", m.Name())
		c.line("// and returns the receiver, so that objects can be build by chaining \"With\" function invocations.")
		c.line("// If called multiple times, the entries provided by each call will be put on the %s field,", m.Name())
		c.line("// overwriting an existing map entries in %s field with the same key.", m.Name())
		c.line("func (b *%s) With%s(entries %s) *%s {", c.self, m.Name(), twin, c.self)
		c.ensure(in)
		c.line("if %[1]s == nil && len(entries) > 0 {\n%[1]s = make(%[2]s, len(entries))\n}", field, twin)
		c.line("for k, v := range entries {\n%s[k] = v\n}", field)
	default:
		value := "&value"
		_, pointer := t.(*types.Pointer)
		switch {
		case in != nil && in.plain && pointer:
			twin = strings.TrimPrefix(c.syntax(t), "*")
		case in != nil && in.plain:
			twin, value = c.syntax(t), "value"
		case c.target.isTwin(t):
			twin, value = "*"+twin, "value"
		}
		c.line("// With%[1]s sets the %[1]s field in the declarative configuration to the given value", m.Name())
		c.line("// and returns the receiver, so that objects can be built by chaining \"With\" function invocations.")
		c.line("// If called multiple times, the %s field is set to the value of the last call.", m.Name())
		c.line("func (b *%s) With%s(value %s) *%s {", c.self, m.Name(), twin, c.self)
		c.ensure(in)
		c.line("%s = %s", field, value)
	}
	c.line("return b\n}\n")
}

// getters writes the methods that applying a configuration needs.
func (c *configuration) getters(owner types.Type, s *types.Struct, in *embedding) {
	for _, m := range members(s) {
		if hidden(owner, m.Name()) {
			continue
		}
		if m.Embedded() {
			twin := c.twin(m.Type())
			t := m.Type()
			if pointer, ok := types.Unalias(t).(*types.Pointer); ok {
				t = pointer.Elem()
			}
			if nested, ok := t.Underlying().(*types.Struct); ok {
				c.getters(t, nested, &embedding{name: twin[strings.LastIndexByte(twin, '.')+1:], inline: m.inline})
			}
			continue
		}
		key := strings.TrimPrefix(owner.String(), metaPath+".") + "." + m.Name()
		if !slices.Contains([]string{"ObjectMeta.Name", "ObjectMeta.Namespace", "TypeMeta.Kind", "TypeMeta.APIVersion"}, key) || in == nil {
			continue
		}
		c.line("// Get%[1]s retrieves the value of the %[1]s field in the declarative configuration.", m.Name())
		c.line("func (b *%s) Get%s() *%s {", c.self, m.Name(), c.syntax(m.Type()))
		c.ensure(in)
		c.line("return b.%s.%s\n}\n", in.name, m.Name())
	}
}
