// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explore runs a test under all its plans, and tells which fail: the reference
// first, then other orders, then a crash or an error at every write of the reference.
package explore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/sim/internal/ends"
	"github.com/steer-dev/steer/sim/internal/engine"
	"github.com/steer-dev/steer/sim/internal/plan"
	"github.com/steer-dev/steer/sim/internal/report"
	"github.com/steer-dev/steer/sim/internal/shrink"
	"github.com/steer-dev/steer/sim/internal/worker"
)

// Options of [Run].
type Options struct {
	// Test is the name of the test, whose worker processes call worker.Serve.
	Test string
	// First are plans that are run before all others.
	First []plan.Plan
	// Wants reports whether a plan is to be run. nil: all are.
	Wants func(plan.Plan) bool
	// Orders is how many other orders are run.
	Orders int
	// Plans is how many plans of the reference are run at most; 0: all.
	Plans int
	// Accepts takes from the findings of a run those that are no faults. nil: none is.
	Accepts func(findings []string) []string
	// Shrinking is how many runs a failing plan may take to shrink.
	Shrinking int
	// Failures ends the exploration when so many different ones were found.
	Failures int
	// Stuck is for how long nothing may go on in a run.
	Stuck time.Duration
	// Limits of a run.
	Limits engine.Limits
	// For is how long it goes on, from when it has a place for a process; 0: until all plans
	// have run. Then the cause is [ErrBounded].
	For time.Duration
	// Notes is told what goes on. nil: none is.
	Notes Follower
	// Places for processes. nil: those that all explorations of this process share.
	Places *Places
}

// Follower is told what goes on in an exploration. Its methods are safe for concurrent use.
type Follower interface {
	// Plans is how many plans are to be run.
	Plans(n int)
	// Begins is called before a plan runs, and Over when its run has ended by itself.
	Begins(p plan.Plan)
	Over(p plan.Plan)
	// Found is called for each failure.
	Found(p plan.Plan)
}

// silent is a Follower that does nothing.
type silent struct{}

func (silent) Plans(int)        {}
func (silent) Begins(plan.Plan) {}
func (silent) Over(plan.Plan)   {}
func (silent) Found(plan.Plan)  {}

// ErrBounded is the cause of an end after Options.For.
var ErrBounded = errors.New("the time for plans is over")

// Result is what was found.
type Result struct {
	// Reference is the run without faults.
	Reference worker.Answer
	// Failures, each with another verdict or other findings than those before it.
	Failures []report.Failure
	// Repeats counts the plans that failed as one of them did.
	Repeats int
	// Runs is how many were made, Ran how many of the plans, Left how many plans were left out, and Cut those that were
	// cut off at the end of the time.
	Runs, Ran, Left int
	Cut             []plan.Plan
	// Ended is why it has ended early; nil if it has not.
	Ended error
	// Gone are those of Options.First whose writes are no longer there.
	Gone []plan.Plan
	// Masked are fields that are not compared since they differ between two runs of the
	// reference.
	Masked []string
}

// UnusableError says why a test cannot be explored.
type UnusableError struct{ Reason string }

func (e *UnusableError) Error() string { return e.Reason }

// exploration is a Run.
type exploration struct {
	Options
	pool   *pool
	judge  *judge
	result Result
	lines  []string // of the reference
	known  map[string]bool
}

// Run explores a test until ctx ends. It returns an [UnusableError] for a test that proves
// nothing.
func Run(ctx context.Context, o Options) (Result, error) {
	x := &exploration{Options: o, known: map[string]bool{}}
	x.Places, x.Notes = cmp.Or(o.Places, &places), cmp.Or[Follower](o.Notes, silent{})
	defer x.Places.share()()
	x.pool = &pool{test: o.Test, usual: worker.Request{Stuck: o.Stuck, Limits: o.Limits}, places: x.Places, notes: x.Notes}
	defer x.pool.close()
	if w, err := x.pool.get(ctx, true); err == nil {
		x.pool.put(w)
	} else if ctx.Err() == nil {
		return x.result, err
	}
	if o.For > 0 {
		bounded, cancel := context.WithTimeoutCause(ctx, o.For, ErrBounded)
		defer cancel()
		ctx = bounded
	}
	err := x.references(ctx)
	if err != nil || len(x.result.Failures) > 0 || x.result.Reference.Skipped {
		return x.result, err
	}
	if verdict, lines := newJudge(ends.New(nil), nil).alone(x.judge.reference); verdict != "" {
		if lines = x.accepted(lines); len(lines) > 0 {
			x.fail(plan.Plan{}, verdict, lines)
		}
	}
	err = x.explore(ctx, x.plans())
	x.result.Ended = context.Cause(ctx)
	return x.result, err
}

