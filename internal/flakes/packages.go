// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// testedPackage is a package that has tests.
type testedPackage struct {
	// Path is the import path, module that of the module that it is in.
	path, module string
	dir          string
	// Own are the names of the Go files in dir, tests included.
	own []string
	// Inputs are the files that the test binary is made of, as far as they are in this module:
	// Go files, embedded files, and what C and assembly there is. Folders are those of its Go
	// packages.
	inputs, folders map[string]bool
}

// short is the path below the module.
func (p *testedPackage) short() string {
	if rest, ok := strings.CutPrefix(p.path, p.module); ok {
		return "." + rest
	}
	return p.path
}

// listed is what go list says of a package, or of a variant of it.
type listed struct {
	ImportPath, Dir, ForTest string
	Standard                 bool
	Module                   *struct {
		Path string
		Main bool
	}
	GoFiles, CgoFiles, CFiles, HFiles, SFiles []string
	TestGoFiles, XTestGoFiles                 []string
	EmbedFiles                                []string
	Deps                                      []string
}

// loadPackages lists the packages with tests that patterns name, by path.
func loadPackages(ctx context.Context, folder string, patterns []string) ([]*testedPackage, error) {
	out, err := goCommand(ctx, folder, append([]string{"list", "-deps", "-test", "-json=ImportPath,Dir,ForTest,Standard,Module," +
		"GoFiles,CgoFiles,CFiles,HFiles,SFiles,TestGoFiles,XTestGoFiles,EmbedFiles,Deps", "--"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	return readPackages(out)
}

// readPackages makes the packages of the output of go list -deps -test -json.
func readPackages(output []byte) ([]*testedPackage, error) {
	all := map[string]*listed{}
	var order []string
	for d := json.NewDecoder(bytes.NewReader(output)); ; {
		p := &listed{}
		err := d.Decode(p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of go list: %w", err)
		}
		if !p.Standard && p.Module != nil && p.Module.Main {
			all[p.ImportPath] = p
			order = append(order, p.ImportPath)
		}
	}
	var packages []*testedPackage
	for _, path := range order {
		// The main package of a test binary imports all that is linked.
		binary := all[path]
		p := all[strings.TrimSuffix(path, ".test")]
		if p == binary || p == nil || binary.ForTest != "" && binary.ForTest != p.ImportPath {
			continue
		}
		t := &testedPackage{
			path: p.ImportPath, module: p.Module.Path, dir: p.Dir,
			own: slices.Concat(p.GoFiles, p.CgoFiles, p.TestGoFiles, p.XTestGoFiles), inputs: map[string]bool{}, folders: map[string]bool{},
		}
		for _, dep := range binary.Deps {
			d := all[dep]
			if d == nil {
				continue
			}
			t.folders[d.Dir] = true
			for _, name := range slices.Concat(d.GoFiles, d.CgoFiles, d.CFiles, d.HFiles, d.SFiles, d.EmbedFiles) {
				t.inputs[filepath.Join(d.Dir, name)] = true
			}
		}
		packages = append(packages, t)
	}
	slices.SortFunc(packages, func(a, b *testedPackage) int { return strings.Compare(a.path, b.path) })
	return packages, nil
}

// goCommand returns the output of the go command in a folder; what it writes to standard error
// is in the error.
func goCommand(ctx context.Context, folder string, args ...string) ([]byte, error) {
	return output(ctx, folder, "go", args...)
}

func output(ctx context.Context, folder, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Dir = folder
	c.Env = os.Environ()
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", name, args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
