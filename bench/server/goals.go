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
	times("apply, 16 clients", 5)
	for _, name := range []string{"list", "consistent list"} {
		times(fmt.Sprintf("%s of %d, 16 clients, median", name, scale.Objects), 8)
	}
	out.Expect(group, durabilityGoal, report.Goal{AtMost: 1})
	for _, watchers := range []int{20, 200} {
		who := fmt.Sprintf("%d watchers", watchers)
		times(who+": server CPU per event", 10)
		times(who+": lag p99", 5)
	}
}
