// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"
)

// Seen is a write that a run has made.
type Seen struct {
	Write
	// Effective says that it changed something. A crash at a write that changes nothing is
	// one at the effective write before it.
	Effective bool
}

// Orders returns n plans without faults, each in another order than the reference.
func Orders(n int) []Plan {
	var out []Plan
	for i := range n {
		out = append(out, Plan{Seed: uint64(i) + 1})
	}
	return out
}

// Enumerate returns the plans that the writes of a reference give: one for each crash at
// each effective write, for each error at each write, and for a crash after each effective
// write that is followed by one after the first write of the restart. Writes of other
// actors than the operator have no faults. A write to the outside has no status; an
// InternalError is any error before it is done, and a TimeoutAfter any error after.
//
// The most telling come first, so that a run that is cut short has tried them: for writes
// that come first of their kind, in the order of a list of faults; then for those that
// repeat one. The order depends on the writes alone.
func Enumerate(seen []Seen) []Plan {
	type ranked struct {
		plan  Plan
		ranks [4]int
	}
	var all []ranked
	had := map[Write]bool{}
	for i, s := range seen {
		w := s.normal()
		if w.Actor != Operator || had[w] {
			continue
		}
		had[w] = true
		add := func(rank int, faults ...Fault) {
			all = append(all, ranked{Plan{Faults: faults}, [4]int{repeats(w.Nth), rank, verbRank(w), i}})
		}
		for rank, t := range telling() {
			if t.Crashes() && !s.Effective || !t.Crashes() && w.Verb == Outside && t != InternalError && t != TimeoutAfter {
				continue
			}
			add(rank, Fault{Type: t, At: w})
		}
		if s.Effective {
			add(len(telling()), Fault{Type: CrashAfter, At: w}, Fault{Type: CrashAfter, Restart: 1})
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return slices.Compare(a.ranks[:], b.ranks[:]) })
	out := make([]Plan, len(all))
	for i, r := range all {
		out[i] = r.plan
	}
	return out
}

// telling are the faults by what they have found in operators: those after a write that
// was done and before the next, then errors, then what mostly leaves the same state as one
// of those.
func telling() []FaultType {
	return []FaultType{
		CrashAfter, InternalError, TimeoutAfter, CrashBefore, CrashDuring, Conflict, TooManyRequests, TimeoutBefore,
	}
}

// repeats puts first writes before second ones, and those before all others: an operator
// that polls repeats one write many times.
func repeats(nth int) int { return min(nth, 3) }

// verbRank puts what makes and removes things before what changes them, and the status
// last.
func verbRank(w Write) int {
	if w.SubResource != "" {
		return 3
	}
	rank := map[string]int{"create": 1, Outside: 1, "delete": 1, "deletecollection": 1}
	return cmp.Or(rank[w.Verb], 2)
}
