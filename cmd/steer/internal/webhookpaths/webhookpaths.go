// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhookpaths compares the webhooks that the code of a project serves with what
// its markers and its webhook configurations tell API servers to call.
package webhookpaths

import (
	"bytes"
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/sources"
	"github.com/steer-dev/steer/generate/webhook"
	"github.com/steer-dev/steer/scaffold/project"
)

const webhookPackage = "github.com/steer-dev/steer/webhook"

// call is webhook.AddDefaulter and its like, in the code.
type call struct {
	in       *sources.File
	at       token.Position
	function string // AddDefaulter, AddValidator or AddHandler
	of       ast.Expr
	typed    bool // of is the kind, and not what handles it
	path     string
}

// goType is a type by its package and name.
type goType struct{ importPath, name string }

// Paths are the webhooks of a project.
type Paths struct {
	dir     string
	project *project.Project
	markers []webhook.Located

	calls []call
	// kinds are those of defaulters and validators, by the name of the method too.
	kinds map[string]map[goType]goType
	// unknown are functions of which a call serves a path that the sources do not tell.
	unknown map[string]bool
	served  map[string]token.Position
	// converted are the kinds with webhook.AddConversion.
	converted map[goType]token.Position
}

// Read reads the sources of a project that has these markers.
func Read(dir string, p *project.Project, markers []webhook.Located) (*Paths, error) {
	w := &Paths{
		dir: dir, project: p, markers: markers, kinds: map[string]map[goType]goType{"Default": {}, "ValidateCreate": {}},
		unknown: map[string]bool{}, served: map[string]token.Position{}, converted: map[goType]token.Position{},
	}
	err := sources.Walk(dir, p.Repo, w.read)
	for _, c := range w.calls {
		if served, ok := w.pathOf(c); ok {
			w.served[served] = c.at
		} else {
			w.unknown[c.function] = true
		}
	}
	return w, err
}

// read notes the methods and the calls of one file.
func (w *Paths) read(f *sources.File) {
	for _, decl := range f.Syntax.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv == nil || w.kinds[fn.Name.Name] == nil {
			continue
		}
		if of := sources.Second(fn.Type.Params); of != nil {
			w.kinds[fn.Name.Name][typeOf(f, fn.Recv.List[0].Type)] = typeOf(f, of)
		}
	}
	ast.Inspect(f.Syntax, func(n ast.Node) bool {
		if c, ok := n.(*ast.CallExpr); ok {
			w.call(f, c)
		}
		return true
	})
}

func typeOf(f *sources.File, of ast.Expr) goType {
	importPath, name := f.Named(of)
	return goType{importPath, name}
}

// call notes a call that serves a webhook.
func (w *Paths) call(f *sources.File, n *ast.CallExpr) {
	function, typed := n.Fun, ast.Expr(nil)
	if index, ok := function.(*ast.IndexExpr); ok {
		function, typed = index.X, index.Index
	}
	name := f.Member(webhookPackage, function)
	if len(n.Args) < 2 || !slices.Contains([]string{"AddDefaulter", "AddValidator", "AddHandler", "AddConversion"}, name) {
		return
	}
	c := call{in: f, at: f.At(n), function: name, of: value(n.Args[1])}
	switch {
	case name == "AddConversion":
		w.converted[typeOf(f, c.of)] = c.at
		return
	case name == "AddHandler":
		c.path = literal(n.Args[1])
	case typed != nil:
		c.of, c.typed = typed, true
	}
	for _, option := range n.Args[2:] {
		if o, ok := option.(*ast.CallExpr); ok && f.Member(webhookPackage, o.Fun) == "Path" && len(o.Args) == 1 {
			if c.path = literal(o.Args[0]); c.path == "" {
				c.of, c.typed = nil, false // it is told elsewhere
			}
		}
	}
	w.calls = append(w.calls, c)
}

// value is the type of what an expression makes, such as &T{}, T{} and new(T); otherwise nil.
func value(e ast.Expr) ast.Expr {
	switch e := e.(type) {
	case *ast.UnaryExpr:
		return value(e.X)
	case *ast.CompositeLit:
		return e.Type
	case *ast.CallExpr:
		if name, ok := e.Fun.(*ast.Ident); ok && name.Name == "new" && len(e.Args) == 1 {
			return e.Args[0]
		}
	}
	return nil
}

func literal(e ast.Expr) string {
	if lit, ok := e.(*ast.BasicLit); ok && lit.Kind == token.STRING {
		text, _ := strconv.Unquote(lit.Value) // it parsed
		return text
	}
	return ""
}

