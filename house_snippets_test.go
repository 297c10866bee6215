// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// goBlock is a block of Go in a page. A file or a fragment is named in a comment above
// it: <!-- file: NAME --> or <!-- fragment: NAME -->.
var goBlock = regexp.MustCompile("(?s)(?:<!-- (file|fragment): ([a-z0-9_./]+) -->\n)?```go\n(.*?)```")

// TestCodeOfPagesCompiles compiles the blocks of Go of every page. A file belongs to a
// module of its own, which the step "fresh" of .ci/run makes of the page. Any other block
// with a package clause is a package. The rest are fragments: a fragment takes the place
// of the line "// FRAGMENT" in testdata/house/fragments/NAME.go.txt.
func TestCodeOfPagesCompiles(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	var fresh []string // the pages of the step fresh
	if m := regexp.MustCompile(`for page in ([a-z ]+); do`).FindStringSubmatch(readPaper(t, ".ci/run")); m != nil {
		fresh = strings.Fields(m[1])
	}
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
				if !slices.Contains(fresh, strings.TrimSuffix(strings.TrimPrefix(page, "docs/"), ".md")) {
					t.Errorf("%s has the file %s: name the page in the step fresh of .ci/run, which builds it", page, name)
				}
			case strings.HasPrefix(code, "package "):
				add(fmt.Sprintf("%s_%d", dir, i), code)
			case mark == "fragment":
				template := readPaper(t, "testdata/house/fragments/"+name+".go.txt")
				if !strings.Contains(template, "// FRAGMENT\n") {
					t.Fatalf("testdata/house/fragments/%s.go.txt has no line // FRAGMENT", name)
				}
				add(fmt.Sprintf("%s_%d", dir, i), strings.Replace(template, "// FRAGMENT\n", code, 1))
			default:
				t.Errorf("%s: block %d of Go is no file: write <!-- fragment: NAME --> above it, and a template in testdata/house/fragments", page, i+1)
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
	args := append([]string{"build", "-o", os.DevNull, "-overlay", file}, sortedKeys(packages)...)
	if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
		t.Errorf("go build of the code of pages: %v\n%s", err, out)
	}
}
