// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

const withOptIns = `
-- api/v1/types.go --
// +groupName=example.com
package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Thing is a thing.
// +kubebuilder:conversion:webhook:servicePort=8443
type Thing struct {
	metav1.TypeMeta   ` + "`json:\",inline\"`" + `
	metav1.ObjectMeta ` + "`json:\"metadata,omitempty\"`" + `
	Spec              Spec ` + "`json:\"spec\"`" + `
}

// Spec is what is wanted.
type Spec struct {
	Names  Optional[[]string]           ` + "`json:\"names\"`" + `
	Sizes  Optional[map[string]int32]   ` + "`json:\"sizes\"`" + `
	Nested Optional[Pair[string, Leaf]] ` + "`json:\"nested\"`" + `
	Env    corev1.EnvVarSource          ` + "`json:\"env\"`" + `
}

// Optional holds one or nothing.
type Optional[T any] struct {
	// Value is it.
	Value *T ` + "`json:\"value,omitempty\"`" + `
}

// Pair is a map and a list.
type Pair[K comparable, V any] struct {
	Map  map[K]V ` + "`json:\"map\"`" + `
	List []V     ` + "`json:\"list\"`" + `
}

// Leaf is at the end.
type Leaf struct {
	A string ` + "`json:\"a\"`" + `
}
`

// TestDefinitionsOfCustomAPIServersGoToTheirFolder: those of
// other packages do not.
func TestDefinitionsOfCustomAPIServersGoToTheirFolder(t *testing.T) {
	t.Parallel()
	dir := project(t, strings.ReplaceAll(withOptIns, "// +groupName=example.com\n", "// +groupName=example.com\n// +steer:definitions=cmd/server/definitions\n")+`
-- api/v2/types.go --
// +groupName=other.example.com
package v2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Other is a kind for clusters.
type Other struct {
	metav1.TypeMeta   `+"`json:\",inline\"`"+`
	metav1.ObjectMeta `+"`json:\"metadata,omitempty\"`"+`
}
`)
	got := map[string]bool{}
	for _, file := range run(t, dir, "crd").Files {
		name, err := filepath.Rel(dir, file.Path)
		if err != nil {
			t.Fatal(err)
		}
		got[filepath.ToSlash(name)] = file.Embedded
	}
	want := map[string]bool{"cmd/server/definitions/example.com_things.yaml": true, "config/crd/bases/other.example.com_others.yaml": false}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files, and whether they are embedded (-want +got):\n%s", diff)
	}
}

func TestOptInsBeyondControllerGen(t *testing.T) {
	t.Parallel()
	dir := project(t, withOptIns)
	result := run(t, dir, "crd:omitForeignDescriptions=true")
	if len(result.Files) != 1 {
		t.Fatalf("%d files", len(result.Files))
	}
	text := string(result.Files[0].Data)
	if !strings.Contains(text, "conversionReviewVersions:\n      - v1\n") || !strings.Contains(text, "port: 8443") {
		t.Errorf("no conversion stanza in\n%s", text)
	}
	if !strings.Contains(text, "Spec is what is wanted") || strings.Contains(text, "Selects a key") || strings.Contains(text, "APIVersion defines") {
		t.Errorf("foreign descriptions in\n%s", text)
	}
	var crd struct {
		Spec struct {
			Versions []struct {
				Schema struct {
					OpenAPIV3Schema struct {
						Properties map[string]struct{ Properties map[string]any }
					}
				}
			}
		}
	}
	if err := yaml.Unmarshal(result.Files[0].Data, &crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties
	for field, want := range map[string]string{
		"names": "description: Optional holds one or nothing.\nproperties:\n  value:\n    description: Value is it.\n    items:\n      type: string\n    type: array\ntype: object\n",
		"sizes": "description: Optional holds one or nothing.\nproperties:\n  value:\n    additionalProperties:\n      format: int32\n      type: integer\n    description: Value is it.\n    type: object\ntype: object\n",
	} {
		got, err := yaml.Marshal(spec[field])
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", field, diff)
		}
	}
	nested, err := yaml.Marshal(spec["nested"])
	if err != nil || strings.Count(string(nested), "description: Leaf is at the end.") != 2 {
		t.Errorf("%v\n%s", err, nested)
	}
}
