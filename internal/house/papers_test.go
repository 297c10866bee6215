// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	folderRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")
	link      = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`) // of a paper, to a file
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

// keepLive keeps a part of a paper, between <!-- name --> and <!-- /name -->, equal
// to what a test has worked out.
func keepLive(t *testing.T, paper, name, want string) {
	t.Helper()
	begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
	head, rest, begins := strings.Cut(readPaper(t, paper), begin)
	shown, tail, ends := strings.Cut(rest, end)
	switch {
	case !begins || !ends:
		t.Fatalf("%s has no part %q", paper, strings.TrimSpace(begin))
	case shown == want:
	case !*update:
		t.Fatalf("the part %q of %s is stale: go test ./internal/house -run %s -update", name, paper, t.Name())
	default:
		if err := os.WriteFile(paper, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDesignsAreListed keeps the list of designs in docs/README.md complete, the newest first.
func TestDesignsAreListed(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/designs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no designs: %v", err)
	}
	var list strings.Builder
	slices.Sort(pages)
	for _, page := range slices.Backward(pages) {
		_, title, ok := strings.Cut("\n"+readPaper(t, page), "\n# ")
		if !ok {
			t.Errorf("%s has no title", page)
		}
		title, _, _ = strings.Cut(title, "\n")
		base := filepath.Base(page)
		fmt.Fprintf(&list, "- %s: [%s](designs/%s)\n", base[:min(len("2006-01-02"), len(base))], title, base)
	}
	keepLive(t, "docs/README.md", "designs", list.String())
}

func TestLinksOfPapersLeadSomewhere(t *testing.T) {
	t.Parallel()
	fences := regexp.MustCompile("(?s)```.*?```|`[^`\n]*`")
	for _, p := range tree(t) {
		if !strings.HasSuffix(p, ".md") || strings.Contains("/"+p, "/testdata/") {
			continue
		}
		for _, m := range link.FindAllStringSubmatch(fences.ReplaceAllString(readPaper(t, p), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(p), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", p, m[1])
			}
		}
	}
}

func TestArchitectureAgreesWithTheTree(t *testing.T) {
	t.Parallel()
	paper := readPaper(t, "ARCHITECTURE.md")
	const most = 150 // lines: it is read whole, by who begins
	if lines := strings.Count(paper, "\n"); lines > most {
		t.Errorf("ARCHITECTURE.md has %d lines, at most %d: what is not folders and the two walks belongs to docs/inside.md", lines, most)
	}
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

// TestGuaranteesNameTestsThatExist keeps the promises of docs/guarantees.md tied
// to the tests that prove them.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	t.Parallel()
	const page = "docs/guarantees.md"
	defined, guarantees := definedTests(t), 0
	for line := range strings.SplitSeq(readPaper(t, page), "\n") {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		guarantees++
		names := testName.FindAllStringSubmatch(line, -1)
		if len(names) == 0 {
			t.Errorf("this guarantee names no test: %s", line)
		}
		for _, m := range names {
			if !defined[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
	}
	if guarantees == 0 {
		t.Errorf("%s lists no guarantee", page)
	}
}

// TestThreatsAreHeldByTestsThatExist does it for docs/threat-model.md, where every row of a
// table names a test, or says after "no test:" why there is none.
func TestThreatsAreHeldByTestsThatExist(t *testing.T) {
	t.Parallel()
	const page = "docs/threat-model.md"
	defined := definedTests(t)
	without := regexp.MustCompile(`\bno test: \w`)
	lines, rows := strings.Split(readPaper(t, page), "\n"), 0
	for i, line := range lines {
		names := testName.FindAllStringSubmatch(line, -1)
		for _, m := range names {
			if !defined[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
		}
		head := i+1 < len(lines) && strings.HasPrefix(lines[i+1], "|---")
		if head || !strings.HasPrefix(line, "| ") {
			continue
		}
		rows++
		if len(names) == 0 && !without.MatchString(line) {
			t.Errorf("%s: this row names no test, and does not say why: %s", page, line)
		}
	}
	if rows == 0 {
		t.Errorf("%s has no tables", page)
	}
}

// TestPapersSayOneThingAboutSeveralServers compares the sentence about their state.
func TestPapersSayOneThingAboutSeveralServers(t *testing.T) {
	t.Parallel()
	says := regexp.MustCompile("Several servers that share an etcd \\(`--etcd-servers`\\) are [^\n.]*\\.")
	want := says.FindString(readPaper(t, "docs/several-servers.md"))
	if want == "" {
		t.Fatalf("docs/several-servers.md has no sentence %s", says)
	}
	for _, page := range []string{"README.md", "SECURITY.md", "docs/threat-model.md"} {
		if got := says.FindString(readPaper(t, page)); got != want {
			t.Errorf("%s says %q, docs/several-servers.md %q", page, got, want)
		}
	}
}

// definedTests are the names of all functions in files of tests.
func definedTests(t *testing.T) map[string]bool {
	t.Helper()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	defined := map[string]bool{}
	for _, f := range all {
		if !strings.HasSuffix(f.path, "_test.go") {
			continue
		}
		for _, decl := range f.syntax.Decls {
			if name, ok := functionName(decl); ok {
				defined[name] = true
			}
		}
	}
	return defined
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

// TestChineseReadmeFollowsTheEnglish compares the headings of README.zh-CN.md, by level,
// and its blocks of code with those of README.md.
func TestChineseReadmeFollowsTheEnglish(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile("(?s)```.*?\n```")
	heading := regexp.MustCompile("(?m)^#+ ")
	parts := func(name string) (headings, blocks []string) {
		text := readPaper(t, name)
		blocks = block.FindAllString(text, -1)
		return heading.FindAllString(block.ReplaceAllString(text, ""), -1), blocks
	}
	headings, blocks := parts("README.md")
	itsHeadings, itsBlocks := parts("README.zh-CN.md")
	if !slices.Equal(headings, itsHeadings) {
		t.Errorf("README.zh-CN.md has the headings %q, README.md %q", itsHeadings, headings)
	}
	if len(blocks) != len(itsBlocks) {
		t.Fatalf("README.zh-CN.md has %d blocks of code, README.md %d", len(itsBlocks), len(blocks))
	}
	for i := range blocks {
		if blocks[i] != itsBlocks[i] {
			t.Errorf("block %d of README.zh-CN.md differs from that of README.md:\n%s", i+1, itsBlocks[i])
		}
	}
}
