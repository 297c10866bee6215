// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package object

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"unicode"

	"github.com/steer-dev/steer/generate/load"
)

// imports gives each imported package a name that no other has: the last element
// of its path, with as many elements before it as it takes.
type imports struct {
	pkg    *load.Package
	byPath map[string]string
	byName map[string]string
}

func newImports(pkg *load.Package) *imports {
	// The package's own name is taken: an import of that name would confuse.
	return &imports{pkg: pkg, byPath: map[string]string{}, byName: map[string]string{pkg.Name: ""}}
}

// name returns the name under which a package is imported.
func (i *imports) name(imported string) string {
	if at := strings.LastIndex(imported, "/vendor/"); at >= 0 {
		imported = imported[at+len("/vendor/"):]
	}
	if name, known := i.byPath[imported]; known {
		return name
	}
	rest, element := path.Split(imported)
	name := ""
	for {
		if rest == "" {
			name += "x"
		}
		name = identifier(element) + name
		if rest != "" {
			rest, element = path.Split(strings.TrimSuffix(rest, "/"))
		}
		if _, taken := i.byName[name]; !taken {
			break
		}
	}
	i.byPath[imported], i.byName[name] = name, imported
	return name
}

// identifier makes a path element one: no digits first, nothing but letters,
// digits and underscores.
func identifier(element string) string {
	element = strings.TrimLeftFunc(element, unicode.IsDigit)
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return r
		}
		return '_'
	}, element)
}

// specs returns the import specifications. The name is left out where it is the
// one that the package has, as far as this package's own imports tell.
func (i *imports) specs() []string {
	var specs []string
	for imported, name := range i.byPath {
		if i.direct(imported) == name {
			specs = append(specs, strconv.Quote(imported))
		} else {
			specs = append(specs, fmt.Sprintf("%s %q", name, imported))
		}
	}
	return specs
}

// direct returns the name of a package that this package imports itself.
func (i *imports) direct(imported string) string {
	for _, file := range i.pkg.Files {
		for _, spec := range file.Imports {
			if spec.Path.Value == strconv.Quote(imported) {
				if target, err := i.pkg.Import(imported); err == nil {
					return target.GoName()
				}
			}
		}
	}
	return ""
}
