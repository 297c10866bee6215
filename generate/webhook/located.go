// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"go/token"

	"github.com/steer-dev/steer/generate/load"
)

// Located is a marker of a webhook in the sources.
type Located struct {
	Pos token.Position
	// Path that the API server is to call, and whether the answer may change the object.
	Path     string
	Mutating bool
}

// Locate returns the markers of the roots in the order of the sources. Those with a URL
// are left out: what serves them is elsewhere.
func Locate(p *load.Program) []Located {
	var found []Located
	for _, pkg := range p.Roots {
		for _, marker := range p.PackageMarkers(pkg) {
			if h, ok := marker.Data.(hook); ok && h.URL == "" {
				found = append(found, Located{p.Fset.Position(marker.Pos), h.Path, h.Mutating})
			}
		}
	}
	return found
}
