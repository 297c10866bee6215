// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// privateNames were exported once. The terms of Kubernetes that replaced them stand in
// docs/glossary.md, or need no entry there.
func privateNames() []string {
	return []string{
		"Rouse", "Touched", "Whatever", "Concerning", "Confine", "Repeater", "Alike", "Unserved",
		"Everywhere", "Measured", "VersionChanged", "Incumbent", "Peers", "RealServer",
		"Ownership", "Passage", "AsStored", "ShownRecords", "NormalizeApplied", "RecognisesObject", "ParsePlain", "DecodeStrictly",
	}
}

// privatePhrases are kept out of comments, messages and pages, with what to write
// in their place.
func privatePhrases() map[string]string {
	return map[string]string{
		"what is wrong with":   "validates, the errors of",
		"who asks":             "the caller",
		"tells whether":        "reports whether",
		"tells that":           "reports that, is set if",
		"tells of ":            "records an Event of, reports",
		"is heard of":          "reports, has reported",
		"not well":             "not ready, not healthy, fails",
		"looked at by whom":    "passed to its controller",
		"nothing is wrong":     "it is valid, it is healthy",
		"the incumbent":        "controller-runtime, kube-apiserver or upstream",
		"real server":          "kube-apiserver",
		"the reference server": "kube-apiserver",
		"in another coat":      "under another name",
		"nobody ":              "no client, no controller: who it is",
		"somebody ":            "a client, a user: who it is",
		"whoever ":             "the caller, the owner: who it is",
		"everybody ":           "all clients, all users: who they are",
		"anybody ":             "a client, a user: who it is",
	}
}

func TestWordsOfExportedNamesAreThoseOfKubernetes(t *testing.T) {
	t.Parallel()
	for _, f := range goFiles(t) {
		if f.generated() {
			continue
		}
		for _, id := range declaredNames(f.syntax) {
			if slices.Contains(privateNames(), id) {
				t.Errorf("%s declares %s: use the term of Kubernetes or Go", f.path, id)
			}
		}
	}
}

// declaredNames are the names of functions, methods, types, values, fields and
// interface methods that a file declares.
func declaredNames(file *ast.File) (names []string) {
	add := func(ids ...*ast.Ident) {
		for _, id := range ids {
			names = append(names, id.Name)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			add(n.Name)
		case *ast.TypeSpec:
			add(n.Name)
		case *ast.StructType:
			for _, field := range n.Fields.List {
				add(field.Names...)
			}
		case *ast.InterfaceType:
			for _, method := range n.Methods.List {
				add(method.Names...)
			}
		case *ast.GenDecl:
			for _, spec := range n.Specs {
				if value, ok := spec.(*ast.ValueSpec); ok && n.Tok != token.IMPORT {
					add(value.Names...)
				}
			}
		}
		return true
	})
	return names
}

// TestGlossaryOfTheServerHalfIsShort: a term that is ours is one more to learn, so that one
// that comes has to take the place of another.
func TestGlossaryOfTheServerHalfIsShort(t *testing.T) {
	t.Parallel()
	const most = 18
	_, half, found := strings.Cut(readPaper(t, "docs/glossary.md"), "\n## Server half\n")
	half, _, ends := strings.Cut(half, "\n## ")
	if rows := strings.Count(half, "\n| ") - 1; !found || !ends || rows > most || rows < 1 { // without the head of the table
		t.Errorf("docs/glossary.md has %d terms of the server half, at most %d: use the term of Kubernetes or of databases", rows, most)
	}
}

// TestWordsOfCommentsAndPagesArePlain reads every Go file and page but the changelog,
// the dated designs and this file.
func TestWordsOfCommentsAndPagesArePlain(t *testing.T) {
	t.Parallel()
	lineBreak := regexp.MustCompile(`\s*\n\s*(?://\s*)?`)
	for _, p := range tree(t) {
		if !strings.HasSuffix(p, ".go") && !strings.HasSuffix(p, ".md") || strings.Contains("/"+p, "/testdata/") ||
			p == "CHANGELOG.md" || p == "internal/house/words_test.go" || strings.HasPrefix(p, "docs/designs/") {
			continue
		}
		text := strings.ToLower(lineBreak.ReplaceAllString(readPaper(t, p), " "))
		for phrase, plain := range privatePhrases() {
			if i := strings.Index(text, phrase); i >= 0 && !strings.HasSuffix(text[:i], "http.") { // http.NoBody
				t.Errorf("%s says %q (...%s...): write plainly, such as %q", p, phrase, text[max(i-40, 0):min(i+len(phrase)+40, len(text))], plain)
			}
		}
	}
}
