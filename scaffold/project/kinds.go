// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/module"
)

// External is where the Go types of a kind of another module are. The zero value is for kinds
// of k8s.io/api.
type External struct {
	// Path is that of the Go package.
	Path string
	// Domain follows the group of the kind in requests, with a dot between them.
	Domain string
	// Module has the package, as path@version. Default: what go mod tidy finds.
	Module string
}

// Resource is a kind as PROJECT says it.
func (e External) Resource(gvk GVK) (Resource, error) {
	name, version, versioned := strings.Cut(e.Module, "@")
	switch {
	case e.Path == "" && e != External{}:
		return Resource{}, Usagef("--external-api-path is missing: give the Go package that has %s", gvk.Kind)
	case e.Path != "" && module.CheckImportPath(e.Path) != nil:
		return Resource{}, Usagef("--external-api-path %q is no Go package: give one such as github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1", e.Path)
	case e.Domain != "" && !subdomain(e.Domain):
		return Resource{}, Usagef("--external-api-domain %q is no domain: give lower-case labels with dots between them, such as io", e.Domain)
	case e.Module != "" && (module.CheckPath(name) != nil || versioned && module.Check(name, version) != nil):
		return Resource{}, Usagef("--external-api-module %q is no module: give one such as github.com/cert-manager/cert-manager@v1.18.2", e.Module)
	case e.Path != "" && Qualified(gvk.Group, e.Domain) == "":
		return Resource{}, Usagef("--group is missing: give that of the kind")
	case e.Path != "":
		return Resource{External: true, Domain: e.Domain, Group: gvk.Group, Kind: gvk.Kind, Version: gvk.Version, Path: e.Path, Module: e.Module}, nil
	}
	domain, ok := BuiltinDomain(gvk.Group)
	if !ok {
		return Resource{}, Usagef("the project has no types of %s, and k8s.io/api has no group %q: make them with steer create api, or name the package that has them with --external-api-path", gvk, gvk.Group)
	}
	return Resource{
		Core: true, Domain: domain, Group: gvk.Group, Kind: gvk.Kind, Version: gvk.Version,
		Path: path.Join("k8s.io/api", gvk.Group, gvk.Version),
	}, nil
}

// ResourceOf returns the API group and the name of the resource of a Go type: one of
// the project, or of k8s.io/api. ok is false for other types.
func (p *Project) ResourceOf(importPath, kind string) (group, resource string, ok bool) {
	if i := slices.IndexFunc(p.Resources, func(r Resource) bool { return r.Path == importPath && r.Kind == kind }); i >= 0 {
		return p.Resources[i].APIGroup(), p.Resources[i].PluralName(), true
	}
	name, ok := strings.CutPrefix(importPath, "k8s.io/api/")
	if !ok {
		return "", "", false
	}
	folder, _, _ := strings.Cut(name, "/")
	domain, ok := BuiltinDomain(folder)
	if !ok {
		return "", "", false
	}
	r := Resource{Core: true, Domain: domain, Group: folder, Kind: kind}
	return r.APIGroup(), r.PluralName(), true
}
