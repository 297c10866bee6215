// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package shrink

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/steer-dev/steer/sim/internal/plan"
)

func at(name string, nth int) plan.Write {
	return plan.Write{Verb: "create", Kind: "Secret", Namespace: "default", Name: name, Nth: nth}
}

// long is a plan of n faults that may all be left out.
func long(n int) plan.Plan {
	p := plan.Plan{Seed: 17}
	for i := range n {
		p.Faults = append(p.Faults, plan.Fault{Type: plan.CrashDuring, At: at(fmt.Sprint("s", i), 5)})
	}
	return p
}

// has reports whether a plan has a fault of one of the types at each of the Secrets.
func has(p plan.Plan, names ...string) bool {
	for _, name := range names {
		if !slices.ContainsFunc(p.Faults, func(f plan.Fault) bool { return f.At.Name == name }) {
			return false
		}
	}
	return true
}

func TestShrinkKeepsWhatIsNeeded(t *testing.T) {
	t.Parallel()
	restart := plan.Plan{Faults: []plan.Fault{{Type: plan.CrashBefore, At: at("a", 1)}, {Type: plan.CrashDuring, Restart: 3}}}
	for name, c := range map[string]struct {
		plan  plan.Plan
		fails func(plan.Plan) bool
		want  string
	}{
		"one of many": {long(40), func(p plan.Plan) bool { return has(p, "s23") }, "crash_after_create_Secret_s23"},
		"two of many": {
			long(40), func(p plan.Plan) bool { return has(p, "s3", "s31") }, "crash_after_create_Secret_s3_then_crash_after_create_Secret_s31",
		},
		"the order alone": {long(10), func(p plan.Plan) bool { return p.Seed == 17 }, "order_17"},
		"a small order":   {long(10), func(p plan.Plan) bool { return p.Seed > 1 }, "order_2"},
		"nothing":         {long(10), func(plan.Plan) bool { return true }, "reference"},
		"nothing simpler": {
			plan.Plan{Faults: []plan.Fault{{Type: plan.CrashBefore, At: at("a", 1)}}},
			func(p plan.Plan) bool { return has(p, "a") }, "crash_before_create_Secret_a",
		},
		"its type": {
			plan.Plan{Faults: []plan.Fault{{Type: plan.Conflict, At: at("a", 9)}}},
			func(p plan.Plan) bool {
				return has(p, "a") && p.Faults[0].Type == plan.Conflict && p.Faults[0].At.Nth > 1
			},
			"409_on_create_Secret_a#2",
		},
		"a write that is repeated": {
			plan.Plan{Faults: []plan.Fault{
				{Type: plan.InternalError, At: at("a", 1)}, {Type: plan.InternalError, At: at("b", 1)},
				{Type: plan.InternalError, At: at("a", 2)}, {Type: plan.CrashAfter, At: at("a", 3)},
			}},
			func(p plan.Plan) bool { // the crash happens after the errors before it
				n := 1
				for slices.Contains(p.Faults, plan.Fault{Type: plan.InternalError, At: at("a", n)}) {
					n++
				}
				return slices.Contains(p.Faults, plan.Fault{Type: plan.CrashAfter, At: at("a", n)})
			},
			"crash_after_create_Secret_a",
		},
		"within the restart": {
			restart, func(p plan.Plan) bool { return len(p.Faults) == 2 }, "crash_before_create_Secret_a_then_crash_after_restart#1",
		},
		"not without the crash": {
			restart, func(p plan.Plan) bool { return len(p.Faults) > 0 && p.Faults[len(p.Faults)-1].Restart == 3 },
			"crash_before_create_Secret_a_then_crash_after_restart#3",
		},
	} {
		got := Shrink(c.plan, 200, c.fails)
		if got.Plan.Name() != c.want || !got.Complete || got.Runs > 120 {
			t.Errorf("%s: %s after %d runs, complete: %t", name, got.Plan.Name(), got.Runs, got.Complete)
		}
	}
}

func TestShrinkIsBounded(t *testing.T) {
	t.Parallel()
	given := long(40)
	for _, runs := range []int{0, 1, 5, 20} {
		ran := 0
		got := Shrink(given, runs, func(p plan.Plan) bool { ran++; return has(p, "s3", "s31") })
		if ran > runs || got.Runs != ran || got.Complete {
			t.Errorf("%d of %d runs, %+v", ran, runs, got)
		}
		if !has(got.Plan, "s3", "s31") {
			t.Errorf("after %d runs a plan that passes: %s", runs, got.Plan.Name())
		}
	}
	if len(given.Faults) != 40 || given.Faults[3].Type != plan.CrashDuring || given.Seed != 17 {
		t.Error("the plan that was given is changed")
	}
}

// TestShrinkLeavesNoFaultThatCanGo answers at random, and checks what a complete result says.
func TestShrinkLeavesNoFaultThatCanGo(t *testing.T) {
	t.Parallel()
	for i := range uint64(200) {
		rnd := rand.New(rand.NewPCG(i, 0))
		given := long(1 + rnd.IntN(20))
		answers := map[string]bool{given.Name(): true}
		got := Shrink(given, 2000, func(p plan.Plan) bool {
			if _, ok := answers[p.Name()]; ok {
				t.Fatalf("%s is run twice", p.Name())
			}
			answers[p.Name()] = rnd.IntN(3) == 0
			return answers[p.Name()]
		})
		if !got.Complete || !answers[got.Plan.Name()] {
			t.Fatalf("%d: %+v", i, got)
		}
		for j := range got.Plan.Faults {
			less := plan.Plan{Seed: got.Plan.Seed, Faults: slices.Delete(slices.Clone(got.Plan.Faults), j, j+1)}
			if failed, ok := answers[less.Name()]; !ok || failed {
				t.Errorf("%d: %s is left, and %s was run: %t, and failed: %t", i, got.Plan.Name(), less.Name(), ok, failed)
			}
		}
	}
}
