// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package bugs_test

import (
	"strings"
	"testing"

	"github.com/steer-dev/steer/sim/internal/bugs"
	"github.com/steer-dev/steer/sim/internal/ends"
	"github.com/steer-dev/steer/sim/internal/engine"
	"github.com/steer-dev/steer/sim/internal/plan"
	"github.com/steer-dev/steer/sim/internal/shrink"
)

// simulation is what is known of a test without faults.
type simulation struct {
	test      func(*testing.T)
	reference *ends.State
	masks     ends.Masks
	found     []string // without any fault
}

func simulate(t *testing.T, test func(*testing.T)) *simulation {
	t.Helper()
	first := engine.Run(t, test, plan.Plan{}, engine.Limits{})
	s := &simulation{test: test, reference: state(first)}
	if s.found = s.findings(first); len(s.found) > 0 {
		return s
	}
	var differ []ends.Difference
	s.masks, differ = ends.Learn(s.reference, state(engine.Run(t, test, plan.Plan{}, engine.Limits{})))
	if len(s.masks) > 0 || len(differ) > 0 {
		t.Fatalf("two runs without faults differ: %q, %v", s.masks.Paths(), differ)
	}
	return s
}

// run returns what a run of a plan shows.
func (s *simulation) run(t *testing.T, p plan.Plan) []string {
	t.Helper()
	return s.findings(engine.Run(t, s.test, p, engine.Limits{}))
}

func (s *simulation) findings(r engine.Record) (out []string) {
	if r.Trouble != nil {
		return []string{r.Trouble.Type + ": " + r.Trouble.Message}
	}
	end := state(r)
	for _, d := range ends.Compare(s.reference, end, s.masks) {
		out = append(out, d.String())
	}
	out = append(out, ends.Destroyed(s.reference, end, plan.Operator)...)
	out = append(out, ends.Leftovers(end, plan.Operator)...)
	return append(out, ends.Orphans(end)...)
}

// state is the end of a run.
func state(r engine.Record) *ends.State {
	var lives []ends.Life
	for _, l := range r.Lives {
		lives = append(lives, ends.Life{
			Object: l.Object, Created: int64(l.Created), Deleted: int64(l.Deleted), CreatedBy: l.CreatedBy, DeletedBy: l.DeletedBy,
		})
	}
	return ends.New(lives)
}

func TestLeftoversAreFoundWithoutAnyFault(t *testing.T) {
	t.Parallel()
	for _, mended := range []bool{true, false} {
		found := strings.Join(simulate(t, bugs.Leak().Test(mended)).found, "\n")
		if mended && found != "" || !mended && found != bugs.Leak().Finding {
			t.Errorf("mended: %t: %q", mended, found)
		}
	}
}

// TestPlansOfBugsAreShrunk gives a plan more faults than it needs.
func TestPlansOfBugsAreShrunk(t *testing.T) {
	t.Parallel()
	s := simulate(t, bugs.All()[0].Test(false))
	first := plan.Write{Actor: plan.Operator, Verb: "create", Kind: "Secret", Namespace: "default", Name: "db-ssl", Nth: 1}
	again, status := first, plan.Write{
		Actor: plan.Operator, Verb: "patch", Group: "bugs.example.com", Kind: "Database", Namespace: "default", Name: "db",
		SubResource: "status", Nth: 1,
	}
	again.Nth = 2
	given := plan.Plan{Seed: 3, Faults: []plan.Fault{
		{Type: plan.InternalError, At: first}, {Type: plan.CrashDuring, At: again}, {Type: plan.Conflict, At: status},
		{Type: plan.CrashAfter, Restart: 1},
	}}
	fails := func(p plan.Plan) bool {
		return strings.Contains(strings.Join(s.run(t, p), "\n"), bugs.All()[0].Finding)
	}
	if !fails(given) {
		t.Fatal("the plan shows nothing")
	}
	if got := shrink.Shrink(given, 50, fails); got.Plan.Name() != "crash_after_create_Secret_db-ssl" || !got.Complete {
		t.Errorf("shrunk to %s in %d runs, complete: %t", got.Plan.Name(), got.Runs, got.Complete)
	}
}
