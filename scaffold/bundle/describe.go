// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const marker = "+operator-sdk:csv:customresourcedefinitions:"

// describe completes the owned kinds with what the markers of operator-sdk say.
func (v *version) describe(dir string) error {
	for _, resource := range v.project.Resources {
		folder, ok := strings.CutPrefix(resource.Path, v.project.Repo+"/")
		if resource.API == nil || !ok {
			continue
		}
		types, err := readTypes(filepath.Join(dir, filepath.FromSlash(folder)))
		if err != nil {
			return err
		}
		i := slices.IndexFunc(v.owned, func(item any) bool {
			o := item.(object)
			return o["kind"] == resource.Kind && o["version"] == resource.Version
		})
		kind := types[resource.Kind]
		if i < 0 || kind == nil {
			continue
		}
		types.describe(kind, v.owned[i].(object))
	}
	return nil
}

// structType is a struct with its comment.
type structType struct {
	doc    *ast.CommentGroup
	fields *ast.FieldList
}

type structTypes map[string]*structType

// readTypes reads the structs of a package.
func readTypes(dir string) (structTypes, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	out := structTypes{}
	for _, file := range files {
		syntax, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("%s", strings.SplitN(err.Error(), "\n", 2)[0])
		}
		for _, decl := range syntax.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if typ, ok := spec.(*ast.TypeSpec); ok {
					if fields, ok := typ.Type.(*ast.StructType); ok {
						doc := typ.Doc
						if doc == nil {
							doc = gen.Doc
						}
						out[typ.Name.Name] = &structType{doc, fields.Fields}
					}
				}
			}
		}
	}
	return out, nil
}

// describe completes the description of a kind.
func (t structTypes) describe(kind *structType, owned object) {
	for _, options := range markers(kind.doc) {
		if name := options["displayName"]; name != "" {
			owned["displayName"] = name
		}
		if list := resources(options["resources"]); len(list) > 0 {
			owned["resources"] = list
		}
	}
	for _, field := range kind.fields.List {
		name := jsonName(field)
		if name != "spec" && name != "status" {
			continue
		}
		found := t.descriptors(name, typeName(field.Type), "", map[string]bool{})
		slices.SortStableFunc(found, func(a, b descriptor) int { return a.order - b.order })
		var list []any
		for _, d := range found {
			list = append(list, d.content)
		}
		if len(list) > 0 {
			owned[name+"Descriptors"] = list
		}
	}
}

// descriptor describes a field.
type descriptor struct {
	order   int
	content object
}

// descriptors are those of the fields below a type, and of the types of its package that
// its fields have.
func (t structTypes) descriptors(part, typ, path string, seen map[string]bool) (out []descriptor) {
	fields := t[typ]
	if fields == nil || seen[typ] {
		return nil
	}
	seen[typ] = true
	defer delete(seen, typ)
	for _, field := range fields.fields.List {
		name := jsonName(field)
		if name == "" && len(field.Names) > 0 {
			continue
		}
		below := strings.Trim(path+"."+name, ".")
		for _, options := range markers(field.Doc) {
			if options["type"] != part {
				continue
			}
			content := object{"path": below, "displayName": options["displayName"]}
			if options["displayName"] == "" && len(field.Names) > 0 {
				content["displayName"] = spaced(field.Names[0].Name)
			}
			if description := plainComment(field.Doc); description != "" {
				content["description"] = description
			}
			if list := strings.Split(options["xDescriptors"], ";"); list[0] != "" {
				content["x-descriptors"] = list
			}
			order, err := strconv.Atoi(options["order"])
			if err != nil {
				order = 1 << 20 // after those that have one
			}
			out = append(out, descriptor{order, content})
		}
		if _, list := field.Type.(*ast.ArrayType); list {
			below += "[0]"
		}
		out = append(out, t.descriptors(part, typeName(field.Type), below, seen)...)
	}
	return out
}

// typeName is the name of the struct that a field has, a list of, or a pointer to.
func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.ArrayType:
		return typeName(e.Elt)
	}
	return ""
}

// jsonName is the name of a field in JSON; empty for one that is inlined or left out.
func jsonName(field *ast.Field) string {
	if field.Tag == nil {
		return ""
	}
	tag, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
	return strings.Trim(name, "-")
}

var (
	option = regexp.MustCompile(`(\w+)=(\{\{.*?\}\}|\{[^}]*\}|"[^"]*"|[^,]*)`)
	word   = regexp.MustCompile(`([a-z0-9])([A-Z])`)
)

func spaced(name string) string { return word.ReplaceAllString(name, "$1 $2") }

// markers are the options of the markers in a comment.
func markers(doc *ast.CommentGroup) (out []map[string]string) {
	if doc == nil {
		return nil
	}
	for _, comment := range doc.List {
		text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")), marker)
		if !ok {
			continue
		}
		options := map[string]string{}
		for _, match := range option.FindAllStringSubmatch(text, -1) {
			value := match[2]
			if strings.HasPrefix(value, `{"`) {
				value = strings.ReplaceAll(strings.Trim(value, "{}"), ",", ";")
			}
			if match[1] != "resources" {
				value = strings.ReplaceAll(value, `"`, "")
			}
			options[match[1]] = value
		}
		out = append(out, options)
	}
	return out
}

// resources are the kinds of {{Kind,version,name},...}.
func resources(text string) (out []any) {
	for item := range strings.SplitSeq(strings.Trim(text, "{}"), "},{") {
		parts := strings.Split(strings.NewReplacer(`"`, "", "`", "").Replace(item), ",")
		if len(parts) >= 2 && parts[0] != "" {
			o := object{"kind": parts[0], "version": parts[1], "name": ""}
			if len(parts) > 2 {
				o["name"] = parts[2]
			}
			out = append(out, o)
		}
	}
	return out
}

// plainComment is a comment without markers, in one line.
func plainComment(doc *ast.CommentGroup) string {
	var words []string
	for line := range strings.Lines(doc.Text()) {
		if !strings.HasPrefix(strings.TrimSpace(line), "+") {
			words = append(words, strings.Fields(line)...)
		}
	}
	return strings.Join(words, " ")
}
