// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package house_test

import (
	"go/build/constraint"
	"strings"
	"testing"
)

// portableTag selects on Linux the files that systems without one of their own are
// given, so that tests run them.
const portableTag = "portable"

// builtOnLinux reports whether the file is built on Linux, with tags.
func (f goFile) builtOnLinux(t *testing.T, tags ...string) bool {
	t.Helper()
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			if c.Pos() > f.syntax.Package || !constraint.IsGoBuild(c.Text) {
				continue
			}
			expr, err := constraint.Parse(c.Text)
			if err != nil {
				t.Fatalf("%s: %v", f.path, err)
			}
			return expr.Eval(func(tag string) bool {
				return strings.Contains(" linux unix "+strings.Join(tags, " ")+" ", " "+tag+" ")
			})
		}
	}
	return true
}

func TestEveryFileOfLinuxHasAPortableTwin(t *testing.T) {
	t.Parallel()
	all, err := parsed()
	if err != nil {
		t.Fatal(err)
	}
	byPath := map[string]goFile{}
	for _, f := range all {
		byPath[f.path] = f
	}
	for _, f := range all {
		var twin string
		if name, ok := strings.CutSuffix(f.path, "_linux.go"); ok {
			twin = name + "_other.go"
		} else if name, ok := strings.CutSuffix(f.path, "_linux_test.go"); ok {
			twin = name + "_other_test.go"
		} else {
			continue
		}
		other, ok := byPath[twin]
		if !ok {
			t.Errorf("%s: other systems have nothing in its place: add %s", f.path, twin)
			continue
		}
		if !f.builtOnLinux(t) || f.builtOnLinux(t, portableTag) {
			t.Errorf("%s: write //go:build !%s, so that the tag leaves it out", f.path, portableTag)
		}
		if other.builtOnLinux(t) || !other.builtOnLinux(t, portableTag) {
			t.Errorf("%s: write //go:build !linux || %s, so that the tag selects it", twin, portableTag)
		}
	}
}
