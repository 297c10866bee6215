// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"slices"
	"strings"
)

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
