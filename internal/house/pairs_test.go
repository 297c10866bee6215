// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"bufio"
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const pairsPaper = "internal/house/testdata/pairs.txt"

// pair is a fast path of the server and the plain path that it spares.
type pair struct {
	name string
	// fast are its files, and the functions that it begins with, as file.go:Function; a
	// function is all that belongs to it of a file that is not listed as well. plain is what
	// it leaves the rest to, a function or a library.
	fast  []string
	plain string
	// fuzz are the targets that compare the two, each as folder:FuzzName.
	fuzz []string
	// lines is how many its files and functions may have together.
	lines int
	// buys is what requests cost the server without it.
	buys string
}

// readPairs reads lines of "field: value", with an empty line between pairs. It also returns
// the comment that the list begins with.
func readPairs(t *testing.T, text string) (head string, pairs []pair) {
	t.Helper()
	p := pair{}
	for lines := bufio.NewScanner(strings.NewReader(text + "\n\n")); lines.Scan(); {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, "#"):
			head += line + "\n"
		case line == "" && p.name != "":
			pairs = append(pairs, p)
			p = pair{}
		case line == "":
		case field == "name":
			p.name = value
		case field == "fast":
			p.fast = strings.Fields(value)
		case field == "plain":
			p.plain = value
		case field == "fuzz":
			p.fuzz = strings.Fields(value)
		case field == "buys":
			p.buys = value
		case field == "lines":
			var err error
			if p.lines, err = strconv.Atoi(value); err != nil {
				t.Fatalf("%s: %s: %v", pairsPaper, line, err)
			}
		default:
			t.Fatalf("%s: %q is no field of a pair", pairsPaper, line)
		}
	}
	return head, pairs
}

func (p pair) String() string {
	return fmt.Sprintf("name: %s\nfast: %s\nplain: %s\nfuzz: %s\nlines: %d\nbuys: %s\n",
		p.name, strings.Join(p.fast, " "), p.plain, strings.Join(p.fuzz, " "), p.lines, p.buys)
}

