// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/sim/internal/plan"
)

var update = flag.Bool("update", false, "write the pages of testdata")

func create(name string) plan.Write {
	return plan.Write{Verb: "create", Kind: "Secret", Namespace: "default", Name: name, Nth: 1}
}

func polls(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("operator: patch Database.example.com/status default/db: step %d", i))
	}
	return out
}

func failures() map[string]Failure {
	status := plan.Write{Verb: "patch", Group: "example.com", Kind: "Database", Namespace: "default", Name: "db", SubResource: "status", Nth: 2}
	return map[string]Failure{
		"missing": {
			Verdict:  "the end is another than without faults: Secret default/db-ssl is missing",
			Findings: []string{"Secret default/db-ssl is missing: the reference has it", "Database.example.com default/db: status.ready is true: in the reference it is false"},
			Plan:     plan.Plan{Faults: []plan.Fault{{Type: plan.CrashAfter, At: create("db")}}}, ShrunkFrom: 3, ShrinkingRun: 12,
			Reference: []string{
				"user: create Database.example.com default/db", "operator: get Database.example.com default/db", "operator: get Secret default/db: 404",
				"operator: create Secret default/db", "operator: create Secret default/db-ssl", "operator: patch Database.example.com/status default/db",
			},
			Lines: []string{
				"user: create Database.example.com default/db", "operator: get Database.example.com default/db", "operator: get Secret default/db: 404",
				"operator: create Secret default/db: crash after", "operator: is started again", "operator: get Database.example.com default/db",
				"operator: get Secret default/db", "operator: patch Database.example.com/status default/db",
			},
			Faults: []int{3}, Test: "TestDatabase", Package: "./internal/controller",
			File: "testdata/sim/TestDatabase/crash_after_create_Secret_db.plan",
		},
		"long": {
			Verdict:  "the operator never settles: " + strings.Repeat("a long verdict ", 20),
			Findings: strings.Fields(strings.Repeat("finding ", 30)),
			Plan: plan.Plan{Seed: 3, Faults: []plan.Fault{
				{Type: plan.CrashDuring, At: create("a")}, {Type: plan.CrashBefore, Restart: 2}, {Type: plan.Conflict, At: status},
				{Type: plan.TimeoutAfter, At: plan.Write{Verb: plan.Outside, Name: "create volume", Nth: 1}},
				{Type: plan.TooManyRequests, At: plan.Write{Actor: "user", Verb: "delete", Kind: "Secret", Namespace: "default", Name: "a", Nth: 1}},
			}},
			Reference: polls(40), Lines: append(polls(20), strings.Fields(strings.Repeat("other ", 400))...), Faults: []int{10},
			Test: "TestDatabase/with[TLS]",
		},
		"end":       {Verdict: "the test fails", Plan: plan.Plan{Seed: 1}, Reference: polls(30), Lines: polls(30), Faults: []int{3}, Test: "TestDatabase"},
		"reference": {Verdict: "the test fails without faults", Test: "TestDatabase"},
	}
}

func TestPagesAreAsInTestdata(t *testing.T) {
	t.Parallel()
	for name, f := range failures() {
		path := filepath.Join("testdata", name+".txt")
		got := f.String()
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: go test ./sim/internal/report -update writes\n%s", path, got)
		}
		if n := strings.Count(got, "\n"); n > 66 {
			t.Errorf("%s has %d lines: that is more than a page", name, n)
		}
	}
}

// TestLinesOfBothRunsAreKept merges lists and takes them apart again.
func TestLinesOfBothRunsAreKept(t *testing.T) {
	t.Parallel()
	for _, c := range [][2]string{{"", ""}, {"a b c", "a b c"}, {"a b c", "a c"}, {"a c", "a b c"}, {"a b", "b a"}, {"", "x"}, {"a a b a", "b a a a"}} {
		a, b := strings.Fields(c[0]), strings.Fields(c[1])
		var left, right []string
		for _, r := range differences(a, b, func(i, j int) bool { return a[i] == b[j] }) {
			if r.mark != '+' {
				left = append(left, r.text)
			}
			if r.mark != '-' {
				right = append(right, r.text)
			}
		}
		if strings.Join(left, " ") != c[0] || strings.Join(right, " ") != c[1] {
			t.Errorf("%q: %q, %q", c, left, right)
		}
	}
}
