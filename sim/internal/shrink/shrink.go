// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shrink reduces a plan whose run fails to one that says no more than it must.
package shrink

import (
	"slices"

	"github.com/steer-dev/steer/sim/internal/plan"
)

// Result is what became of a plan.
type Result struct {
	// Plan is the simplest that was seen to fail; the one that was given if no other did.
	Plan plan.Plan
	// Runs is how many plans were tried.
	Runs int
	// Complete reports that no simpler plan is left to try, rather than that the runs were
	// used up.
	Complete bool
}

// seeds are the orders that are tried in place of a larger one.
const seeds = 4

// Shrink tries simpler plans in place of one that fails, at most so many runs: the order of
// the reference, fewer faults, a small seed, and for each fault the plain crash or error
// and the first of the writes that are the same. The function fails runs a plan and reports
// whether it fails in the same way; no plan is run twice, and none that is not valid.
//
// The result depends on the plan and the answers alone. If it is complete, each plan with
// one fault less passes.
func Shrink(p plan.Plan, runs int, fails func(plan.Plan) bool) Result {
	s := &shrinker{best: p, left: runs, fails: fails, tried: map[string]bool{p.Name(): true}}
	for {
		before := s.best.Name()
		s.order()
		s.faults()
		s.simpler()
		if s.best.Name() == before || s.left == 0 {
			return Result{s.best, runs - s.left, !s.cut}
		}
	}
}

type shrinker struct {
	best  plan.Plan
	left  int
	cut   bool // a plan was not tried because no run was left
	fails func(plan.Plan) bool
	tried map[string]bool
}

// try runs a plan, and keeps it if it fails.
func (s *shrinker) try(p plan.Plan) bool {
	if name := p.Name(); s.tried[name] || p.Validate() != nil {
		return false
	} else if s.left == 0 {
		s.cut = true
		return false
	} else {
		s.tried[name] = true
	}
	s.left--
	if !s.fails(p) {
		return false
	}
	s.best = p
	return true
}

// order tries that of the reference, then small seeds.
func (s *shrinker) order() {
	for seed := range min(s.best.Seed, seeds+1) {
		if s.try(plan.Plan{Seed: seed, Faults: s.best.Faults}) {
			return
		}
	}
}

// faults leaves out as many as can be at once: all, then halves, down to single ones.
func (s *shrinker) faults() {
	for size := len(s.best.Faults); size > 0; size = min(size/2, len(s.best.Faults)) {
		for at := 0; at < len(s.best.Faults); {
			end := min(at+size, len(s.best.Faults))
			left := slices.Delete(slices.Clone(s.best.Faults), at, end)
			if !s.try(s.with(left)) && !s.try(s.with(renumbered(left, s.best.Faults[at:end]))) {
				at = end
			}
		}
	}
}

// renumbered moves faults to the occurrence of their write before: a write that fails is
// repeated, and without the faults that made it fail it is not.
func renumbered(faults, without []plan.Fault) []plan.Fault {
	out := slices.Clone(faults)
	for i := range out {
		for _, f := range without {
			same := out[i].At
			if same.Nth = f.At.Nth; same == f.At && faults[i].At.Nth > f.At.Nth {
				out[i].At.Nth--
			}
		}
	}
	return out
}

func (s *shrinker) with(faults []plan.Fault) plan.Plan {
	if len(faults) == 0 {
		faults = nil
	}
	return plan.Plan{Seed: s.best.Seed, Faults: faults}
}

// simpler tries for each fault a type that is easier to explain, and an earlier write.
func (s *shrinker) simpler() {
	for i := range s.best.Faults {
		for _, t := range simplerTypes(s.best.Faults[i].Type) {
			if s.replace(i, func(f *plan.Fault) { f.Type = t }) {
				break
			}
		}
		for _, number := range []func(*plan.Fault) *int{
			func(f *plan.Fault) *int { return &f.At.Nth }, func(f *plan.Fault) *int { return &f.Restart },
		} {
			for n := 1; n < *number(&s.best.Faults[i]) && n <= 2; n++ {
				if s.replace(i, func(f *plan.Fault) { *number(f) = n }) {
					break
				}
			}
		}
	}
}

func (s *shrinker) replace(i int, change func(*plan.Fault)) bool {
	faults := slices.Clone(s.best.Faults)
	change(&faults[i])
	return s.try(s.with(faults))
}

// simplerTypes are those of the same effect that say less: a crash after the write, and
// the error 500.
func simplerTypes(t plan.FaultType) []plan.FaultType {
	switch t {
	case plan.CrashDuring:
		return []plan.FaultType{plan.CrashAfter}
	case plan.Conflict, plan.TooManyRequests, plan.TimeoutBefore:
		return []plan.FaultType{plan.InternalError}
	}
	return nil
}
