// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold/project"
)

// TestServerIsMadeOfGoTypes: a second kind joins the server of the first, and the server
// goes with the last one. Definitions are generated for it, and none for clusters.
func TestServerIsMadeOfGoTypes(t *testing.T) {
	t.Parallel()
	dir := initialized(t, InitOptions{})
	before := tree(t, dir)
	add := func(gvk project.GVK) (*project.Report, error) {
		return CreateServer(t.Context(), ServerOptions{Dir: dir, GVK: gvk})
	}
	report, err := add(kindOf("notes", "v1", "Note"))
	want := []string{
		"api/notes/v1/groupversion_info.go", "api/notes/v1/note_types.go", "api/notes/v1/zz_generated.deepcopy.go",
		"cmd/server/definitions/notes.example.com_notes.yaml", "cmd/server/main.go", "cmd/server/main_test.go",
	}
	if err != nil || !slices.Equal(slices.DeleteFunc(report.Created, func(name string) bool { return name == "go.sum" }), want) {
		t.Fatalf("got %+v, %v", report, err)
	}
	report, err = add(kindOf("notes", "v1", "Topic"))
	want = []string{"api/notes/v1/topic_types.go", "cmd/server/definitions/notes.example.com_topics.yaml"}
	if err != nil || !slices.Equal(report.Created, want) || !slices.Contains(report.Changed, serverFile) {
		t.Errorf("a second kind: %+v, %v", report, err)
	}
	passes(t, dir, "./cmd/server")
	create(t, APIOptions{Dir: dir, GVK: guestbook("v1"), NoGenerate: true})
	for want, gvk := range map[string]project.GVK{
		"has CustomResourceDefinitions of webapp.example.com/v1": kindOf("webapp", "v1", "Note"),
		"PROJECT has notes/v1 Topic already":                     kindOf("notes", "v1", "Topic"),
		"a further version needs functions that convert":         kindOf("notes", "v2", "Topic"),
	} {
		if _, err := add(gvk); !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := CreateAPI(t.Context(), APIOptions{Dir: dir, GVK: kindOf("notes", "v1", "Page")}); !errors.Is(err, project.ErrUsage) || !strings.Contains(err.Error(), "serves notes.example.com/v1") {
		t.Errorf("a CRD of a version that is served: %v", err)
	}
	if names := tree(t, dir); names[project.CRDDir+"/notes.example.com_notes.yaml"] != "" || strings.Count(names[makeFile], "run-server:") != 1 {
		t.Errorf("the Makefile or the CRDs are not as they should be:\n%s", names[makeFile])
	}
	for _, kind := range []string{"Note", "Topic"} {
		if _, err := DeleteServer(t.Context(), DeleteOptions{Dir: dir, GVK: kindOf("notes", "v1", kind), Force: true}); err != nil {
			t.Fatal(err)
		}
		if kind == "Note" && runsProjects() {
			compiles(t, dir, "./cmd/server")
		}
	}
	if _, err := DeleteServer(t.Context(), DeleteOptions{Dir: dir, GVK: kindOf("notes", "v1", "Note")}); !errors.Is(err, project.ErrUsage) {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := DeleteAPI(t.Context(), DeleteOptions{Dir: dir, GVK: guestbook("v1"), Force: true}); err != nil {
		t.Fatal(err)
	}
	after := tree(t, dir)
	for _, name := range []string{modFile, sumFile} { // go mod tidy is the author's
		delete(before, name)
		delete(after, name)
	}
	if !maps.Equal(before, after) {
		t.Errorf("after all is removed: %v, before: %v", slices.Sorted(maps.Keys(after)), slices.Sorted(maps.Keys(before)))
	}
}
