// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what these tests compare with")

// TestBehaviourTableIsLive keeps the table "Behaviour" of ARCHITECTURE.md equal
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
	table.WriteString("| area | requests | answered as the real server | differs on purpose | not yet |\n|---|---|---|---|---|\n")
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
		row(fmt.Sprintf("`%s`: %s", name, strings.TrimSuffix(strings.ToLower(about[:1])+about[1:], ".")), n)
		for i := range sum {
			sum[i] += n[i]
		}
	}
	row("all", sum)

	paper := readPaper(t, "ARCHITECTURE.md")
	const begin, end = "<!-- behaviour -->\n", "<!-- /behaviour -->"
	head, rest, ok := strings.Cut(paper, begin)
	shown, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("ARCHITECTURE.md has no %s", strings.TrimSpace(begin))
	}
	if shown == table.String() {
		return
	}
	if !*update {
		t.Fatal("the table \"Behaviour\" of ARCHITECTURE.md is stale: go test . -run TestBehaviourTableIsLive -update")
	}
	if err := os.WriteFile("ARCHITECTURE.md", []byte(head+begin+table.String()+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
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
