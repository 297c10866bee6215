// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The output of go list -deps -test for queue, whose test is in a package of its own, imports
// steertest, and embeds a file. Packages of other modules are left out.
const recordedList = `
{"ImportPath":"example.com/steer/client","Dir":"/m/client","Module":{"Path":"example.com/steer","Main":true},"GoFiles":["client.go"],"TestGoFiles":["client_test.go"],"EmbedFiles":["scheme.json"]}
{"ImportPath":"sort","Standard":true,"Dir":"/go/sort","GoFiles":["sort.go"]}
{"ImportPath":"example.com/steer/queue","Dir":"/m/queue","Module":{"Path":"example.com/steer","Main":true},"GoFiles":["queue.go"],"TestGoFiles":["queue_test.go"],"XTestGoFiles":["example_test.go"],"Deps":["sort"]}
{"ImportPath":"example.com/steer/queue [example.com/steer/queue.test]","Dir":"/m/queue","ForTest":"example.com/steer/queue","Module":{"Path":"example.com/steer","Main":true},"GoFiles":["queue.go","queue_test.go"],"Deps":["sort"]}
{"ImportPath":"example.com/steer/queue_test [example.com/steer/queue.test]","Dir":"/m/queue","ForTest":"example.com/steer/queue","Module":{"Path":"example.com/steer","Main":true},"GoFiles":["example_test.go"],"Deps":["sort","example.com/steer/client"]}
{"ImportPath":"example.com/steer/queue.test","Dir":"/m/queue","Module":{"Path":"example.com/steer","Main":true},"GoFiles":["/cache/_testmain.go"],"Deps":["sort","example.com/steer/client","example.com/steer/queue [example.com/steer/queue.test]","example.com/steer/queue_test [example.com/steer/queue.test]"]}
`

func TestPackagesAreReadFromGoList(t *testing.T) {
	t.Parallel()
	packages, err := readPackages([]byte(recordedList))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) != 1 {
		t.Fatalf("%d packages: that without a test binary is no package with tests", len(packages))
	}
	p := packages[0]
	if p.short() != "./queue" || strings.Join(p.own, " ") != "queue.go queue_test.go example_test.go" {
		t.Errorf("got %+v", p)
	}
	want := []string{"/m/client/client.go", "/m/client/scheme.json", "/m/queue/example_test.go", "/m/queue/queue.go", "/m/queue/queue_test.go"}
	if got := sorted(p.inputs); !slices.Equal(got, want) {
		t.Errorf("inputs: %v, want %v", got, want)
	}
}

func TestChangeReachesTestsThatItMayEndOtherwise(t *testing.T) {
	t.Parallel()
	packages, err := readPackages([]byte(recordedList))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]reach{
		"/m/queue/queue.go":              reachedItself,
		"/m/queue/example_test.go":       reachedItself,
		"/m/queue/gone_test.go":          reachedItself,
		"/m/queue/testdata/a/golden.txt": reachedItself,
		"/m/client/client.go":            reachedByDependency,
		"/m/client/scheme.json":          reachedByDependency,
		"/m/client/gone.go":              reachedByDependency,
		"/m/go.sum":                      reachedByDependency,
		"/m/client/client_test.go":       notReached,
		"/m/client/testdata/golden.txt":  notReached,
		"/m/queue/README.md":             notReached,
		"/m/manager/manager.go":          notReached,
		"/m/bench/go.mod":                notReached,
	} {
		if got := (change{"/m/docs/page.md", file}).reaches(packages[0], "/m"); got != want {
			t.Errorf("%s: %d, want %d", file, got, want)
		}
	}
}

func TestChangesAreThoseOfTheWorkTree(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	git := func(args ...string) {
		t.Helper()
		if _, err := output(t.Context(), dir, "git", append([]string{"-c", "user.name=x", "-c", "user.email=x"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "-q")
	for _, name := range []string{"same.go", "changed.go", "gone.go", "committed.go", ".gitignore"} {
		write(name, "package a\n")
	}
	write(".gitignore", "ignored.go\n")
	git("add", ".")
	git("commit", "-q", "-m", "one")
	write("committed.go", "package b\n")
	git("commit", "-q", "-a", "-m", "two")
	write("changed.go", "package b\n")
	write("new file.go", "package b\n")
	write("ignored.go", "package b\n")
	if err := os.Remove(filepath.Join(dir, "gone.go")); err != nil {
		t.Fatal(err)
	}
	got, err := changesSince(t.Context(), dir, "HEAD~1")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	var want []string
	for _, name := range []string{"changed.go", "committed.go", "gone.go", "new file.go"} {
		want = append(want, filepath.Join(dir, name))
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := changesSince(t.Context(), dir, "HEAD~7"); err == nil || !strings.Contains(err.Error(), "name a commit that this clone has") {
		t.Errorf("a commit that is not there: %v", err)
	}
}

func TestStartsNamesWhatStartsAndWhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"quiet.go": "package a\n\nimport \"time\"\n\nfunc f() { _ = time.Now(); x.Go() }\n",
		"a.go":     "package a\n\nimport h \"net/http\"\n\nfunc f() {\n\tgo g()\n\tgo g()\n\t_ = h.Serve(nil, nil)\n}\n",
		"a_test.go": "package a_test\n\nimport (\n\t\"net/http/httptest\"\n\n\t\"example.com/steer/queue\"\n\t\"example.com/steer/steertest\"\n)\n\n" +
			"func f() {\n\tqueue.New()\n\tsteertest.New()\n\t_ = httptest.NewServer(nil)\n\tgroup.Go(f)\n\t_ = httptest.NewRequest()\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := starts(&testedPackage{module: "example.com/steer", dir: dir, own: []string{"a.go", "a_test.go"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"go statement (2 times), first in a.go:6",
		"goroutine of a group, in a_test.go:14",
		"import of steertest, in a_test.go:7",
		"net/http.Serve, in a.go:8",
		"net/http/httptest.NewServer, in a_test.go:13",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, err := starts(&testedPackage{module: "example.com/steer", dir: dir, own: []string{"quiet.go"}}); err != nil || len(got) > 0 {
		t.Errorf("a package that starts nothing: %q, %v", got, err)
	}
}
