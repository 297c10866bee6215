// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protobuf_test

import (
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/steer-dev/steer/generate/internal/generatetest"
	"github.com/steer-dev/steer/generate/markers"
	"github.com/steer-dev/steer/generate/protobuf"
)

func TestGeneratorPlaysScripts(t *testing.T) {
	t.Parallel()
	generatetest.Subject{
		Option:  markers.Define[protobuf.Options]("protobuf", markers.Package, markers.Help{}),
		Markers: protobuf.Markers(),
		Update:  *update,
		New: func(options any, _ bool) generatetest.Generator {
			return &protobuf.Generator{Options: options.(protobuf.Options)}
		},
	}.Play(t)
}

func TestWantedFollowsTheMarkers(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]bool{
		"package v1\n\ntype A struct{}":                                                                 false,
		"// +k8s:protobuf-gen=package\npackage v1\n\ntype A struct{}":                                   true,
		"// +k8s:protobuf-gen=package\npackage v1\n\ntype a struct{}":                                   false,
		"// +k8s:protobuf-gen=package\npackage v1\n\n// +protobuf=false\ntype A struct{}":               false,
		"// +k8s:protobuf-gen=package\npackage v1\n\n// +protobuf.nullable=true\ntype a []string":       false,
		"package v1\n\n// +protobuf=true\ntype A struct{}":                                              true,
		"// +k8s:deepcopy-gen=package\npackage v1\n\n// +kubebuilder:object:root=true\ntype A struct{}": false,
	} {
		p := generatetest.Load(t, &txtar.Archive{Files: []txtar.File{{Name: "types.go", Data: []byte(source + "\n")}}}, protobuf.Markers())
		if got := protobuf.Wanted(p); got != want {
			t.Errorf("wanted is %v for\n%s", got, source)
		}
	}
	p := generatetest.Load(t, &txtar.Archive{Files: []txtar.File{
		{Name: "types.go", Data: []byte("// +k8s:protobuf-gen=package\npackage v1\n\ntype A struct{}\n")},
		{Name: "generated.pb.go", Data: []byte("package v1\n")},
	}}, protobuf.Markers())
	if protobuf.Wanted(p) {
		t.Error("wanted beside the methods of go-to-protobuf")
	}
}