// TestFastPathsAreListedWithTheirPlainPaths holds the list of fast paths and the code
// together. The functions that a fast path begins with have the directive //steer:fast and its
// name; files that import unsafe, functions named fast, and those whose comments tell that
// false leaves the rest to another path, belong to a pair.
func TestFastPathsAreListedWithTheirPlainPaths(t *testing.T) {
	t.Parallel()
	head, pairs := readPairs(t, readPaper(t, pairsPaper))
	found := pairProblems(filesByPath(t), lengths(t, pairs), pairs)
	if *update {
		var out strings.Builder
		out.WriteString(head)
		for _, p := range pairs {
			p.lines = p.together(lengths(t, pairs))
			out.WriteString("\n" + p.String())
		}
		if err := os.WriteFile(pairsPaper, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, problem := range found {
		t.Error(problem)
	}
}

// lengths are the lines of the files and functions of the fast paths.
func lengths(t *testing.T, pairs []pair) map[string]int {
	t.Helper()
	out, byPath := map[string]int{}, filesByPath(t)
	for _, p := range pairs {
		for _, place := range p.fast {
			file, function, _ := strings.Cut(place, ":")
			text, err := os.ReadFile(file)
			if err != nil || byPath[file] == nil {
				continue // which is said elsewhere
			}
			out[file] = bytes.Count(text, []byte("\n"))
			if fn := declaration(byPath[file], function); fn != nil {
				from := byPath[file].FileStart
				out[place] = bytes.Count(text[fn.Pos()-from:fn.End()-from], []byte("\n")) + 1
			}
		}
	}
	return out
}

// together is how many lines a fast path has.
func (p pair) together(lines map[string]int) (sum int) {
	for _, place := range p.fast {
		if file, function, _ := strings.Cut(place, ":"); function == "" || !slices.Contains(p.fast, file) {
			sum += lines[place]
		}
	}
	return sum
}

func pairProblems(byPath map[string]*ast.File, lines map[string]int, pairs []pair) (problems []string) {
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	listed, marked := map[string]bool{}, map[string]string{}
	for _, p := range pairs {
		for _, place := range append(slices.Clone(p.fast), p.plain) {
			file, function, _ := strings.Cut(place, ":")
			own := place != p.plain
			switch {
			case !own && !strings.Contains(place, ":"): // of a library
			case byPath[file] == nil:
				say("%s lists %s of %s, which does not exist", pairsPaper, file, p.name)
			case function != "" && !declares(byPath[file], function):
				say("%s lists %s of %s, which %s does not declare", pairsPaper, function, p.name, file)
			case own && function != "":
				marked[place] = p.name
			}
			listed[file] = listed[file] || own
		}
		if len(p.fuzz) == 0 || p.buys == "" || p.plain == "" || len(p.fast) == 0 {
			say("%s: %s needs a fast path, a plain path, a fuzz target that compares them, and what it buys", pairsPaper, p.name)
		}
		for _, target := range p.fuzz {
			folder, name, _ := strings.Cut(target, ":")
			if !hasTest(byPath, folder, name) {
				say("%s lists %s of %s, which does not exist", pairsPaper, target, p.name)
			}
		}
		if sum := p.together(lines); sum > p.lines {
			say("%s has %d lines, %d are listed: a fast path that grows has to be worth it; go test ./internal/house -run TestFastPathsAreListed -update", p.name, sum, p.lines)
		}
	}
	for _, file := range sortedKeys(byPath) {
		if strings.HasSuffix(file, "_test.go") || ast.IsGenerated(byPath[file]) {
			continue
		}
		inServer := strings.HasPrefix(file, "apiserver/") || strings.HasPrefix(file, "controlplane/")
		for _, spec := range byPath[file].Imports {
			if inServer && spec.Path.Value == `"unsafe"` && !listed[file] {
				say("%s imports unsafe, and is no part of a fast path that %s lists", file, pairsPaper)
			}
		}
		for _, decl := range byPath[file].Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			place, name := file+":"+nameOf(fn), directive(fn)
			if name != marked[place] {
				say("%s has the directive //steer:fast %q, and %s lists it as of %q", place, name, pairsPaper, marked[place])
			}
			if inServer && name == "" && !listed[file] && soundsFast(fn) {
				say("%s sounds like a fast path (its name says fast, or its comment tells what false leaves to another path): list its pair in %s, or say in the comment what it is", place, pairsPaper)
			}
		}
	}
	return problems
}

// nameOf is the name of a function, after that of its receiver.
func nameOf(fn *ast.FuncDecl) string {
	if receiver := receiverOf(fn); receiver != "" {
		return receiver + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// directive is the pair that a function is marked with.
func directive(fn *ast.FuncDecl) string {
	if fn.Doc == nil {
		return ""
	}
	for _, line := range fn.Doc.List {
		if name, ok := strings.CutPrefix(line.Text, "//steer:fast "); ok {
			return name
		}
	}
	return ""
}

// soundsFast reports whether a function says of itself that another path does the rest.
func soundsFast(fn *ast.FuncDecl) bool {
	results := fn.Type.Results
	if results == nil || len(results.List) == 0 {
		return false
	}
	if last, ok := results.List[len(results.List)-1].Type.(*ast.Ident); !ok || last.Name != "bool" {
		return false
	}
	about := strings.Join(strings.Fields(fn.Doc.Text()), " ")
	return regexp.MustCompile(`^[Ff]ast([A-Z]|$)|[a-z]Fast$`).MatchString(fn.Name.Name) ||
		regexp.MustCompile(`(?i)\bcertainly (valid|right|satisf|one|has|have)\b|\bfalse (means|does not mean)\b.*\b(library|libraries|parser|must be|decodes?)\b|\bleaves everything else to\b`).MatchString(about)
}

func hasTest(byPath map[string]*ast.File, folder, name string) bool {
	for file, syntax := range byPath {
		if path.Dir(file) == folder && strings.HasSuffix(file, "_test.go") && declares(syntax, name) {
			return true
		}
	}
	return false
}

// TestForgottenFastPathsAreNoticed holds the test above to the faults that it is for.
func TestForgottenFastPathsAreNoticed(t *testing.T) {
	t.Parallel()
	whole := pair{name: "a", fast: []string{"apiserver/a.go:Quick"}, plain: "apiserver/b.go:Slow", fuzz: []string{"apiserver:FuzzA"}, lines: 9, buys: "create 10 %"}
	const quick, unmarked, slow = "//steer:fast a\nfunc Quick() bool { return true }", "func Quick() bool { return true }", "package a\nfunc Slow() {}"
	for name, c := range map[string]struct {
		pair       pair
		quick, b   string
		fuzz, want string
	}{
		"whole":                   {whole, quick, slow, "FuzzA", ""},
		"a mark is missing":       {whole, unmarked, slow, "FuzzA", `directive //steer:fast ""`},
		"a pair is not listed":    {pair{}, quick, slow, "FuzzA", `lists it as of ""`},
		"the target is gone":      {whole, quick, slow, "FuzzB", "lists apiserver:FuzzA"},
		"the fast path is gone":   {whole, "", slow, "FuzzA", "lists Quick"},
		"the plain path is gone":  {whole, quick, "package a", "FuzzA", "lists Slow"},
		"unsafe beside":           {whole, quick, slow + "\n", "FuzzA", ""},
		"an unsafe file":          {whole, quick, "package a\nimport _ \"unsafe\"\nfunc Slow() {}", "FuzzA", "imports unsafe"},
		"one that says so":        {whole, quick, slow + "\nfunc fastName() bool { return true }", "FuzzA", "sounds like a fast path"},
		"one that leaves a rest":  {whole, quick, slow + "\n// take reads. false means that the library must read.\nfunc take() bool { return true }", "FuzzA", "sounds like a fast path"},
		"one that is no function": {whole, quick, slow + "\n// fasten reports whether it is closed.\nfunc fasten() bool { return true }", "FuzzA", ""},
	} {
		byPath := map[string]*ast.File{}
		for file, text := range map[string]string{"apiserver/a.go": "package a\n" + c.quick, "apiserver/b.go": c.b, "apiserver/a_test.go": "package a\nfunc " + c.fuzz + "() {}"} {
			byPath[file] = parseText(t, text)
		}
		var pairs []pair
		if c.pair.name != "" {
			pairs = append(pairs, c.pair)
		}
		got := strings.Join(pairProblems(byPath, map[string]int{"apiserver/a.go:Quick": 3}, pairs), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := pairProblems(map[string]*ast.File{}, map[string]int{"apiserver/a.go:Quick": 10}, []pair{whole}); !strings.Contains(strings.Join(got, "\n"), "has 10 lines, 9 are listed") {
		t.Errorf("a fast path that has grown: %q", got)
	}
}

func parseText(t *testing.T, text string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
