// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// startingCalls are calls that start a goroutine, a server or a process, by the import path and
// the name of the function.
func startingCalls() map[string][]string {
	return map[string][]string{
		"context":           {"AfterFunc"},
		"net":               {"Listen", "ListenPacket", "ListenTCP", "ListenUDP", "ListenUnix", "Pipe"},
		"net/http":          {"Serve", "ServeTLS", "ListenAndServe", "ListenAndServeTLS"},
		"net/http/httptest": {"NewServer", "NewTLSServer", "NewUnstartedServer"},
		"os/exec":           {"Command", "CommandContext"},
		"os/signal":         {"Notify", "NotifyContext"},
		"time":              {"AfterFunc"},
	}
}

// startingSupport are the packages of the module, below its path, that start a control plane or
// long-lived parts for tests.
func startingSupport() []string {
	return []string{"steertest", "internal/exampletest", "internal/kubeapiserver", "internal/lifecycletest", "apiserver/apiservertest", "manager", "controlplane"}
}

// starts says what of the code and of the tests of a package starts goroutines, servers or
// processes: nothing if none does. It reads what is written in the package itself, and which
// packages its files import that start a control plane or a manager: code that calls a
// function of another package, which starts a goroutine, is found by neither.
func starts(p *testedPackage) (reasons []string, err error) {
	fset := token.NewFileSet()
	found := map[string]int{}
	first := map[string]string{}
	add := func(what string, at token.Pos) {
		if found[what]++; found[what] == 1 {
			position := fset.Position(at)
			first[what] = fmt.Sprintf("%s:%d", filepath.Base(position.Filename), position.Line)
			reasons = append(reasons, what)
		}
	}
	for _, name := range p.own {
		file, err := parser.ParseFile(fset, filepath.Join(p.dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		inspectStarts(file, p.module, add)
	}
	for i, what := range reasons {
		reasons[i] = fmt.Sprintf("%s, in %s", what, first[what])
		if n := found[what]; n > 1 {
			reasons[i] = fmt.Sprintf("%s (%d times), first in %s", what, n, first[what])
		}
	}
	slices.Sort(reasons)
	return reasons, nil
}

// inspectStarts calls add for all that a file starts.
func inspectStarts(file *ast.File, module string, add func(what string, at token.Pos)) {
	imported := map[string]string{} // the path of an import, by its name in the file
	for _, spec := range file.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := path[strings.LastIndex(path, "/")+1:]
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imported[name] = path
		if below, ok := strings.CutPrefix(path, module+"/"); ok && slices.Contains(startingSupport(), below) {
			add("import of "+below, spec.Pos())
		}
	}
	calls := startingCalls()
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add("go statement", n.Pos())
		case *ast.CallExpr:
			selector, ok := n.Fun.(*ast.SelectorExpr)
			if !ok {
				break
			}
			name := selector.Sel.Name
			if x, ok := selector.X.(*ast.Ident); ok && slices.Contains(calls[imported[x.Name]], name) {
				add(imported[x.Name]+"."+name, n.Pos())
			} else if name == "Go" && len(n.Args) == 1 {
				add("goroutine of a group", n.Pos())
			}
		}
		return true
	})
}
