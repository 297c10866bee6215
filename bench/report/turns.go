// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	"iter"
	"time"
)

// Turns counts the rounds in which the sides take turns, from 0: as many as are
// asked for, but none that would not end before the context does if it took as
// long as the longest so far. A group that is cut short notes it: its medians are
// of fewer values.
func (r *Report) Turns(ctx context.Context, group string, rounds int) iter.Seq[int] {
	return func(yield func(int) bool) {
		var longest time.Duration
		for round := range rounds {
			begin := time.Now()
			if deadline, limited := ctx.Deadline(); limited && begin.Add(longest+longest/10).After(deadline) {
				r.Note("%s: %d of %d rounds; another one would not have ended within the group's time", group, round, rounds)
				return
			}
			if !yield(round) {
				return
			}
			longest = max(longest, time.Since(begin))
		}
	}
}
