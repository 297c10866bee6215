// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
)

// The data of the templates.
type (
	set struct {
		Package string // import path of the directory that holds everything
		Groups  []*group
	}
	group struct {
		Name, Go, Dir string
		Versions      []*version
	}
	version struct {
		Set            *set
		Group          *group
		Name, Go, Path string
		Kinds          []kind
		pkg            *load.Package
	}
	kind struct {
		Name, Plural, PluralGo string
		Namespaced             bool
		List                   bool            // its list type exists
		Can                    map[string]bool // verbs
		Apply                  string          // package of its apply configuration, "" if there is none
		Calls                  []call
		Imports                []imported // of the calls
	}
)

// Alias is the name under which files import the version's package.
func (v *version) Alias() string { return strings.ToLower(v.Group.Go) + v.Name }

// PackageName is the name of the package with the types.
func (v *version) PackageName() string { return v.pkg.Name }

// Client is the name of the version's client.
func (v *version) Client() string { return v.Group.Go + v.Go }

// Var is the name of a variable that holds the kind.
func (k kind) Var() string { return strings.ToLower(k.Name[:1]) + k.Name[1:] }

// Vars is the name of a variable that holds several.
func (k kind) Vars() string { return strings.ToLower(k.PluralGo[:1]) + k.PluralGo[1:] }

// Lists reports whether the client deals in lists.
func (k kind) Lists() bool { return k.Can["list"] || k.Can["deleteCollection"] }

// Generic is the part of the name of the generic client that says what it can do.
func (k kind) Generic() string {
	name := "Client"
	switch applies := k.Can["apply"] || k.Can["applyStatus"]; {
	case k.Lists() && applies:
		return name + "WithListAndApply"
	case k.Lists():
		return name + "WithList"
	case applies:
		return name + "WithApply"
	}
	return name
}

// Args are the type arguments of the generic client.
func (k kind) Args() string {
	args := "*api." + k.Name
	if k.Lists() {
		args += ", *api." + k.Name + "List"
	}
	if k.Can["apply"] || k.Can["applyStatus"] {
		args += ", *ac." + k.Name + "ApplyConfiguration"
	}
	return args
}

// Calling reports whether a method is of one of the verbs; without any, whether
// there are methods at all.
func (k kind) Calling(verbs ...string) bool {
	return slices.ContainsFunc(k.Calls, func(c call) bool { return len(verbs) == 0 || slices.Contains(verbs, c.Verb) })
}

// Configures reports whether the client names the package of apply configurations.
func (k kind) Configures() bool {
	return k.Can["apply"] || k.Can["applyStatus"] || slices.ContainsFunc(k.Calls, func(c call) bool { return strings.HasPrefix(c.In, "ac.") })
}
