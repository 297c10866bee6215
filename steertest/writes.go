// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"strings"
)

// shownWrites is how many requests a failure lists.
const shownWrites = 10

// ExpectNoWrites fails the test when the operator writes although nothing is left
// to do: it waits until everything has settled, restarts the operator, waits until
// that has reconciled everything anew, and lists the requests, other than reads, that
// it has sent since. Events count; the lease of an operator that runs with --leader-elect, and
// the events about it, do not.
func (e *Env) ExpectNoWrites() {
	e.Helper()
	e.Settled()
	e.StopOperator()
	before := e.writes.Count()
	e.StartOperator()
	e.Settled()
	if more := e.writes.Since(before); len(more) > 0 {
		e.Errorf("steertest: writes of the operator after a restart, with nothing to do: %d\n  %s", len(more), strings.Join(more[:min(len(more), shownWrites)], "\n  "))
	}
}
