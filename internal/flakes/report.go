// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
)

// summary is what is recorded of some binaries.
type summary struct {
	packages []packageSummary // by path
	failures []failedRun      // in the order in which they happened
}

type packageSummary struct {
	path         string
	runs, loaded int
	failed       int // runs
	tests        map[string]*testSummary
}

// testSummary counts the runs of a test. It may end before it begins where a run fails before
// its turn, so that tests of one package have different numbers of runs.
type testSummary struct {
	runs, failed, skipped int
}

type failedRun struct {
	run     run
	failure failure
}

// summarize summarizes the runs of binaries.
func summarize(kept *results, hashes []string) *summary {
	s := &summary{}
	at := map[string]int{}
	for _, one := range kept.runs {
		if !slices.Contains(hashes, one.Binary) {
			continue
		}
		i, ok := at[one.Package]
		if !ok {
			i = len(s.packages)
			at[one.Package] = i
			s.packages = append(s.packages, packageSummary{path: one.Package, tests: map[string]*testSummary{}})
		}
		s.packages[i].count(one)
		for _, f := range one.Failed {
			s.failures = append(s.failures, failedRun{one, f})
		}
	}
	slices.SortFunc(s.packages, func(a, b packageSummary) int { return strings.Compare(a.path, b.path) })
	return s
}

func (p *packageSummary) count(one run) {
	test := func(name string) *testSummary {
		if p.tests[name] == nil {
			p.tests[name] = &testSummary{}
		}
		return p.tests[name]
	}
	p.runs++
	if one.Loaded {
		p.loaded++
	}
	for _, name := range one.Passed {
		test(name).runs++
	}
	for _, name := range one.Skipped {
		test(name).skipped++
	}
	if len(one.Failed) > 0 {
		p.failed++
	}
	for _, f := range one.Failed {
		t := test(f.Test)
		t.runs++
		t.failed++
	}
}

// print writes the summary and returns how many failures it has.
func (s *summary) print(out io.Writer, o options) int {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	rounds, loaded, tests := 0, 0, 0
	for _, p := range s.packages {
		rounds, loaded, tests = rounds+p.runs, loaded+p.loaded, tests+len(p.tests)
		for _, name := range sorted(p.tests) {
			t := p.tests[name]
			if t.failed == 0 && !o.all {
				continue
			}
			shown := name
			if shown == "" {
				shown = "(no test)"
			}
			fmt.Fprintf(table, "%s\t%s\t%d runs\t%d failed\t%d skipped\n", p.path, shown, t.runs, t.failed, t.skipped)
		}
	}
	_ = table.Flush()
	for _, f := range s.failures {
		fmt.Fprintf(out, "\n%s %s: %s, seed %d; again with\n  GOMAXPROCS=%d go test -race -count=1 -shuffle=%d -run '^%s$' %s\n",
			f.run.Package, f.failure.Test, f.run.condition, f.run.Seed, f.run.Processors, f.run.Seed, f.failure.Test, f.run.Package)
		f.failure.print(out)
	}
	fmt.Fprintf(out, "%d packages, %d tests, %d rounds, %d of them loaded, %d failures; recorded in %s\n",
		len(s.packages), tests, rounds, loaded, len(s.failures), filepath.ToSlash(o.results))
	return len(s.failures)
}

// print writes the output of a failure, indented.
func (f failure) print(out io.Writer) {
	for line := range strings.Lines(f.Output) {
		fmt.Fprint(out, "    ", line)
	}
	if !strings.HasSuffix(f.Output, "\n") {
		fmt.Fprintln(out)
	}
}

func sorted[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
