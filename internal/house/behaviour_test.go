// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what these tests compare with")

// TestBehaviourTableIsLive keeps the table of docs/behaviour.md equal
// to what the oracle's conversations and ledgers say.
func TestBehaviourTableIsLive(t *testing.T) {
	t.Parallel()
	pending, differs := countByConversation(t, "pending.txt"), countByConversation(t, "differences.txt")
	files, err := filepath.Glob("oracle/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no conversations: %v", err)
	}
	slices.Sort(files)
	var table strings.Builder
	table.WriteString("| area | requests | answered as kube-apiserver | differs on purpose | not yet |\n|---|---|---|---|---|\n")
	var sum [4]int
	row := func(name string, n [4]int) {
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d |\n", name, n[0], n[1], n[2], n[3])
	}
	for _, file := range files {
		text := readPaper(t, file)
		about, _, _ := strings.Cut(text, "\n")
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		n := [4]int{strings.Count(text, ".answer --\n"), 0, differs[name], pending[name]}
		n[1] = n[0] - n[2] - n[3]
		row(fmt.Sprintf("`%s`: %s", name, strings.TrimSuffix(uncapitalised(about), ".")), n)
		for i := range sum {
			sum[i] += n[i]
		}
	}
	row("all", sum)

	keepLive(t, "docs/behaviour.md", "behaviour", table.String())
}

// TestSuitesTableIsLive keeps the table of Kubernetes' own tests equal to their verdicts.
func TestSuitesTableIsLive(t *testing.T) {
	t.Parallel()
	verdicts := []string{"pass", "fail", "either", "skip", "n/a"}
	files, err := filepath.Glob("oracle/testdata/suites/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no suites: %v", err)
	}
	slices.Sort(files)
	var table strings.Builder
	table.WriteString("| suite | pass | fail | by what is faster | skip themselves | not applicable |\n|---|---|---|---|---|---|\n")
	sum := make([]int, len(verdicts))
	row := func(name string, n []int) {
		fmt.Fprintf(&table, "| %s | %d | %d | %d | %d | %d |\n", name, n[0], n[1], n[2], n[3], n[4])
	}
	for _, file := range files {
		n := make([]int, len(verdicts))
		for line := range strings.Lines(readPaper(t, file)) {
			verdict, _, _ := strings.Cut(line, " ")
			if i := slices.Index(verdicts, verdict); i >= 0 {
				n[i]++
				sum[i]++
			}
		}
		row("`"+strings.TrimSuffix(filepath.Base(file), ".txt")+"`", n)
	}
	row("all", sum)
	keepLive(t, "docs/behaviour.md", "suites", table.String())
}

// uncapitalised makes the beginning of a sentence the middle of one: a name that
// has further capitals keeps its first.
func uncapitalised(sentence string) string {
	word := sentence[:strings.IndexAny(sentence+" ", " :,")]
	if strings.ToLower(word[1:]) != word[1:] {
		return sentence
	}
	return strings.ToLower(sentence[:1]) + sentence[1:]
}

// countByConversation counts the lines "CONVERSATION/REQUEST ..." of a ledger.
func countByConversation(t *testing.T, ledger string) map[string]int {
	t.Helper()
	out := map[string]int{}
	for line := range strings.Lines(readPaper(t, "oracle/testdata/"+ledger)) {
		if name, _, ok := strings.Cut(line, "/"); ok && !strings.HasPrefix(line, "#") {
			out[name]++
		}
	}
	return out
}