// plans are those to run: what failed before, other orders, and the plans of the reference.
func (x *exploration) plans() []plan.Plan {
	if x.Wants != nil {
		x.First = slices.DeleteFunc(slices.Clone(x.First), func(p plan.Plan) bool { return !x.Wants(p) })
	}
	faults := append(plan.Orders(x.Orders), plan.Enumerate(seen(x.result.Reference.Record))...)
	faults = slices.DeleteFunc(faults, func(p plan.Plan) bool {
		same := func(first plan.Plan) bool { return first.Name() == p.Name() }
		return x.Wants != nil && !x.Wants(p) || slices.ContainsFunc(x.First, same)
	})
	if most := x.Orders + x.Plans; x.Wants == nil && x.Plans > 0 && len(faults) > most {
		x.result.Left += len(faults) - most
		faults = faults[:most]
	}
	return slices.Concat(x.First, faults)
}

// references runs the test as it is, in two processes and again in one of them.
func (x *exploration) references(ctx context.Context) error {
	var runs [3]worker.Answer
	var states [3]*ends.State
	for i := range runs {
		// The second is made in another process, the third in one that has made a run.
		a, err := x.pool.run(ctx, plan.Plan{}, i == 1, true)
		if ctx.Err() != nil {
			return &UnusableError{"there was no time to run the test as it is, without any fault: see -sim.for and -timeout"}
		}
		if err != nil {
			return err
		}
		x.result.Runs++
		if i == 0 {
			x.result.Reference = a
			x.lines, _ = linesOf(a.Record)
		}
		if a.Skipped {
			return nil
		}
		if a.Trouble != nil && a.Trouble.Type == engine.NeverSettles {
			x.fail(plan.Plan{}, a.Trouble.Type, strings.Split(a.Trouble.Message, "\n"))
			return nil
		}
		if i == 0 {
			if err := usable(a); err != nil {
				return err
			}
		}
		runs[i], states[i] = a, stateOf(a.Record)
	}
	masks, different := ends.Learn(states[0], states[1])
	x.result.Masked = masks.Paths()
	x.judge = newJudge(states[0], masks)
	x.compare(runs, different)
	return nil
}

// compare looks for what differs between three runs of the reference.
func (x *exploration) compare(runs [3]worker.Answer, different []ends.Difference) {
	switch first, again := difference(runs[0], runs[1]), difference(runs[0], runs[2]); {
	case first != "":
		x.fail(plan.Plan{}, "not deterministic: the same run in two processes is not the same", strings.Split(first, "\n"))
	case len(different) > 0:
		x.fail(plan.Plan{}, "not deterministic: the same run in two processes ends differently", texts(different))
	case again != "":
		x.fail(plan.Plan{}, "state of a package survives a run: the next one in its process is not the same", strings.Split(again, "\n"))
	}
}

// difference tells where two runs of one plan differ first; "" if nowhere.
func difference(one, other worker.Answer) string {
	switch {
	case other.Trouble != nil:
		return other.Trouble.Type + ": " + other.Trouble.Message
	case other.Failed:
		return strings.Join(assertions(other.Output), "\n")
	}
	return firstDifference(one.Log, other.Log)
}

func texts(all []ends.Difference) (out []string) {
	for _, d := range all {
		out = append(out, d.String())
	}
	return out
}

// usable returns why a test cannot be explored.
func usable(a worker.Answer) error {
	effective := 0
	for _, w := range a.Writes {
		if w.Actor == plan.Operator && w.Effective {
			effective++
		}
	}
	output := "\n" + strings.Join(assertions(a.Output), "\n")
	switch {
	case a.Trouble != nil:
		return &UnusableError{fmt.Sprintf("the test fails as it is, without any fault: %s: %s%s", a.Trouble.Type, a.Trouble.Message, output)}
	case a.Failed:
		return &UnusableError{"the test fails as it is, without any fault:" + output}
	case !a.Env:
		return &UnusableError{"the test makes no environment: call steertest.New with the *testing.T that the function is given"}
	case a.Starts == 0:
		return &UnusableError{"the test has no operator: give steertest.Options an Operator or a Setup"}
	case effective == 0:
		return &UnusableError{"the operator writes nothing: there is no write to crash at, and the test proves nothing; give it something to do"}
	}
	return nil
}

