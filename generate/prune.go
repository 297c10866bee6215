// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generate

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Stale returns the files that an earlier run made and this one would not: their
// kinds, types, packages or markers are gone. Only files that say that they are
// generated count, in the directories where this run's outputs go, and roles and
// webhook configurations under the names and in the form that they are generated.
func (r *Result) Stale() ([]Change, error) {
	var stale []Change
	var failed []error
	consider := func(path string, generated func(text []byte) bool) {
		if slices.ContainsFunc(r.Files, func(f File) bool { return f.Path == path }) {
			return
		}
		text, err := os.ReadFile(path)
		if err == nil && generated(text) {
			stale = append(stale, Change{Path: path, Before: text})
		} else if err != nil && !os.IsNotExist(err) {
			failed = append(failed, err)
		}
	}
	seen := map[string]bool{}
	for _, l := range r.leftovers {
		if !seen[l.path] {
			seen[l.path] = true
			consider(l.path, l.left)
		}
	}
	for _, p := range r.searched() {
		k, _ := kindOf(p.generator)
		for _, pattern := range k.files {
			paths, err := filepath.Glob(filepath.Join(p.dir, pattern))
			failed = append(failed, err)
			for _, path := range paths {
				if !seen[path] {
					seen[path] = true
					consider(path, k.generated)
				}
			}
		}
	}
	return stale, errors.Join(failed...)
}

// outputPlace is a directory where outputs of a generator went or could have gone.
type outputPlace struct{ dir, generator string }

func (r *Result) searched() []outputPlace {
	all := slices.Clone(r.places)
	for _, file := range r.Files {
		if file.Path != "" {
			all = append(all, outputPlace{filepath.Dir(file.Path), file.Generator})
		}
	}
	slices.SortFunc(all, func(a, b outputPlace) int {
		return cmp.Or(strings.Compare(a.dir, b.dir), strings.Compare(a.generator, b.generator))
	})
	return slices.Compact(all)
}
