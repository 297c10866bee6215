// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"fmt"

	"github.com/steer-dev/steer/bench/report"
)

// expect sets the goals of the group.
func expect(out *report.Report, scale Scale) {
	times := func(name string, factor float64) { out.Expect(group, name, report.Goal{Times: factor}) }
	for _, name := range []string{"create", "update", "patch", "status", "delete"} {
		times(name+", 16 clients", 8)
	}
	times("get, 16 clients", 6)
	for _, name := range []string{"create", "get"} {
		times(name+", 16 clients, server CPU per request", 12)
	}
	times("apply, 16 clients", 5)
	for _, name := range []string{"list", "consistent list"} {
		times(fmt.Sprintf("%s of %d, 16 clients, median", name, scale.Objects), 8)
	}
	out.Expect(group, durabilityGoal, report.Goal{AtMost: 1})
	// What net/http leaves of an event: docs/designs/2026-11-22-http2.md.
	times("200 watchers: server CPU per event", 4)
	for _, watchers := range []int{20, 200} {
		times(fmt.Sprintf("%d watchers: lag p99", watchers), 5)
	}
}
