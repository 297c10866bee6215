// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	folderRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	testName  = regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Za-z0-9_]+)`")
)

func readPaper(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestArchitectureAgreesWithTheTree(t *testing.T) {
	t.Parallel()
	paper := readPaper(t, "ARCHITECTURE.md")
	_, table, ok := strings.Cut(paper, "## Folders")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section \"Folders\"")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	var rows []string
	for _, m := range folderRow.FindAllStringSubmatch(table, -1) {
		rows = append(rows, m[1])
	}
	if len(rows) == 0 {
		t.Fatal("ARCHITECTURE.md lists no folder")
	}
	present := map[string]bool{}
	for _, p := range tree(t) {
		if top, rest, ok := strings.Cut(p, "/"); ok && rest != "" && !strings.HasPrefix(top, ".") && top != "testdata" {
			present[top] = true
		}
	}
	for dir := range present {
		if !slices.Contains(rows, dir) {
			t.Errorf("the folder %s is missing in ARCHITECTURE.md", dir)
		}
	}
	for _, row := range rows {
		if !present[row] {
			t.Errorf("ARCHITECTURE.md lists the folder %s, which does not exist", row)
		}
	}
}

// TestGuaranteesNameTestsThatExist keeps the promises of ARCHITECTURE.md tied
// to the tests that prove them.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	_, guarantees, ok := strings.Cut(readPaper(t, "ARCHITECTURE.md"), "## Guarantees")
	if !ok {
		t.Fatal("ARCHITECTURE.md has no section \"Guarantees\"")
	}
	guarantees, _, _ = strings.Cut(guarantees, "\n## ")
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, f := range all {
		for _, decl := range f.syntax.Decls {
			if name, ok := functionName(decl); ok {
				defined[name] = true
			}
		}
	}
	for line := range strings.SplitSeq(guarantees, "\n") {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		names := testName.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("this guarantee names no test: %s", line)
		}
		for _, m := range names {
			if !defined[m[1]] {
				t.Errorf("ARCHITECTURE.md names %s, which does not exist", m[1])
			}
		}
	}
}

// TestReadmeOperatorIsTheExample keeps the operator shown in the README equal
// to a program that is compiled and tested.
func TestReadmeOperatorIsTheExample(t *testing.T) {
	t.Parallel()
	_, rest, ok := strings.Cut(readPaper(t, "README.md"), "```go\n")
	if !ok {
		t.Fatal("README.md shows no Go code")
	}
	shown, _, _ := strings.Cut(rest, "```")
	source := readPaper(t, "examples/hello/main.go")
	_, body, ok := strings.Cut(source, "\npackage main\n")
	if !ok {
		t.Fatal("examples/hello/main.go: no package clause")
	}
	if want := "package main\n" + body; shown != want {
		t.Errorf("the operator in README.md differs from examples/hello/main.go; paste the file from its package clause on")
	}
}
