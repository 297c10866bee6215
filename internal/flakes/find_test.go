// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestMain makes this binary the program's own load, and a test2json that tells how it was
// called and then prints what was recorded.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 3 && os.Args[1] == loadCommand:
		if err := command(context.Background(), os.Args[1:], os.Stdout); err != nil {
			panic(err)
		}
		os.Exit(0)
	case len(os.Args) > 4 && os.Args[1] == "-t":
		recorded, err := os.ReadFile(os.Args[4])
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s in %s GOMAXPROCS=%s\n%s", strings.Join(os.Args[5:], " "), filepath.Base(os.Getenv("PWD")), os.Getenv("GOMAXPROCS"), recorded)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestRunIsInTheFolderOfThePackage(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := filepath.Abs(filepath.Join("testdata", "leak.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	r := &runner{test2json: self, goroot: "/go", timeout: time.Minute}
	b := &testBinary{pkg: &testedPackage{path: "example.com/counter", dir: "testdata"}, file: recorded, hash: "abc"}
	got, err := r.run(t.Context(), b, condition{Processors: 1}, 7)
	if err != nil {
		t.Fatal(err)
	}
	if got.Binary != "abc" || got.Package != "example.com/counter" || got.Seed != 7 || len(got.Passed) != 4 || len(got.Failed) != 1 {
		t.Errorf("got %+v", got)
	}
	want := "-test.v=test2json -test.paniconexit0 -test.timeout=1m0s -test.shuffle=7 in testdata GOMAXPROCS=1\n"
	if out := got.Failed[0].Output; !strings.HasPrefix(out, want) || !strings.HasSuffix(out, "exit status 1\n") {
		t.Errorf("called with %s, want %s", out, want)
	}
}

func TestLoadEndsWhenItIsStopped(t *testing.T) {
	t.Parallel()
	l, err := startLoad(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	l.stop()
	if state := l.process.ProcessState; state == nil || !state.Success() {
		t.Errorf("ended with %v, want its own end", state)
	}
}

// world is a hunt whose binaries and runs are made up.
type world struct {
	hunt
	output bytes.Buffer
	runs   []string
	hashes map[string]string
	fails  func(pkg string, round int) bool
	file   string
}

func newWorld(t *testing.T, file string, goals map[string]int) *world {
	t.Helper()
	w := &world{file: file, hashes: map[string]string{}, fails: func(string, int) bool { return false }}
	kept, err := openResults(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { kept.Close() })
	w.kept, w.out, w.results = kept, &w.output, "results.jsonl"
	for _, path := range sorted(goals) {
		w.todo = append(w.todo, &rounds{pkg: &testedPackage{path: path, module: "m"}, goal: goals[path]})
		w.hashes[path] = "hash of " + path
	}
	w.compile = func(_ context.Context, p *testedPackage) (*testBinary, error) {
		return &testBinary{pkg: p, hash: w.hashes[p.path]}, nil
	}
	w.run = func(_ context.Context, b *testBinary, c condition, seed int64) (run, error) {
		w.runs = append(w.runs, fmt.Sprintf("%s %v", b.pkg.path, c))
		one := run{Package: b.pkg.path, Binary: b.hash, condition: c, Seed: seed, outcome: outcome{Passed: []string{"TestOne", "TestTwo"}}}
		if w.fails(b.pkg.path, len(w.runs)) {
			one.outcome = outcome{Passed: []string{"TestOne"}, Failed: []failure{{Test: "TestTwo", Output: "got 1, want 2\n"}}}
		}
		return one, nil
	}
	return w
}

func TestHuntRunsEveryPackageUnderAllConditions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, filepath.Join(t.TempDir(), "results"), map[string]int{"m/a": 4, "m/b": 1})
	if err := w.hunt.hunt(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"m/a 2 processors, loaded", "m/b 2 processors, loaded", "m/a 1 processor", "m/a 1 processor, loaded", "m/a 2 processors"}
	if !slices.Equal(w.runs, want) {
		t.Errorf("got %q, want %q", w.runs, want)
	}
	if out := w.output.String(); !strings.Contains(out, "2 packages, 4 tests, 5 rounds, 3 of them loaded, 0 failures") {
		t.Error(out)
	}
}

func TestHuntGoesOnWhereItWasEnded(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results")
	ctx, cancel := context.WithCancel(t.Context())
	w := newWorld(t, file, map[string]int{"m/a": 4, "m/b": 2})
	w.fails = func(pkg string, n int) bool {
		if n == 3 {
			cancel()
		}
		return pkg == "m/b" && n == 2
	}
	plain := w.run
	w.run = func(ctx context.Context, b *testBinary, c condition, seed int64) (run, error) {
		one, _ := plain(ctx, b, c, seed)
		return one, ctx.Err()
	}
	if err := w.hunt.hunt(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want that a signal ended it", err)
	}
	// What was written last may be half a line.
	f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(`{"package":"m/a","bina`); err != nil {
		t.Fatal(err)
	}
	f.Close()

	w = newWorld(t, file, map[string]int{"m/a": 4, "m/b": 2})
	if err := w.hunt.hunt(t.Context()); !errors.Is(err, errFailed) {
		t.Fatalf("got %v, want the failure of before", err)
	}
	want := []string{"m/a 1 processor", "m/b 1 processor", "m/a 1 processor, loaded", "m/a 2 processors"}
	if !slices.Equal(w.runs, want) {
		t.Errorf("got %q, want the missing rounds %q", w.runs, want)
	}
	out := w.output.String()
	for _, want := range []string{"TestTwo  2 runs  1 failed", "again with\n  GOMAXPROCS=2 go test -race", "    got 1, want 2\n", "6 rounds, 3 of them loaded, 1 failures"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}

	// With other code nothing of that counts.
	w = newWorld(t, file, map[string]int{"m/a": 1, "m/b": 1})
	w.hashes["m/b"] = "another hash"
	if err := w.hunt.hunt(t.Context()); err != nil {
		t.Fatal(err)
	}
	if want := []string{"m/b 2 processors, loaded"}; !slices.Equal(w.runs, want) {
		t.Errorf("got %q, want %q", w.runs, want)
	}
}

func TestHuntPrintsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results")
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, file, map[string]int{"m/a": 2, "m/b": 2, "m/c": 2})
		w.within = 4 * time.Minute
		plain := w.run
		w.run = func(ctx context.Context, b *testBinary, c condition, seed int64) (run, error) {
			select {
			case <-time.After(90 * time.Second):
				return plain(ctx, b, c, seed)
			case <-ctx.Done():
				return run{}, ctx.Err()
			}
		}
		begin := time.Now()
		if err := w.hunt.hunt(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took != w.within {
			t.Errorf("ended after %v, want %v", took, w.within)
		}
		want := "what did not fit within 4m0s:\n  1 packages have no round: ./c\n  2 packages have some of their rounds: ./a (1 of 2), ./b (1 of 2)\n"
		if out := w.output.String(); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	})
}

func TestReportHasEveryTestOnDemand(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "results")
	w := newWorld(t, file, map[string]int{"m/a": 3})
	if err := w.hunt.hunt(t.Context()); err != nil {
		t.Fatal(err)
	}
	for all, want := range map[string]bool{"-all": true, "-all=false": false} {
		var out bytes.Buffer
		if err := command(t.Context(), []string{"report", "-results", file, all}, &out); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(out.String(), "TestOne  3 runs  0 failed  0 skipped"); got != want {
			t.Errorf("%s: %s", all, out.String())
		}
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(data), "TestOne"); n != 1 {
		t.Errorf("the names of the tests are written %d times:\n%s", n, data)
	}
}
