// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command othersystems reports what of the packages of a module, their tests included, does not
// compile for other systems:
//
//	go run ./internal/othersystems darwin windows
//
// It checks types from the sources and compiles nothing, so that it takes seconds where go vet,
// which compiles all dependencies for each system, takes minutes.
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	failed := false
	for _, system := range os.Args[1:] {
		errs, err := check(system, "./...")
		if err != nil {
			fmt.Fprintf(os.Stderr, "othersystems: %s: %v\n", system, err)
			os.Exit(1)
		}
		for _, e := range errs {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, e)
			failed = true
		}
	}
	if failed {
		os.Exit(1)
	}
}

// check returns the errors of packages on a system.
func check(system string, patterns ...string) (errs []error, err error) {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps | packages.NeedTypes |
			packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedModule,
		Env: append(os.Environ(), "GOOS="+system, "CGO_ENABLED=0"), Tests: true,
	}, patterns...)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for p := range packages.Postorder(loaded) {
		for _, e := range p.Errors {
			if !seen[e.Error()] { // a package and the same with its tests
				seen[e.Error()] = true
				errs = append(errs, e)
			}
		}
	}
	return errs, nil
}
