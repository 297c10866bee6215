// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explore_test

import (
	"strings"
	"testing"

	"github.com/steer-dev/steer/sim/internal/bugs"
	"github.com/steer-dev/steer/sim/internal/explore"
)

// TestRunFindsTheBugsAndAlarmsAtNoneThatIsMended explores small operators that work where
// nothing goes wrong.
func TestRunFindsTheBugsAndAlarmsAtNoneThatIsMended(t *testing.T) {
	t.Parallel()
	all := bugs.All()
	if raceDetector {
		all = all[:1]
	}
	for _, bug := range all {
		for name, mended := range map[string]bool{"mended": true, "with the bug": false} {
			t.Run(bug.Name+"/"+name, func(t *testing.T) {
				t.Parallel()
				r, err := explored(t, bug.Test(mended), explore.Options{Orders: 10})
				if err != nil {
					t.Fatal(err)
				}
				if mended == (len(r.Failures) > 0) {
					t.Errorf("%s: %d failures", bug.Shows, len(r.Failures))
				}
				for _, f := range r.Failures {
					if page := f.String(); !strings.Contains(page, bug.Finding) {
						t.Errorf("nothing says %q:\n%s", bug.Finding, page)
					}
				}
			})
		}
	}
}
