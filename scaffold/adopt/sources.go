// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package adopt

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/steer-dev/steer/scaffold/project"
)

// use is a name that the Go files of a project give to something, and where.
type use struct {
	Name  string // as it is written, where it is no constant of the project
	Place string // FILE:LINE
}

// ownedUse is a kind that a controller owns.
type ownedUse struct {
	use
	path string // import path of its package; empty: it is not known
}

// sources is what the Go files of a project say.
type sources struct {
	leases, managers, finalizers, flags, recorders []use
	reconciled                                     []use      // the kinds of For
	owned                                          []ownedUse // those of Owns
	statusUpdates                                  []use
	rules                                          []rule
	files                                          []*sourceFile
}

type sourceFile struct {
	name    string // relative, with slashes
	pkg     string // path of the folder
	test    bool
	envtest bool // starts one
	lines   int
	syntax  *ast.File
}

// rule is a marker of RBAC.
type rule struct {
	groups, resources, verbs []string
}

// readSources reads the Go files of a project that are its own.
func readSources(dir string) (*sources, error) {
	s := &sources{}
	fset := token.NewFileSet()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() {
			if path != dir && (strings.HasPrefix(name, ".") || name == "vendor" || name == "testdata" || name == "bin" || name == "node_modules") {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(path) != ".go" || strings.HasPrefix(d.Name(), "zz_generated") {
			return nil
		}
		syntax, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return project.Usagef("%s", strings.SplitN(err.Error(), "\n", 2)[0])
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		s.files = append(s.files, &sourceFile{
			name: filepath.ToSlash(name), pkg: filepath.Dir(name), test: strings.HasSuffix(path, "_test.go"),
			lines: fset.File(syntax.FileStart).LineCount(), syntax: syntax,
		})
		return nil
	})
	if err != nil {
		return nil, err
	}
	constants := s.constants()
	for _, file := range s.files {
		r := &reader{sources: s, file: file, fset: fset, constants: constants}
		ast.Inspect(file.syntax, r.visit)
		if !file.test {
			r.markers()
		}
	}
	return s, nil
}

// constants are the values of the string constants of a project, by folder and name, and
// by the name of the package and theirs.
func (s *sources) constants() map[string]string {
	out := map[string]string{}
	for _, file := range s.files {
		for _, decl := range file.syntax.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok || gen.Tok != token.CONST && gen.Tok != token.VAR {
				continue
			}
			for _, spec := range gen.Specs {
				value := spec.(*ast.ValueSpec)
				for i, name := range value.Names {
					if i < len(value.Values) {
						if text, ok := literal(value.Values[i]); ok {
							out[file.pkg+" "+name.Name] = text
							out[file.syntax.Name.Name+"."+name.Name] = text
						}
					}
				}
			}
		}
	}
	return out
}

func literal(e ast.Expr) (string, bool) {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(lit.Value)
	return text, err == nil
}

// reader reads one file.
type reader struct {
	*sources
	file      *sourceFile
	fset      *token.FileSet
	constants map[string]string
}

func (r *reader) place(pos token.Pos) string {
	return r.file.name + ":" + strconv.Itoa(r.fset.Position(pos).Line)
}

// value is the text of an expression.
func (r *reader) value(e ast.Expr) string {
	if text, ok := literal(e); ok {
		return text
	}
	switch e := e.(type) {
	case *ast.Ident:
		if text, ok := r.constants[r.file.pkg+" "+e.Name]; ok {
			return text
		}
		return e.Name
	case *ast.SelectorExpr:
		name := fmt.Sprintf("%s.%s", r.value(e.X), e.Sel.Name)
		if text, ok := r.constants[name]; ok {
			return text
		}
		return name
	}
	return "(an expression)"
}

// visit takes one node over.
func (r *reader) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if sel, ok := n.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Environment" && r.value(sel.X) == "envtest" {
			r.file.envtest = true
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && !r.file.test {
			switch key.Name {
			case "LeaderElectionID":
				r.leases = append(r.leases, use{r.value(n.Value), r.place(n.Pos())})
			case "FieldManager", "FieldOwner":
				r.managers = append(r.managers, use{r.value(n.Value), r.place(n.Pos())})
			}
		}
	case *ast.CallExpr:
		if sel, ok := n.Fun.(*ast.SelectorExpr); ok && !r.file.test {
			r.call(n, sel)
		}
	}
	return true
}

