// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/steer-dev/steer/generate/apply"
	"github.com/steer-dev/steer/generate/client"
	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/object"
	"github.com/steer-dev/steer/generate/protobuf"
	"github.com/steer-dev/steer/generate/rbac"
	"github.com/steer-dev/steer/generate/schemapatch"
	"github.com/steer-dev/steer/generate/webhook"
)

// generator makes outputs of a program.
type generator interface {
	// Need asks the program for the types that Generate will look at.
	Need(p *load.Program)
	// Generate makes the outputs. Mistakes in the source are recorded in the
	// program; an error is about something else. It runs beside other
	// generators.
	Generate(p *load.Program) ([]load.Output, error)
}

// linter is a generator that can check its outputs more deeply than making them
// takes.
type linter interface {
	// Lint records the mistakes of the named outputs.
	Lint(p *load.Program, outputs []string)
}

// leaver is a generator whose output does not say that it was generated.
type leaver interface {
	// Leftover is the name of its file, and whether a text can be what an
	// earlier run left there.
	Leftover() (name string, left func(text []byte) bool)
}

// kind is what there is to know of a generator by its name. The list of [kinds] is
// the only one: the command line, the markers, what runs without a name and what is
// pruned are read from it.
type kind struct {
	name string
	// option is the generator with its options, on the command line.
	option *markers.Definition
	// make makes the generator of parsed options.
	make func(options any, mode Mode) generator
	// markers are those that the generator reads.
	markers func() []*markers.Definition
	// wanted reports whether the markers in the roots ask for the generator; nil for
	// one that runs only when it is named.
	wanted func(p *load.Program) bool
	// options are those that a kubebuilder project in dir gives it; only with wanted.
	options func(dir string) any
	// files are patterns for the names of its files that say that they are
	// generated, and generated reports whether a text says so.
	files     []string
	generated func(text []byte) bool
	// inPackages: the files lie beside the packages that they belong to.
	inPackages bool
	// leaves: files of earlier runs may lie in a project in which the markers do not
	// ask for it any more.
	leaves bool
}

// define makes a kind with options of type O.
func define[O any](k kind, summary string, build func(O, Mode) generator) kind {
	k.option = markers.Define[O](k.name, markers.Package, markers.Help{Summary: summary})
	k.make = func(options any, mode Mode) generator { return build(options.(O), mode) }
	return k
}

// kinds are all generators, in the order in which they run.
func kinds() []kind {
	all := []kind{
		define(kind{
			name: "crd", markers: crd.Markers, leaves: true,
			wanted: func(p *load.Program) bool {
				return slices.ContainsFunc(crd.Kinds(p), func(k crd.Kind) bool { return k.Group != "" })
			},
			options: func(string) any { return crd.Options{} },
			files:   []string{"*.yaml"}, generated: isDefinition,
		}, "CustomResourceDefinitions.", func(o crd.Options, mode Mode) generator {
			return &crd.Generator{Options: o, Strict: mode == Steer}
		}),
		define(kind{name: "schemapatch", markers: crd.Markers}, "Put schemas into definitions that are written by hand.",
			func(o schemapatch.Options, _ Mode) generator { return &schemapatch.Generator{Options: o} }),
		define(kind{
			name: "object", markers: object.Markers, wanted: object.Wanted, leaves: true,
			options: func(dir string) any { return object.Options{HeaderFile: boilerplate(dir)} },
			files:   []string{"zz_generated.deepcopy.go"}, generated: codeBy("controller-gen"), inPackages: true,
		}, "DeepCopy, DeepCopyInto and DeepCopyObject methods.", func(o object.Options, _ Mode) generator {
			return &object.Generator{Options: o}
		}),
		define(kind{
			name: "rbac", markers: rbac.Markers, wanted: rbac.Wanted, leaves: true,
			options: func(dir string) any { return rbac.Options{RoleName: managerRole, LeaderElection: elects(dir)} },
		}, "ClusterRoles and Roles.", func(o rbac.Options, _ Mode) generator { return &rbac.Generator{Options: o} }),
		define(kind{
			name: "webhook", markers: webhook.Markers, wanted: webhook.Wanted, leaves: true,
			options: func(string) any { return webhook.Options{} },
		}, "Mutating and validating webhook configurations.", func(o webhook.Options, _ Mode) generator {
			return &webhook.Generator{Options: o}
		}),
		define(kind{
			name: "applyconfiguration", markers: apply.Markers, wanted: apply.Wanted,
			options: func(dir string) any { return apply.Options{HeaderFile: boilerplate(dir)} },
			files:   []string{"*.go"}, generated: codeBy("controller-gen"),
		}, "Apply configurations, for server-side apply.", func(o apply.Options, _ Mode) generator {
			return &apply.Generator{Options: o}
		}),
		define(kind{
			name: "protobuf", markers: protobuf.Markers, wanted: protobuf.Wanted, leaves: true,
			options: func(dir string) any { return protobuf.Options{HeaderFile: boilerplate(dir)} },
			files:   []string{protobuf.CodeFile}, generated: codeBy(protobuf.Tool), inPackages: true,
		}, "Protobuf methods and generated.proto (not of controller-gen).", func(o protobuf.Options, _ Mode) generator {
			return &protobuf.Generator{Options: o}
		}),
	}
	for _, part := range []struct {
		part          client.Part
		summary, file string
	}{
		{client.Register, "Registration with a scheme (not of controller-gen).", "zz_generated.register.go"},
		{client.Clients, "Typed clients and fakes (not of controller-gen).", "*.go"},
		{client.Listers, "Listers (not of controller-gen).", "*.go"},
		{client.Informers, "Informers (not of controller-gen).", "*.go"},
	} {
		name := string(part.part)
		all = append(all, define(kind{
			name: name, markers: client.Markers, wanted: client.Wanted,
			options: func(dir string) any { return client.Options{HeaderFile: boilerplate(dir)} },
			files:   []string{part.file}, generated: codeBy(name + "-gen"),
			inPackages: part.part == client.Register, leaves: part.part == client.Register,
		}, part.summary, func(o client.Options, _ Mode) generator {
			return &client.Generator{Part: part.part, Options: o}
		}))
	}
	return all
}

