// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/sim/internal/plan"
)

// loop finds writes that feed each other: virtual time stands still while they go on.
type loop struct {
	most    int
	instant time.Time
	times   map[plan.Write]int // since instant, whichever time they are
}

// turns notes an effective write of the operator, and reports whether it has been done too
// often at one instant.
func (l *loop) turns(now time.Time, w plan.Write) bool {
	if l.times == nil || !now.Equal(l.instant) {
		l.instant, l.times = now, map[plan.Write]int{}
	}
	w.Nth = 1
	l.times[w]++
	return l.times[w] > l.most
}

// busiest names the two writes that were done most often at the last instant.
func (l *loop) busiest() string {
	writes := slices.SortedFunc(maps.Keys(l.times), func(a, b plan.Write) int {
		if n := l.times[b] - l.times[a]; n != 0 {
			return n
		}
		return strings.Compare(a.String(), b.String())
	})
	var lines []string
	for _, w := range writes[:min(len(writes), 2)] {
		lines = append(lines, fmt.Sprintf("  %d times %s", l.times[w], w))
	}
	return strings.Join(lines, "\n")
}