// call takes the call of a method or of a function of a package over.
func (r *reader) call(n *ast.CallExpr, sel *ast.SelectorExpr) {
	place := r.place(sel.Sel.Pos()) // calls of a chain begin where it does
	argument := func(i int) (use, bool) {
		if i >= len(n.Args) {
			return use{}, false
		}
		return use{r.value(n.Args[i]), place}, true
	}
	add := func(list *[]use, i int) {
		if u, ok := argument(i); ok && !slices.ContainsFunc(*list, func(known use) bool { return known.Name == u.Name }) {
			*list = append(*list, u)
		}
	}
	switch sel.Sel.Name {
	case "FieldOwner":
		add(&r.managers, 0)
	case "WithFieldOwner":
		add(&r.managers, 1)
	case "AddFinalizer":
		add(&r.finalizers, 1)
	case "GetEventRecorderFor", "GetEventRecorder":
		add(&r.recorders, 0)
	case "For", "Owns":
		pkg, kind := kindOf(n.Args)
		switch {
		case kind == "" || begins(n, "NewWebhookManagedBy"):
		case sel.Sel.Name == "For":
			r.reconciled = append(r.reconciled, use{kind, place})
		default:
			found := ownedUse{use{kind, place}, r.imported(pkg)}
			if !slices.ContainsFunc(r.owned, func(known ownedUse) bool { return known.Name == kind && known.path == found.path }) {
				r.owned = append(r.owned, found)
			}
		}
	case "Update":
		if inner, ok := sel.X.(*ast.CallExpr); ok {
			if status, ok := inner.Fun.(*ast.SelectorExpr); ok && status.Sel.Name == "Status" {
				r.statusUpdates = append(r.statusUpdates, use{"Status().Update", place})
			}
		}
	}
	if pkg, ok := sel.X.(*ast.Ident); ok && (pkg.Name == "flag" || pkg.Name == "pflag") {
		r.flag(n, sel.Sel.Name)
	}
}

// flag takes the definition of a flag over.
func (r *reader) flag(n *ast.CallExpr, function string) {
	typ := strings.TrimSuffix(strings.TrimSuffix(function, "P"), "Var")
	if !slices.Contains([]string{"Bool", "String", "Int", "Int64", "Uint", "Uint64", "Float64", "Float32", "Duration", "StringSlice", "StringArray", "Int32", ""}, typ) {
		return
	}
	i := 0
	if strings.Contains(function, "Var") {
		i = 1
	}
	if i < len(n.Args) {
		if name, ok := literal(n.Args[i]); ok {
			r.flags = append(r.flags, use{name, r.place(n.Pos())})
		}
	}
}

// begins reports whether a chain of calls begins with a function of a name.
func begins(n *ast.CallExpr, name string) bool {
	for {
		sel, ok := n.Fun.(*ast.SelectorExpr)
		if !ok {
			return false
		}
		if sel.Sel.Name == name {
			return true
		}
		if n, ok = sel.X.(*ast.CallExpr); !ok {
			return false
		}
	}
}

// kindOf is the package, as the file names it, and the kind of the first argument,
// &v1.Kind{}.
func kindOf(args []ast.Expr) (pkg, kind string) {
	if len(args) == 0 {
		return "", ""
	}
	unary, ok := args[0].(*ast.UnaryExpr)
	if !ok {
		return "", ""
	}
	lit, ok := unary.X.(*ast.CompositeLit)
	if !ok {
		return "", ""
	}
	switch typ := lit.Type.(type) {
	case *ast.SelectorExpr:
		if name, ok := typ.X.(*ast.Ident); ok {
			return name.Name, typ.Sel.Name
		}
	case *ast.Ident:
		return "", typ.Name
	}
	return "", ""
}

// imported is the import path of a package that the file gives a name, or that has the
// name of its folder.
func (r *reader) imported(name string) string {
	for _, spec := range r.file.syntax.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err == nil && (spec.Name != nil && spec.Name.Name == name || spec.Name == nil && path.Base(importPath) == name) {
			return importPath
		}
	}
	return ""
}

// markers reads the markers of RBAC.
func (r *reader) markers() {
	for _, group := range r.file.syntax.Comments {
		for _, comment := range group.List {
			text, ok := strings.CutPrefix(strings.TrimSpace(strings.TrimPrefix(comment.Text, "//")), "+kubebuilder:rbac:")
			if !ok {
				continue
			}
			var rule rule
			for part := range strings.SplitSeq(text, ",") {
				key, value, _ := strings.Cut(part, "=")
				list := strings.Split(strings.Trim(value, "\"`"), ";")
				for i := range list {
					list[i] = strings.Trim(list[i], "\"`")
				}
				switch key {
				case "groups":
					rule.groups = list
				case "resources":
					rule.resources = list
				case "verbs":
					rule.verbs = list
				}
			}
			r.rules = append(r.rules, rule)
		}
	}
}

// allows reports whether a marker gives a verb on a resource.
func (s *sources) allows(group, resource, verb string) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(s.rules, func(r rule) bool {
		return (has(r.groups, group) || group == "" && len(r.groups) == 0 || group == "" && slices.Contains(r.groups, "core")) && has(r.resources, resource) && has(r.verbs, verb)
	})
}
