// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/steer-dev/steer/internal/walkthrough"
)

// goBlock is a block of Go in a page. A file or a fragment is named in a comment above
// it: <!-- file: NAME --> or <!-- fragment: NAME -->.
var goBlock = regexp.MustCompile("(?s)(?:<!-- (file|fragment): ([a-z0-9_./]+) -->\n)?```go\n(.*?)```")

// TestCodeOfPagesCompiles compiles the blocks of Go of every page. A file belongs to a
// module of its own, which the step "fresh" of .ci/run makes of the page. Any other block
// with a package clause is a package. The rest are fragments: a fragment takes the place
// of the line "// FRAGMENT" in internal/house/testdata/fragments/NAME.go.txt.
func TestCodeOfPagesCompiles(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	played := playedPages(t)
	overlay := map[string]string{}
	packages := map[string]bool{}
	add := func(dir, code string) {
		on := filepath.Join(work, fmt.Sprintf("%d.go", len(overlay)))
		if err := os.WriteFile(on, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(root, "internal", "pages", dir, "page.go")] = on
		packages["./internal/pages/"+dir] = true
	}
	for _, page := range tree(t) {
		if !strings.HasSuffix(page, ".md") || strings.Contains("/"+page, "/testdata/") || page == "CHANGELOG.md" {
			continue
		}
		dir := strings.ToLower(strings.NewReplacer("/", "_", ".", "_", "-", "_").Replace(page))
		for i, m := range goBlock.FindAllStringSubmatch(readPaper(t, page), -1) {
			mark, name, code := m[1], m[2], m[3]
			switch {
			case mark == "file":
				if !slices.Contains(played, page) {
					t.Errorf("%s has the file %s: name the page in the step fresh of .ci/run, which builds it", page, name)
				}
			case strings.HasPrefix(code, "package "):
				add(fmt.Sprintf("%s_%d", dir, i), code)
			case mark == "fragment":
				template := readPaper(t, "internal/house/testdata/fragments/"+name+".go.txt")
				if !strings.Contains(template, "// FRAGMENT\n") {
					t.Fatalf("internal/house/testdata/fragments/%s.go.txt has no line // FRAGMENT", name)
				}
				add(fmt.Sprintf("%s_%d", dir, i), strings.Replace(template, "// FRAGMENT\n", code, 1))
			default:
				t.Errorf("%s: block %d of Go is no file: write <!-- fragment: NAME --> above it, and a template in internal/house/testdata/fragments", page, i+1)
			}
		}
	}
	if len(overlay) == 0 {
		t.Fatal("no page has a block of Go")
	}
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(work, "overlay.json")
	if err := os.WriteFile(file, replace, 0o600); err != nil {
		t.Fatal(err)
	}
	// Compiled, as by go build, and not linked.
	args := append([]string{"list", "-export", "-f", "{{.Name}}", "-overlay", file}, sortedKeys(packages)...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Errorf("the code of pages does not compile: %v\n%s", err, out)
	}
}

// playedPages are the pages of the step fresh of .ci/run.
func playedPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/guide/[0-9]*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no page of the guide: %v", err)
	}
	m := regexp.MustCompile(`for page in ([a-z ]+); do`).FindStringSubmatch(readPaper(t, ".ci/run"))
	if m == nil {
		t.Fatal("the step fresh of .ci/run names no page")
	}
	for _, page := range strings.Fields(m[1]) {
		pages = append(pages, "docs/"+page+".md")
	}
	return pages
}

// TestBlocksOfTheGuideArePlayed holds every block of the guide to be a file, an edit, a
// command that CI runs, a picture, or output that is marked as such.
func TestBlocksOfTheGuideArePlayed(t *testing.T) {
	t.Parallel()
	for _, page := range playedPages(t) {
		blocks, err := walkthrough.Read(page)
		if err != nil {
			t.Error(err)
			continue
		}
		pictures := 0
		for _, b := range blocks {
			switch {
			case b.Language == "mermaid":
				pictures++
			case b.Kind == walkthrough.Plain && strings.HasPrefix(page, "docs/guide/"):
				t.Errorf("%s:%d: CI plays nothing of this block: write above it what it is; see package walkthrough", page, b.Line)
			case b.Kind == walkthrough.Edit && b.Language != "diff":
				t.Errorf("%s:%d: an edit is a block of the language diff", page, b.Line)
			case b.Kind == walkthrough.Console && b.Language != "console", b.Kind == walkthrough.Terminal && b.Language != "console":
				t.Errorf("%s:%d: commands are a block of the language console", page, b.Line)
			}
		}
		if strings.HasPrefix(page, "docs/guide/") && pictures != 1 {
			t.Errorf("%s has %d pictures, want one", page, pictures)
		}
	}
}

// TestPagesShowTheNamesOfFiles holds every file and edit of a page to be named in the text
// above it: a reader does not see the comment that names it for CI.
func TestPagesShowTheNamesOfFiles(t *testing.T) {
	t.Parallel()
	for _, page := range playedPages(t) {
		blocks, err := walkthrough.Read(page)
		if err != nil {
			t.Error(err)
			continue
		}
		lines := strings.Split(readPaper(t, page), "\n")
		last, end := "", 0 // the file before, and the line where its block ends
		for _, b := range blocks {
			if b.Kind != walkthrough.File && b.Kind != walkthrough.Edit {
				continue
			}
			text := strings.Join(lines[end:b.Line-2], "\n") // not the comment above the fence
			if b.Name != last && !strings.Contains(text, "`"+b.Name+"`") {
				t.Errorf("%s:%d: the text above the block does not name %s", page, b.Line, b.Name)
			}
			last, end = b.Name, b.Line+len(b.Lines)+1
		}
	}
}

// TestGuideListsItsPages holds the list of the guide to its pages, and each page to name
// the one that follows it.
func TestGuideListsItsPages(t *testing.T) {
	t.Parallel()
	list := readPaper(t, "docs/guide/README.md")
	pages, err := filepath.Glob("docs/guide/[0-9]*.md")
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(pages, func(a, b string) int { return numberOf(a) - numberOf(b) })
	for i, page := range pages {
		name := filepath.Base(page)
		if want := fmt.Sprintf("| %d | [", numberOf(page)); !strings.Contains(list, want) || !strings.Contains(list, "]("+name+")") {
			t.Errorf("docs/guide/README.md has no row %q with a link to %s", want, name)
		}
		if i+1 < len(pages) && !strings.Contains(readPaper(t, page), "]("+filepath.Base(pages[i+1])+")") {
			t.Errorf("%s does not name the next page, %s", page, filepath.Base(pages[i+1]))
		}
	}
}

// numberOf is the number that the name of a page of the guide begins with, 0 if there is none.
func numberOf(page string) int {
	number, _, _ := strings.Cut(filepath.Base(page), "-")
	n, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return n
}