// explore runs plans, and looks closer at those that fail.
func (x *exploration) explore(ctx context.Context, plans []plan.Plan) error {
	x.Notes.Plans(len(plans))
	failed := map[int]worker.Answer{}
	var missed []int
	made, cut, err := x.pool.each(ctx, plans, func(i int, a worker.Answer) {
		switch {
		case !gone(plans[i], a):
		case i < len(x.First):
			x.result.Gone = append(x.result.Gone, plans[i])
		default: // up to its fault a run is the reference
			missed = append(missed, i)
		}
		if verdict, _ := x.findings(a); verdict != "" {
			failed[i] = a
		}
	})
	x.result.Runs += made
	x.result.Ran = made
	x.result.Left += len(plans) - made
	for _, i := range cut {
		x.result.Cut = append(x.result.Cut, plans[i])
	}
	if err != nil {
		return err
	}
	if len(missed) > 0 {
		p := plans[slices.Min(missed)]
		x.fail(p, "not deterministic: the write of a plan is not there, though the reference makes it", []string{
			fmt.Sprintf("%d plans have met no write, the first at %s", len(missed), p.Faults[0].At),
		})
	}
	for i, p := range plans {
		if a, ok := failed[i]; ok {
			if err := x.examine(ctx, p, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// gone reports whether the first fault of a plan has no write any more.
func gone(p plan.Plan, a worker.Answer) bool {
	return a.Trouble == nil && len(p.Faults) > 0 && a.Met == 0
}

// findings are those of the judge that are not accepted.
func (x *exploration) findings(a worker.Answer) (verdict string, lines []string) {
	verdict, lines = x.judge.findings(a)
	if verdict == "" {
		return "", nil
	}
	if lines = x.accepted(lines); len(lines) == 0 {
		return "", nil
	}
	return verdict, lines
}

// accepted leaves out what is accepted.
func (x *exploration) accepted(lines []string) []string {
	if x.Accepts == nil {
		return lines
	}
	return x.Accepts(lines)
}

// examine makes a failing plan as simple as it can be. It must fail in a process that has
// made no run before: what a package has kept from other runs is another fault.
func (x *exploration) examine(ctx context.Context, p plan.Plan, a worker.Answer) error {
	verdict, lines := x.findings(a)
	if x.isKnown(verdict, lines) || len(x.result.Failures) >= x.Failures {
		x.result.Repeats++
		return nil
	}
	var broken error
	runs := map[string]worker.Answer{}
	run := func(p plan.Plan, fresh bool) string {
		a, err := x.pool.run(ctx, p, fresh, false)
		x.result.Runs++
		if err != nil {
			broken = errors.Join(broken, err)
			return ""
		}
		runs[p.Name()] = a
		of, _ := x.findings(a)
		return of
	}
	again := run(p, true)
	select {
	case <-ctx.Done(): // no time to look closer
		x.fail(p, verdict, lines)
		return nil
	default:
	}
	if broken == nil && again != verdict {
		x.fail(p, "it fails in a process that has made other runs, and not in a new one: state of a package survives, or the operator draws at random", append([]string{verdict}, lines...))
		return nil
	}
	least := shrink.Shrink(p, x.Shrinking, func(p plan.Plan) bool { return broken == nil && run(p, false) == verdict })
	if broken != nil && ctx.Err() == nil {
		return broken
	}
	a = runs[least.Plan.Name()]
	verdict, lines = x.findings(a)
	if x.isKnown(verdict, lines) {
		x.result.Repeats++
		return nil
	}
	f := x.fail(least.Plan, verdict, lines)
	f.ShrunkFrom, f.ShrinkingRun = len(p.Faults), least.Runs
	f.Lines, f.Faults = linesOf(a.Record)
	return nil
}

func signature(verdict string, lines []string) string {
	return verdict + "\n" + strings.Join(lines, "\n")
}

func (x *exploration) isKnown(verdict string, lines []string) bool {
	return x.known[signature(verdict, lines)]
}

func (x *exploration) fail(p plan.Plan, verdict string, lines []string) *report.Failure {
	x.known[signature(verdict, lines)] = true
	x.Notes.Found(p)
	x.result.Failures = append(x.result.Failures, report.Failure{
		Verdict: verdict, Findings: lines, Plan: p, Reference: x.lines, Test: x.Test,
	})
	f := &x.result.Failures[len(x.result.Failures)-1]
	if p.Seed == 0 && len(p.Faults) == 0 {
		f.Lines = x.lines
	}
	return f
}
