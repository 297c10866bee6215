// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/project"
)

// guestbook makes a project with one kind, in a repository of git.
func guestbook(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	_, checkout := command.Origin()
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}}); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}, {"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	return dir
}

// replace replaces a text in a file.
func replace(t *testing.T, file, old, now string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s lacks %q: %v", file, old, err)
	}
	if err := os.WriteFile(file, bytes.Replace(text, []byte(old), []byte(now), 1), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestLintAndTestReportDriftRightsAndBreakingChanges(t *testing.T) {
	t.Parallel()
	dir := guestbook(t)
	lint := func(against string, strict bool) (problems, notes string, err error) {
		var out, errs strings.Builder
		err = (&linter{dir: dir, out: &out, errs: &errs, against: against, strict: strict}).run(t.Context())
		return out.String(), errs.String(), err
	}
	if problems, notes, err := lint("HEAD", true); err != nil || problems != "" || !strings.Contains(notes, "run steer test first") {
		t.Fatalf("a new project: %q, %q, %v", problems, notes, err)
	}
	var errs strings.Builder
	if err := runTests(t.Context(), dir, nil, io.Discard, &errs); err != nil || !strings.Contains(errs.String(), "the tests used 5 of the 7 rights that the markers give") {
		t.Fatalf("the tests of a new project: %v, %s", err, errs.String())
	}
	if problems, notes, err := lint("HEAD", true); err != nil || problems+notes != "" {
		t.Fatalf("after its tests: %q, %q, %v", problems, notes, err)
	}

	// A run that fails has the status of go test, and leaves no rights behind.
	role := filepath.Join(dir, "config", "rbac", "role.yaml")
	replace(t, role, "  - watch\n", "")
	used := filepath.Join(dir, rightsFolder)
	kept := t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(used)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var exit *command.ExitError
	if err := runTests(t.Context(), dir, nil, &out, io.Discard); !errors.As(err, &exit) || exit.Status != 1 || !strings.Contains(out.String(), "lacks rules") {
		t.Errorf("tests that fail: got %v:\n%s", err, out.String())
	}
	if _, err := os.Stat(used); !os.IsNotExist(err) {
		t.Errorf("rights of tests that failed are kept: %v", err)
	}
	if err := os.CopyFS(used, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}

	controller := filepath.Join(dir, "internal", "controller", "guestbook_controller.go")
	replace(t, controller, "verbs=get;list;watch;patch", "verbs=get;list;patch;delete")
	replace(t, filepath.Join(dir, "api", "v1", "guestbook_types.go"), `json:"foo`, `json:"bar`)
	replace(t, filepath.Join(dir, "api", "v1", "guestbook_types.go"), "\tObservedGeneration", "\t// +kubebuilder:validation:Minimum=1\n\tObservedGeneration")
	problems, notes, err := lint("HEAD", false)
	if !errors.As(err, &exit) || exit.Status != command.DriftStatus || exit.Message != "5 problems" {
		t.Errorf("got %v", err)
	}
	for _, line := range []string{
		"guestbooks.yaml:1: it is not what the types and markers say; run: go tool steer generate",
		"config/rbac/role.yaml:1: it is not what the types and markers say; run: go tool steer generate",
		"guestbook_controller.go:22: the code declares to need watch guestbooks (webapp.example.com); add // +kubebuilder:rbac:",
		"api/v1/guestbook_types.go:6: guestbooks.webapp.example.com v1 spec.foo: the field is removed: it is pruned",
		"api/v1/guestbook_types.go:17: guestbooks.webapp.example.com v1 status.observedGeneration: minimum",
	} {
		if !strings.Contains(problems, line) {
			t.Errorf("%q is not reported:\n%s", line, problems)
		}
	}
	if !strings.Contains(notes, "guestbook_controller.go:19: no test used delete guestbooks (webapp.example.com)") {
		t.Errorf("what no test used is not noted:\n%s", notes)
	}
	if problems, _, _ := lint("", true); !strings.Contains(problems, "no test used delete") || strings.Contains(problems, "spec.foo") {
		t.Errorf("strict, and not against a revision:\n%s", problems)
	}
	if _, _, err := lint("no-such", false); !errors.As(err, &exit) || exit.Status != command.UsageStatus || !strings.Contains(exit.Message, `--against "no-such" is no revision`) {
		t.Errorf("a revision that does not exist: %v", err)
	}
}

func TestLintComparesWebhooksConversionsAndChildrenWithTheCode(t *testing.T) {
	t.Parallel()
	dir := guestbook(t)
	types := filepath.Join("api", "v1", "guestbook_types.go")
	replace(t, filepath.Join(dir, types), "// +kubebuilder:subresource:status\n", "// +kubebuilder:conversion:webhook\n")
	replace(t, filepath.Join(dir, types), "type Guestbook struct", "// +kubebuilder:webhook:path=/mutate-a,mutating=true,failurePolicy=fail,sideEffects=None,groups=webapp.example.com,resources=guestbooks,verbs=create,versions=v1,name=a.example.com,admissionReviewVersions=v1\n\n// Guestbook is one.\ntype Guestbook struct")
	controller := filepath.Join(dir, "internal", "controller", "guestbook_controller.go")
	text, err := os.ReadFile(controller)
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, "\ntype sets struct {\n\tpages controller.Children[*webappv1.Guestbook]\n}\n"...)
	if err := os.WriteFile(controller, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var exit *command.ExitError
	if err := (&linter{dir: dir, out: &out, errs: io.Discard}).run(t.Context()); !errors.As(err, &exit) || exit.Status != command.DriftStatus {
		t.Errorf("got %v", err)
	}
	for _, line := range []string{
		"api/v1/guestbook_types.go:30: Guestbook has a status without the subresource",
		"api/v1/guestbook_types.go:30: Guestbook is converted by a webhook that nothing serves",
		"api/v1/guestbook_types.go:27: API servers call /mutate-a, and nothing serves it",
		"no controller watches these children, so they are neither found nor followed; add controller.Owns[*webappv1.Guestbook]() to controller.Add",
	} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("%q is not reported:\n%s", line, out.String())
		}
	}
}

