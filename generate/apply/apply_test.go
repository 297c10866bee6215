// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/steer-dev/steer/generate/apply"
	"github.com/steer-dev/steer/generate/internal/generatetest"
	"github.com/steer-dev/steer/generate/markers"
)

func TestGeneratorPlaysScripts(t *testing.T) {
	t.Parallel()
	generatetest.Subject{
		Option:  markers.Define[apply.Options]("applyconfiguration", markers.Package, markers.Help{}),
		Markers: apply.Markers(),
		Methods: []string{"MarshalJSON", "MarshalText"},
		Update:  *update,
		New: func(options any, _ bool) generatetest.Generator {
			return &apply.Generator{Options: options.(apply.Options)}
		},
	}.Play(t)
}

func TestConfiguredNamesThePackageOfAKind(t *testing.T) {
	t.Parallel()
	const body = `package v1

// Thing is a kind.
// +kubebuilder:resource
type Thing struct{ A string }

// Asked is asked for.
// +kubebuilder:ac:generate=true
type Asked struct{ A string }

// Left is a kind without one.
// +kubebuilder:resource
// +kubebuilder:ac:generate=false
type Left struct{ A string }

// +genclient

// Tagged has a tag of the client generators above its comment.
type Tagged struct{ A string }

// Plain has no marker.
type Plain struct{ A string }
`
	const here = "example.com/project/api/v1/applyconfiguration/api/v1"
	for name, c := range map[string]struct {
		source string
		wanted bool
		want   map[string]string
	}{
		"package that does not ask": {source: body, want: map[string]string{"Thing": "", "Asked": "", "Left": "", "Tagged": "", "Plain": ""}},
		"package that asks": {
			source: "// +kubebuilder:ac:generate=true\n" + body, wanted: true,
			want: map[string]string{"Thing": here, "Asked": here, "Left": "", "Tagged": here, "Plain": ""},
		},
		"package with a place": {
			source: "// +kubebuilder:ac:generate=true\n// +kubebuilder:ac:output:package=../applied\n" + body, wanted: true,
			want: map[string]string{"Thing": "example.com/project/api/applied/api/v1", "Plain": ""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := generatetest.Load(t, &txtar.Archive{Files: []txtar.File{{Name: "api/v1/types.go", Data: []byte(c.source)}}}, apply.Markers())
			if got := apply.Wanted(p); got != c.wanted {
				t.Errorf("wanted is %v", got)
			}
			for name, want := range c.want {
				if got := apply.Configured(p, p.Roots[0].Decl(name)); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
		})
	}
}
