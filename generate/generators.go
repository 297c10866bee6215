// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/steer-dev/steer/generate/apply"
	"github.com/steer-dev/steer/generate/client"
	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/object"
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
	// Lint records what is wrong with the named outputs.
	Lint(p *load.Program, outputs []string)
}

// leaver is a generator whose output does not say that it was generated.
type leaver interface {
	// Leftover is the name of its file, and whether a text can be what an
	// earlier run left there.
	Leftover() (name string, left func(text []byte) bool)
}

// newGenerator makes a generator of its options.
func newGenerator(name string, options any, mode Mode) generator {
	switch options := options.(type) {
	case crd.Options:
		return &crd.Generator{Options: options, Strict: mode == Steer}
	case schemapatch.Options:
		return &schemapatch.Generator{Options: options}
	case object.Options:
		return &object.Generator{Options: options}
	case apply.Options:
		return &apply.Generator{Options: options}
	case client.Options:
		return &client.Generator{Part: client.Part(name), Options: options}
	case rbac.Options:
		return &rbac.Generator{Options: options}
	case webhook.Options:
		return &webhook.Generator{Options: options}
	}
	panic(fmt.Sprintf("generate: no generator has options %T", options))
}

// markersOf returns the markers that a generator reads.
func markersOf(name string) []*markers.Definition {
	switch name {
	case "crd", "schemapatch":
		return crd.Markers()
	case "applyconfiguration":
		return apply.Markers()
	case "client", "lister", "informer", "register":
		return client.Markers()
	case "object":
		return object.Markers()
	case "rbac":
		return rbac.Markers()
	case "webhook":
		return webhook.Markers()
	}
	return nil
}

// names are the generators whose markers make up all there are.
func names() []string {
	return []string{"crd", "object", "rbac", "webhook", "applyconfiguration", "client"}
}

// wanted returns the generators that the markers in the roots ask for, with the
// options that kubebuilder projects give them.
func wanted(p *load.Program, dir string) []named {
	var found []named
	add := func(name string, options any) {
		found = append(found, named{name, newGenerator(name, options, Steer)})
	}
	for _, kind := range crd.Kinds(p) {
		if kind.Group != "" {
			add("crd", crd.Options{})
			break
		}
	}
	if object.Wanted(p) {
		add("object", object.Options{HeaderFile: boilerplate(dir)})
	}
	if rbac.Wanted(p) {
		add("rbac", rbac.Options{RoleName: managerRole})
	}
	if webhook.Wanted(p) {
		add("webhook", webhook.Options{})
	}
	if apply.Wanted(p) {
		add("applyconfiguration", apply.Options{HeaderFile: boilerplate(dir)})
	}
	if client.Wanted(p) {
		for _, part := range []client.Part{client.Register, client.Clients, client.Listers, client.Informers} {
			add(string(part), client.Options{HeaderFile: boilerplate(dir)})
		}
	}
	return found
}

// usual are the generators whose files may lie in a project when the markers decide
// which run.
func usual() []named {
	return []named{
		{"crd", newGenerator("crd", crd.Options{}, Steer)},
		{"object", newGenerator("object", object.Options{}, Steer)},
		{"register", newGenerator("register", client.Options{}, Steer)},
		{"rbac", newGenerator("rbac", rbac.Options{RoleName: managerRole}, Steer)},
		{"webhook", newGenerator("webhook", webhook.Options{}, Steer)},
	}
}

// managerRole is the name of the role in kubebuilder projects.
const managerRole = "manager-role"

// boilerplate is the licence header that kubebuilder projects keep for generated
// code, "" if there is none.
func boilerplate(dir string) string {
	file := filepath.Join(dir, "hack", "boilerplate.go.txt")
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	return file
}
