// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs

import (
	"slices"
	"testing"
)

func TestIndexesAreWrittenShort(t *testing.T) {
	t.Parallel()
	for text, list := range map[string][]int{"": nil, "3": {3}, "0,1": {0, 1}, "0-2,4,6-8": {0, 1, 2, 4, 6, 7, 8}} {
		if got := formatIndexes(list); got != text {
			t.Errorf("%v is written as %q, want %q", list, got, text)
		}
		if got := parseIndexes(text); !slices.Equal(got, list) {
			t.Errorf("%q is read as %v, want %v", text, got, list)
		}
	}
}
