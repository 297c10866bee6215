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
		Typed   bool   // client-go has typed informers
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

// one is a kind within its version, for templates.
type one struct {
	*version
	kind
}

// grouped is a group within its set, for templates.
type grouped struct {
	*set
	*group
}

func (s *set) member(name string) any {
	switch name {
	case "Package":
		return s.Package
	case "Typed":
		return s.Typed
	case "Groups":
		return list(s.Groups)
	}
	return nil
}

func (g *group) member(name string) any {
	switch name {
	case "Name":
		return g.Name
	case "Go":
		return g.Go
	case "Dir":
		return g.Dir
	case "Versions":
		return list(g.Versions)
	}
	return nil
}

func (v *version) member(name string) any {
	switch name {
	case "Set":
		return v.Set
	case "Group":
		return v.Group
	case "Name":
		return v.Name
	case "Go":
		return v.Go
	case "Path":
		return v.Path
	case "Kinds":
		return list(v.Kinds)
	case "Alias":
		return v.Alias()
	case "PackageName":
		return v.pkg.Name
	case "Client":
		return v.Client()
	}
	return nil
}

func (k kind) member(name string) any {
	switch name {
	case "Name":
		return k.Name
	case "Plural":
		return k.Plural
	case "PluralGo":
		return k.PluralGo
	case "Namespaced":
		return k.Namespaced
	case "List":
		return k.List
	case "Can":
		return k.Can
	case "Apply":
		return k.Apply
	case "Calls":
		return list(k.Calls)
	case "Imports":
		return list(k.Imports)
	case "Var":
		return k.Var()
	case "Vars":
		return k.Vars()
	case "Lists":
		return k.Lists()
	case "Generic":
		return k.Generic()
	case "Args":
		return k.Args()
	case "Calling":
		return question(k.Calling)
	case "Configures":
		return k.Configures()
	}
	return nil
}

// member tells V and K apart, which have some names in common; any other name is
// of one of them.
func (o one) member(name string) any {
	switch name {
	case "V":
		return o.version
	case "K":
		return o.kind
	}
	if found := o.kind.member(name); found != nil {
		return found
	}
	return o.version.member(name)
}

func (g grouped) member(name string) any {
	if found := g.set.member(name); found != nil {
		return found
	}
	return g.group.member(name)
}

// Alias is the name under which files import the version's package.
func (v *version) Alias() string { return strings.ToLower(v.Group.Go) + v.Name }

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
