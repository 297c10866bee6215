// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// groupVersions are the names of the packages that a file imports, with the last two elements of
// their paths, which are group and version of an API.
func groupVersions(file *ast.File) map[string]string {
	out := map[string]string{}
	for _, spec := range file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		out[name] = path.Base(path.Dir(imported)) + "/" + path.Base(imported)
	}
	return out
}

// typesIn returns the named types of an expression: those of the fields of a struct, and what a
// type is a pointer, list or map of.
func typesIn(expr ast.Expr, groupVersion string, imported map[string]string) (out properties) {
	ast.Inspect(expr, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			out = append(out, typesIn(n.Type, groupVersion, imported)...)
			return false
		case *ast.SelectorExpr:
			if of, ok := n.X.(*ast.Ident); ok && imported[of.Name] != "" {
				out = append(out, imported[of.Name]+" "+n.Sel.Name)
			}
			return false
		case *ast.Ident:
			if n.IsExported() {
				out = append(out, groupVersion+" "+n.Name)
			}
		}
		return true
	})
	return out
}

// owners returns the kinds that each type is part of. The first of them is where the report
// lists it: the one that is nearest to it, rather of its own group and version.
func owners(kinds, types map[string]properties) map[string][]string {
	type reach struct {
		kind     string
		distance int
	}
	reached := map[string][]reach{}
	for kind := range kinds {
		seen, next := map[string]bool{kind: true}, []string{kind}
		for distance := 0; len(next) > 0; distance++ {
			var further []string
			for _, name := range next {
				reached[name] = append(reached[name], reach{kind, distance})
				for _, used := range types[name] {
					if !seen[used] {
						seen[used] = true
						further = append(further, used)
					}
				}
			}
			next = further
		}
	}
	out := map[string][]string{}
	for name, all := range reached {
		groupVersion, _, _ := strings.Cut(name, " ")
		slices.SortFunc(all, func(a, b reach) int {
			aElsewhere, bElsewhere := !strings.HasPrefix(a.kind, groupVersion+" "), !strings.HasPrefix(b.kind, groupVersion+" ")
			switch {
			case aElsewhere != bElsewhere && aElsewhere:
				return 1
			case aElsewhere != bElsewhere:
				return -1
			case a.distance != b.distance:
				return a.distance - b.distance
			}
			return strings.Compare(a.kind, b.kind)
		})
		for _, r := range all {
			out[name] = append(out[name], r.kind)
		}
	}
	return out
}

// many is how many kinds have a type that the report lists in a place of its own.
const many = 20

// typeOf returns the type that an item of a section belongs to.
func typeOf(s section, name string, kinds map[string]properties) string {
	groupVersion, rest, _ := strings.Cut(name, " ")
	switch s {
	case sectionKinds:
		return name
	case sectionColumns: // the printers name a kind without its group
		for kind := range kinds {
			if _, written, _ := strings.Cut(kind, " "); strings.EqualFold(written, groupVersion) && !beforeStable(kind) {
				return kind
			}
		}
		return ""
	}
	return groupVersion + " " + rest[:strings.IndexAny(rest+".", ". ")]
}

// beforeStable reports whether a name begins with a version that a server does not serve unless
// it is told to.
func beforeStable(name string) bool {
	version, _, _ := strings.Cut(name, " ")
	return strings.Contains(version, "/v") && (strings.Contains(version, "alpha") || strings.Contains(version, "beta"))
}

var definitionPattern = regexp.MustCompile(`Definition\[(\w+)\.(\w+),`)

// readDefinitions returns the files that define kinds here, by group, version and kind.
func readDefinitions(folder string) (map[string]string, error) {
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		found := definitionPattern.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ImportsOnly)
		if err != nil {
			return err
		}
		imported := groupVersions(file)
		for _, m := range found {
			out[imported[m[1]]+" "+m[2]] = path
		}
		return nil
	})
	return out, err
}
