// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"strings"
	"testing"

	"github.com/steer-dev/steer/sim/internal/explore"
	"github.com/steer-dev/steer/sim/internal/plan"
)

// TestATestThatIsCutOffFailsWithItsPlans tells the deadline of go test, after which nothing is
// said, from a bound that was asked for.
func TestATestThatIsCutOffFailsWithItsPlans(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ended  error
		failed bool
	}{"-timeout": {errTimeout, true}, "-sim.for": {explore.ErrBounded, false}} {
		r := explore.Result{Runs: 12, Left: 30, Cut: []plan.Plan{{Seed: 7}}, Ended: test.ended}
		var o options
		o.summarize(r)
		text, failed := o.said("TestAShop", r)
		if failed != test.failed {
			t.Errorf("%s: failed: %t", name, failed)
		}
		for _, want := range []string{"TestAShop", "12 runs", "30 plans left out", "cut off: order_7"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: nothing says %q: %s", name, want, text)
			}
		}
	}
}
