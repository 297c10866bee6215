// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/steer-dev/steer/generate/internal/generatetest"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/object"
)

func TestGeneratorPlaysScripts(t *testing.T) {
	t.Parallel()
	generatetest.Subject{
		Option:  markers.Define[object.Options]("object", markers.Package, markers.Help{}),
		Markers: object.Markers(),
		Methods: []string{"DeepCopy", "DeepCopyInto"},
		Update:  *update,
		New: func(options any, _ bool) generatetest.Generator {
			return &object.Generator{Options: options.(object.Options)}
		},
	}.Play(t)
}

func TestWantedFollowsTheMarkers(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"package v1\n\ntype A struct{}":                                                                              false,
		"// +kubebuilder:object:generate=true\npackage v1\n\ntype A struct{}":                                        true,
		"// +kubebuilder:object:generate=true\npackage v1\n\ntype a struct{}":                                        false,
		"// +kubebuilder:object:generate=true\npackage v1\n\ntype A[T any] struct{ V T }":                            false,
		"// +kubebuilder:object:generate=true\npackage v1\n\n// +kubebuilder:object:generate=false\ntype A struct{}": false,
		"// +k8s:deepcopy-gen=package,register\npackage v1\n\ntype A struct{}":                                       true,
		"package v1\n\n// +k8s:deepcopy-gen=true\ntype A struct{}":                                                   true,
		"package v1\n\n// +kubebuilder:object:root=true\ntype A struct{}":                                            true,
		"package v1\n\n// +kubebuilder:object:root=false\ntype A struct{}":                                           false,
	} {
		p := generatetest.Load(t, &txtar.Archive{Files: []txtar.File{{Name: "types.go", Data: []byte(source + "\n")}}}, object.Markers())
		if got := object.Wanted(p); got != want {
			t.Errorf("wanted is %v for\n%s", got, source)
		}
	}
}
