// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package generator

import (
	"testing"
	"time"

	"github.com/steer-dev/steer/generate"
)

func TestARunOfGenerateEndsWithOneLine(t *testing.T) {
	t.Parallel()
	made := &generate.Result{Files: []generate.File{{Path: "/a"}, {Path: "/b"}, {Path: "/c"}, {Data: []byte("to standard output")}}}
	for want, changes := range map[string][]generate.Change{
		"steer: 1 file written, 2 unchanged (12.3ms)":             {{Path: "/a", After: []byte("a")}},
		"steer: 0 files written, 3 unchanged (12.3ms)":            nil,
		"steer: 2 files written, 1 unchanged, 1 removed (12.3ms)": {{Path: "/a", After: []byte("a")}, {Path: "/b", After: []byte("b")}, {Path: "/old"}},
	} {
		if got := summary(made, changes, 12345*time.Microsecond); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
