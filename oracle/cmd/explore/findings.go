// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// finding is an answer that is not that of kube-apiserver.
type finding struct {
	request   *request
	want, got string
}

// findings groups what differs.
type findings struct {
	alike, unanswered int
	sorts             map[string][]finding
}

func (f *findings) add(kind string, r *request, want, got string) {
	switch {
	case strings.HasPrefix(want, "(no answer"): // kube-apiserver fails over the request
		f.unanswered++
		return
	case want == got || unordered(want, got):
		f.alike++
		return
	}
	if f.sorts == nil {
		f.sorts = map[string][]finding{}
	}
	sort := kind + "\n" + varying.ReplaceAllString(difference(want, got), "_")
	f.sorts[sort] = append(f.sorts[sort], finding{r, want, got})
}

// unordered reports whether answers differ only in the order of the errors of map entries,
// which kube-apiserver iterates in any order.
func unordered(want, got string) bool {
	if w, g := untyped.FindString(want), untyped.FindString(got); w != "" && w == g {
		return true // it goes through fields in any order, up to the first that it does not know
	}
	x, y := lines(want), lines(got)
	if x == want || !ofMap.MatchString(x) || !ofMap.MatchString(y) {
		return false
	}
	return x == y || difference(sorted(want), sorted(got)) == "" // the message has an order of its own
}

// sorted puts the lines of an answer in order.
func sorted(text string) string {
	return strings.Join(slices.Sorted(strings.Lines(text)), "")
}

// untyped is the begin of an answer to an apply of what is not of its type.
var untyped = regexp.MustCompile(`failed to create typed patch object \([^)]*\)`)

var ofMap = regexp.MustCompile(`(?mi)^[^ ]*(labels|annotations|selector|requests|limits|capacity|allocatable|data|min|max|hard|default|defaultRequest|parameters|overhead|topology|spec\.metrics\[\d+\]\.\w+)(\[[^\n]*\])?: `)

// varying is what does not make another sort of difference: positions and values.
var varying = regexp.MustCompile(`\[\d+\]|"[^"]*"|'[^']*'|\d+`)

// print writes each sort, the most frequent first, with its shortest examples.
func (f *findings) print(w io.Writer, shown int) {
	sorts := slices.SortedFunc(maps.Keys(f.sorts), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(f.sorts[b]), len(f.sorts[a])), strings.Compare(a, b))
	})
	for _, sort := range sorts {
		all := f.sorts[sort]
		slices.SortStableFunc(all, func(a, b finding) int { return cmp.Compare(len(a.request.text()), len(b.request.text())) })
		kind, _, _ := strings.Cut(sort, "\n")
		fmt.Fprintf(w, "=== %s, %d times\n", kind, len(all))
		for _, example := range all[:min(shown, len(all))] {
			fmt.Fprintf(w, "changed: %s\n%s\n%s\n", strings.Join(example.request.how, "; "), example.request.text(), difference(example.want, example.got))
		}
	}
}

// lines are what an answer says, a line each: of a refusal its causes.
func lines(answer string) string {
	head, body, _ := strings.Cut(answer, "\n\n")
	var status struct {
		Details struct {
			Causes []struct{ Field, Message, Reason string }
		}
	}
	if yaml.Unmarshal([]byte(body), &status) != nil || len(status.Details.Causes) == 0 {
		return answer
	}
	text := head + "\n"
	for _, cause := range status.Details.Causes {
		text += cause.Field + ": " + strings.ReplaceAll(cause.Message, "\n", " ") + "\n"
	}
	return text
}

// difference lists the lines that only one side has: - those of kube-apiserver, + those
// of Steer. Order is left out: each line counts once.
func difference(want, got string) string {
	if x, y := lines(want), lines(got); x != y {
		want, got = x, y
	}
	count := map[string]int{}
	for line := range strings.Lines(want) {
		count[line]++
	}
	var more []string
	for line := range strings.Lines(got) {
		if count[line] > 0 {
			count[line]--
			continue
		}
		more = append(more, "+"+line)
	}
	var text strings.Builder
	for line := range strings.Lines(want) {
		if count[line] > 0 {
			count[line]--
			text.WriteString("-" + line)
		}
	}
	for _, line := range more {
		text.WriteString(line)
	}
	if text.Len() == 0 && want != got {
		return "-" + strings.ReplaceAll(want, "\n", "\n-") + "\n+" + strings.ReplaceAll(got, "\n", "\n+") + "\n"
	}
	return text.String()
}