// pathOf is where a call serves its webhook; ok is false where the sources do not tell.
func (w *Paths) pathOf(c call) (_ string, ok bool) {
	if c.path != "" || c.of == nil {
		return c.path, c.path != ""
	}
	verb, method := "mutate", "Default"
	if c.function == "AddValidator" {
		verb, method = "validate", "ValidateCreate"
	}
	kind := typeOf(c.in, c.of)
	if !c.typed {
		kind = w.kinds[method][kind]
	}
	group, _, known := w.project.ResourceOf(kind.importPath, kind.name)
	version := path.Base(kind.importPath)
	for _, r := range w.project.Resources {
		if r.Path == kind.importPath && r.Kind == kind.name {
			version = r.Version
		}
	}
	return "/" + verb + "-" + strings.ReplaceAll(group, ".", "-") + "-" + version + "-" + strings.ToLower(kind.name), known
}

// Findings are the lines FILE:LINE: PROBLEM of paths that one side lacks.
func (w *Paths) Findings() ([]string, error) {
	var found []string
	marked := map[string]bool{}
	for _, m := range w.markers {
		marked[m.Path] = true
		if line := w.unserved(m.Path, m.Mutating, sources.Relative(w.dir, m.Pos)); line != "" {
			found = append(found, line)
		}
	}
	configured, err := w.configured()
	if err != nil {
		return nil, err
	}
	for _, c := range configured {
		if marked[c.path] {
			continue // what is generated of a marker is told there
		}
		marked[c.path] = true
		if line := w.unserved(c.path, c.mutating, c.place); line != "" {
			found = append(found, line)
		}
	}
	var more []string
	for served, at := range w.served {
		if !marked[served] {
			more = append(more, fmt.Sprintf("%s: %s is served, but nothing calls it; add a marker // +kubebuilder:webhook:path=%s,... above its type, or correct the path of the one that is there",
				sources.Relative(w.dir, at), served, served))
		}
	}
	slices.Sort(more)
	return append(found, more...), nil
}

// unserved is the line on a path that is called and not served; empty for others.
func (w *Paths) unserved(called string, mutating bool, place string) string {
	add, handler := "AddValidator", "Validator"
	if mutating {
		add, handler = "AddDefaulter", "Defaulter"
	}
	if _, ok := w.served[called]; ok || w.unknown[add] || w.unknown["AddHandler"] {
		return ""
	}
	is := "nothing"
	if len(w.served) > 0 {
		var all []string
		for served := range w.served {
			all = append(all, served)
		}
		slices.Sort(all)
		is = strings.Join(all, ", ")
	}
	return fmt.Sprintf("%s: API servers call %s, and nothing serves it, so they refuse what it is for; add webhook.%s(m, &%s{}) to Setup, or correct the path; served is %s",
		place, called, add, cmp.Or(w.handlerOf(called, handler), handler), is)
}

// handlerOf is the type that would serve a path, if its name is KIND and the suffix.
func (w *Paths) handlerOf(called, suffix string) string {
	for _, r := range w.project.Resources {
		if strings.HasSuffix(called, "-"+strings.ToLower(r.Kind)) {
			return r.Kind + suffix
		}
	}
	return ""
}

// configuration is a webhook of a configuration in the project.
type configuration struct {
	path, place string
	mutating    bool
}

// configured are the webhooks of the configurations in config/webhook that lead to the
// operator's Service.
func (w *Paths) configured() ([]configuration, error) {
	files, err := filepath.Glob(filepath.Join(w.dir, "config", "webhook", "*.yaml"))
	var found []configuration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(text, []byte("WebhookConfiguration")) {
			continue // such as the patches of kustomize
		}
		objects, err := manifest.Parse(file, text)
		if err != nil {
			return nil, err
		}
		for _, o := range objects {
			hooks, _, _ := unstructured.NestedSlice(o.Object, "webhooks")
			for _, hook := range hooks {
				hook, _ := hook.(map[string]any)
				called, _, _ := unstructured.NestedString(hook, "clientConfig", "service", "path")
				if called == "" {
					continue
				}
				line := 1 + bytes.Count(text[:max(bytes.Index(text, []byte(called)), 0)], []byte("\n"))
				found = append(found, configuration{called, sources.Relative(w.dir, token.Position{Filename: file, Line: line}), strings.HasPrefix(o.GetKind(), "Mutating")})
			}
		}
	}
	return found, err
}

// Converts reports whether the code serves the conversion of a kind, and where. Conversion
// is told by any of its versions, which is the hub.
func (w *Paths) Converts(group, kind string) (place string, ok bool) {
	for is, at := range w.converted {
		if g, _, known := w.project.ResourceOf(is.importPath, is.name); known && g == group && is.name == kind {
			return sources.Relative(w.dir, at), true
		}
	}
	return "", false
}
