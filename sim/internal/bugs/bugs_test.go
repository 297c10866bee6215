// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs

import (
	"testing"
	"testing/synctest"
)

// TestOperatorsWorkWhereNothingGoesWrong is why their authors believe in them.
func TestOperatorsWorkWhereNothingGoesWrong(t *testing.T) {
	t.Parallel()
	for _, bug := range All() {
		for name, mended := range map[string]bool{"mended": true, "with the bug": false} {
			t.Run(bug.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { bug.Scenario(t, mended)() })
			})
		}
	}
}
