// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold/project"
)

// TestServerServesWhatItsDefinitionsSay: a second kind joins the server of the first.
func TestServerServesWhatItsDefinitionsSay(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "guestbook")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(t.Context(), InitOptions{Dir: dir, Domain: "example.com", Checkout: checkout(t)}); err != nil {
		t.Fatal(err)
	}
	add := func(gvk project.GVK) (*project.Report, error) {
		return CreateServer(t.Context(), ServerOptions{Dir: dir, GVK: gvk})
	}
	report, err := add(kindOf("notes", "v1", "Note"))
	if err != nil || !slices.Equal(report.Created, []string{"cmd/server/definitions/note.yaml", "cmd/server/main.go", "cmd/server/main_test.go"}) {
		t.Fatalf("got %+v, %v", report, err)
	}
	if report, err = add(kindOf("notes", "v1", "Topic")); err != nil || !slices.Equal(report.Created, []string{"cmd/server/definitions/topic.yaml"}) || len(report.Changed) > 0 {
		t.Errorf("a second kind: %+v, %v", report, err)
	}
	if _, err := add(kindOf("notes", "v1", "Topic")); err != nil {
		t.Errorf("the same kind again changes nothing, but: %v", err)
	}
	program(t, dir, "go", "vet", "./cmd/server")
	program(t, dir, "go", "test", "./cmd/server")
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	if _, err := add(kindOf("webapp", "v1", "Note")); !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), "has CustomResourceDefinitions of webapp.example.com/v1") {
		t.Errorf("a version that has CRDs: %v", err)
	}
	if makefile := tree(t, dir)[makeFile]; strings.Count(makefile, "run-server:") != 1 {
		t.Errorf("the Makefile has other targets than one run-server:\n%s", makefile)
	}
}
