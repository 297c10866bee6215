// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sim

import "flag"

// Flags of go test: they must be there before it reads its arguments.
var (
	simFor    = flag.Duration("sim.for", 0, "run plans of simulations for so long; 0 runs all")
	simUpdate = flag.Bool("sim.update", false, "remove plans from testdata/sim whose writes are no longer there")
)

// runFlag is the -run of go test.
func runFlag() string {
	if f := flag.Lookup("test.run"); f != nil {
		return f.Value.String()
	}
	return ""
}
