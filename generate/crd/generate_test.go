// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd_test

import (
	"testing"

	"github.com/steer-dev/steer/generate/crd"
	"github.com/steer-dev/steer/generate/internal/generatetest"
	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/markers"
)

// linted is the generator as a strict run has it: what it makes is validated as the
// API server would.
type linted struct{ *crd.Generator }

func (g linted) Generate(p *load.Program) ([]load.Output, error) {
	outputs, err := g.Generator.Generate(p)
	var names []string
	for _, output := range outputs {
		names = append(names, output.Name)
	}
	if len(p.Problems()) == 0 { // else most of what it says would follow from them
		g.Lint(p, names)
	}
	return outputs, err
}

func TestGeneratorPlaysScripts(t *testing.T) {
	t.Parallel()
	generatetest.Subject{
		Option:  markers.Define[crd.Options]("crd", markers.Package, markers.Help{}),
		Markers: crd.Markers(),
		Methods: []string{"MarshalJSON", "MarshalText"},
		Update:  *update,
		New: func(options any, strict bool) generatetest.Generator {
			g := &crd.Generator{Options: options.(crd.Options), Strict: strict}
			if strict {
				return linted{g}
			}
			return g
		},
	}.Play(t)
}
