// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package plural makes the plurals of kinds, from which resources get their
// names: Policy becomes Policies, NetworkIndex becomes NetworkIndices. It is small and
// a package of its own because definitions (generate/crd) and clients
// (generate/client) have to agree on them.
//
// The name of a resource is part of its API, so the plurals are those that
// controller-gen takes from github.com/gobuffalo/flect v1.0.3, its oddities
// included. That library sorts its dictionary into lists before main, in every
// start of whatever links it; the tables here are searched where they lie. They
// were made by asking the library (TestTablesAreWhatTheLibraryAnswers), and the
// tests compare the two.
package plural

import (
	"cmp"
	_ "embed"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The tables have an entry a line, sorted: a key, and after a blank what becomes of
// it. A kind whose last part is a word alone on its line stays as it is.
var (
	//go:embed words.txt
	words string // whole parts of names
	//go:embed endings.txt
	endings string // the ends of parts; the longest counts
	//go:embed acronyms.txt
	acronyms string // parts of names although they are not written as such
)

// Of is the plural of a kind, in the kind's own spelling. The kind is a Go
// identifier; only its last part changes, where a part begins with an upper-case
// letter, after an underscore, or after an acronym.
//
// A file inflections.json in the working directory, or one that INFLECT_PATH
// names, changes the plurals of controller-gen, and not these: the path of a
// +kubebuilder:resource marker says another name for all tools.
func Of(kind string) string { return tables{words, endings, acronyms}.plural(kind) }

type tables struct{ words, endings, acronyms string }

func (t tables) plural(kind string) string {
	part := t.lastPart(kind)
	if part == "" {
		return ""
	}
	if to, ok := find(t.words, kind); ok {
		return cmp.Or(to, kind)
	}
	// An acronym in mixed case is no suffix of the kind: nothing is cut off then.
	stem := strings.TrimSuffix(kind, part)
	lower := strings.ToLower(part)
	if to, ok := find(t.words, lower); ok {
		switch {
		case to == "":
			return kind
		case part == capital(part):
			to = capital(to)
		}
		return stem + to
	}
	for i := range part {
		if to, ok := find(t.endings, part[i:]); ok {
			return stem + part[:i] + to
		}
	}
	if strings.HasSuffix(lower, "s") {
		return kind
	}
	return kind + "s"
}

// lastPart is the last of a name's parts; acronyms are in upper case.
func (t tables) lastPart(name string) string {
	if t.acronym(name) {
		return strings.ToUpper(name)
	}
	var last string
	begin := 0
	end := func(at int) {
		if part := strings.Trim(name[begin:at], "_"); part != "" {
			last = part
		}
		begin = at
	}
	previous := '_'
	for i, c := range name {
		if c == '_' || unicode.IsUpper(c) && (!unicode.IsUpper(previous) || t.acronym(name[begin:i])) {
			end(i)
		}
		previous = c
	}
	end(len(name))
	if t.acronym(last) {
		return strings.ToUpper(last)
	}
	return last
}

func (t tables) acronym(part string) bool {
	_, ok := find(t.acronyms, strings.ToUpper(part))
	return ok
}

// find looks up what becomes of a key; that is empty for a key alone. The lines are
// sorted by their keys, and comments come before all of them.
func find(table, key string) (to string, ok bool) {
	low, high := 0, len(table) // where lines begin
	for low < high {
		begin := low
		if at := strings.LastIndexByte(table[low:(low+high)/2], '\n'); at >= 0 {
			begin += at + 1
		}
		line, _, _ := strings.Cut(table[begin:high], "\n")
		name, to, _ := strings.Cut(line, " ")
		switch {
		case name == key:
			return to, true
		case name < key:
			low = begin + len(line) + 1
		default:
			high = begin
		}
	}
	return "", false
}

func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToTitle(r)) + s[size:]
}