func TestTestArgumentsAreThoseOfGoTest(t *testing.T) {
	t.Parallel()
	const module = "example.com/guestbook"
	for _, test := range []struct {
		args, want string
		whole      bool
	}{
		{"", "-count=1 ./...", true},
		{"-race -v", "-race -v -count=1 ./...", true},
		{"-C . -race", "-C . -race -count=1 ./...", true},
		{"-coverprofile ./c.out", "-coverprofile ./c.out -count=1 ./...", true},
		{"-test.cpuprofile ./c.out", "-test.cpuprofile ./c.out -count=1 ./...", true},
		{"-coverprofile=./c.out", "-coverprofile=./c.out -count=1 ./...", true},
		{"-coverprofile ./c.out ./api/v1", "-coverprofile ./c.out ./api/v1", false},
		{"-run ./Scales", "-run ./Scales ./...", false},
		{"-count 3", "-count 3 ./...", true},
		{"-v -args -update ./testdata", "-v -count=1 ./... -args -update ./testdata", true},
		{"./api/v1 -args ./testdata", "./api/v1 -args ./testdata", false},
		{"-args -run ./testdata", "-count=1 ./... -args -run ./testdata", true},
		{"-run Scales", "-run Scales ./...", false},
		{"--run=Scales", "--run=Scales ./...", false},
		{"-short", "-short ./...", false},
		{"./internal/controller -v", "./internal/controller -v", false},
		{"example.com/guestbook/api/v1", "example.com/guestbook/api/v1", false},
		{"-timeout 5m", "-timeout 5m -count=1 ./...", true},
	} {
		got, whole := testArguments(slices.DeleteFunc(strings.Split(test.args, " "), func(s string) bool { return s == "" }), module)
		if strings.Join(got, " ") != test.want || whole != test.whole {
			t.Errorf("%s: got %v, %t", test.args, got, whole)
		}
	}
}
