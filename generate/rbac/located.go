// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"go/token"

	"github.com/steer-dev/steer/generate/load"
)

// Located is a marker with its place.
type Located struct {
	Pos token.Position
	// Groups, Resources, ResourceNames and Verbs are those of the marker, with the
	// core group as "".
	Groups, Resources, ResourceNames, Verbs []string
}

// Locate returns the markers of the roots in the order of the sources. Those for URLs
// are left out.
func Locate(p *load.Program) []Located {
	var found []Located
	for _, pkg := range p.Roots {
		for _, value := range p.PackageMarkers(pkg) {
			r, ok := value.Data.(rule)
			if !ok || len(r.Resources) == 0 {
				continue
			}
			found = append(found, Located{
				Pos: p.Fset.Position(value.Pos), Groups: split(r)[0].Groups,
				Resources: r.Resources, ResourceNames: r.ResourceNames, Verbs: r.Verbs,
			})
		}
	}
	return found
}
