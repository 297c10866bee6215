// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply_test

import (
	"sync"
	"testing"

	"golang.org/x/tools/txtar"
	"k8s.io/kube-openapi/pkg/schemaconv"

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

// A control plane of the same process searches in the types that all schemas share.
func TestGeneratingGoesOnBesideAControlPlane(t *testing.T) {
	t.Parallel()
	p := generatetest.Load(t, &txtar.Archive{Files: []txtar.File{{Name: "api/v1/types.go", Data: []byte(`// +kubebuilder:ac:generate=true
// +groupName=example.com
package v1

// Thing is a kind.
// +kubebuilder:resource
type Thing struct{ A string ` + "`json:\"a\"`" + ` }
`)}}}, apply.Markers())
	g := &apply.Generator{}
	g.Need(p)
	if err := p.Check(true); err != nil {
		t.Fatal(err)
	}
	shared, err := schemaconv.ToSchemaFromOpenAPI(nil, false)
	if err != nil || len(shared.Types) == 0 {
		t.Fatalf("%d types, %v", len(shared.Types), err)
	}
	var searching sync.WaitGroup
	defer searching.Wait()
	searching.Go(func() {
		for _, def := range shared.Types {
			def.Map.FindField("a") // makes an index of fields at the first search
		}
	})
	outputs, err := g.Generate(p)
	if err != nil || len(outputs) == 0 || len(p.Problems()) > 0 {
		t.Fatalf("%d outputs, %v, %v", len(outputs), err, p.Problems())
	}
}