// kindOf returns the generator of a name.
func kindOf(name string) (kind, bool) {
	all := kinds()
	i := slices.IndexFunc(all, func(k kind) bool { return k.name == name })
	if i < 0 {
		return kind{}, false
	}
	return all[i], true
}

// wanted returns the generators that the markers in the roots ask for, with the
// options that kubebuilder projects give them.
func wanted(p *load.Program, dir string) []named {
	var found []named
	for _, k := range kinds() {
		if k.wanted != nil && k.wanted(p) {
			found = append(found, named{k.name, k.make(k.options(dir), Steer)})
		}
	}
	return found
}

// leaving are the generators whose files may lie in a project when the markers decide
// which run.
func leaving() []named {
	var all []named
	for _, k := range kinds() {
		if k.leaves {
			all = append(all, named{k.name, k.make(k.options(""), Steer)})
		}
	}
	return all
}

// isDefinition reports whether a manifest is a generated CustomResourceDefinition.
func isDefinition(text []byte) bool {
	return bytes.Contains(text, []byte("\nkind: CustomResourceDefinition\n")) &&
		bytes.Contains(text, []byte("\n    controller-gen.kubebuilder.io/version: "))
}

// codeBy returns a function that reports whether Go code says that tool made it.
func codeBy(tool string) func(text []byte) bool {
	return func(text []byte) bool {
		return bytes.Contains(text[:min(len(text), 4096)], []byte("// Code generated by "+tool+". DO NOT EDIT.\n"))
	}
}

// managerRole is the name of the role in kubebuilder projects.
const managerRole = "manager-role"

// leanLayout is what PROJECT has of projects without manifests of their deployment.
const leanLayout = "lean.steer.dev/v1"

// elects reports whether the operator of dir takes part in a leader election for which no
// file gives it the rights: the manifests that deploy lean projects make it do so. Other
// layouts have config/rbac/leader_election_role.yaml.
func elects(dir string) bool {
	text, err := os.ReadFile(filepath.Join(dir, "PROJECT"))
	if err != nil || !bytes.Contains(text, []byte(leanLayout)) {
		return false
	}
	_, err = os.Stat(filepath.Join(dir, "config", "rbac", "leader_election_role.yaml"))
	return errors.Is(err, fs.ErrNotExist)
}

// boilerplate is the licence header that kubebuilder projects keep for generated
// code, "" if there is none.
func boilerplate(dir string) string {
	file := filepath.Join(dir, "hack", "boilerplate.go.txt")
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}
