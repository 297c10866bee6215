// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package protobuf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/steer-dev/steer/generate/internal/generatetest"
	"github.com/steer-dev/steer/generate/protobuf"
)

// TestTypesOfKubernetesHaveTheirNumbers has the fields of the generated.proto of Kubernetes' packages
// equal to those that the generator makes of their Go types.
func TestTypesOfKubernetesHaveTheirNumbers(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	module, archive, want := strings.TrimSpace(string(out)), &txtar.Archive{}, map[string][]string{}
	for _, pkg := range []string{"apps/v1", "autoscaling/v2", "batch/v1", "coordination/v1", "core/v1", "networking/v1", "resource/v1", "storage/v1"} {
		for _, name := range []string{"doc.go", "types.go", "generated.proto"} {
			text, err := os.ReadFile(filepath.Join(module, pkg, name))
			if err != nil {
				t.Fatal(err)
			}
			archive.Files = append(archive.Files, txtar.File{Name: pkg + "/" + name, Data: text})
			if name == "generated.proto" {
				want["example.com/project/"+pkg] = declarations(text)
			}
		}
	}
	p := generatetest.Load(t, archive, protobuf.Markers())
	g := &protobuf.Generator{}
	g.Need(p)
	if err := p.Check(true); err != nil {
		t.Fatal(err)
	}
	outputs, err := g.Generate(p)
	if err != nil || len(p.Problems()) > 0 {
		t.Fatal(p.Problems(), err)
	}
	got := map[string][]string{}
	for _, output := range outputs {
		if output.Name == "generated.proto" {
			got[output.Package.Path] = declarations(output.Data)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if lines := len(want["example.com/project/core/v1"]); lines < 1000 {
		t.Errorf("core/v1 has %d lines only", lines)
	}
}

// declarations returns the fields of a generated.proto and what is reserved, each after the name
// of its message, in the order of the alphabet.
func declarations(text []byte) (lines []string) {
	message := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch first, _, _ := strings.Cut(line, " "); first {
		case "message":
			message = line
			lines = append(lines, message)
		case "optional", "repeated", "reserved", "map<string,":
			lines = append(lines, message+" "+line)
		}
	}
	slices.Sort(lines)
	return lines
}
