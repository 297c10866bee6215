// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sim breaks operators on purpose, in go test: where a test says
// synctest.Test(t, f), it says [Test].
//
//	func TestTheDatabaseSurvives(t *testing.T) {
//		t.Parallel()
//		sim.Test(t, func(t *testing.T) {
//			env := steertest.New(t, steertest.Options{
//				CRDs: []string{"config/crd/bases"}, Operator: database.Operator(),
//			})
//			env.Apply("config/samples/database.yaml")
//			steertest.Expect[*v1.Database](env, "db", steertest.Ready)
//		})
//	}
//
// The function is an ordinary test of package steertest. It is run again and again, each
// time from the start: as it is, under other orders of what goes on side by side, and then
// once for each way in which each write of the operator can go wrong. The operator crashes
// before the write, after it, or after it with the answer lost, and again within the
// restart; or the API server answers 409, 429, 500, or 504 without and with the write done.
//
// A run fails if the test does, if its end is not that of the run without faults (uids,
// generated names and times are told apart), if an object is deleted that the other run
// keeps, if the operator never settles, panics, or leaves goroutines behind. A failing run
// is shrunk and is a subtest with a readable name, which go test -run repeats; its plan is
// kept in testdata/sim and runs first from then on.
//
// This package is experimental.
package sim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/sim/internal/explore"
	"github.com/steer-dev/steer/sim/internal/plan"
	"github.com/steer-dev/steer/sim/internal/report"
	"github.com/steer-dev/steer/sim/internal/worker"
	"github.com/steer-dev/steer/steertest"
)

// Option of [Test].
type Option func(*options)

type options struct {
	accepted []*acceptance
	summary  string
}

// acceptance is an exception that a test declares.
type acceptance struct {
	what, why string
	used      bool
}

// Accept declares what is no fault of this operator: findings that contain the text what,
// such as "ConfigMap default/cache is missing". Reports list it with the reason, and one
// that accepts nothing fails the test.
func Accept(what, why string) Option {
	return func(o *options) { o.accepted = append(o.accepted, &acceptance{what: what, why: why}) }
}

// How much is run; see [Test].
const (
	orders         = 20
	ordersShort    = 3
	plansShort     = 24
	plansRace      = 24
	shrinkingRuns  = 40
	failuresShown  = 5
	stuckFor       = time.Minute
	deadlineMargin = 5 * time.Second
)

// Test runs f under all plans, as the package describes. f is given the *testing.T that
// steertest.New needs; as in a bubble of testing/synctest, it must not call its methods Run,
// Parallel and Deadline, nor synctest.Wait: Env.Settled waits for all that is left to do.
// A test calls it once; more than one are subtests.
//
// Each run is made in a process of the same test binary, in a bubble of its own: what a
// package keeps at its level does not survive a crash, or is told of. The code of the
// test before the call runs in each of these processes.
//
// All plans are run, unless -short or the race detector bound them to the most telling, or
// -sim.for bounds the time; how many are left out is logged, or else printed, which go test
// shows in the folder of the package, and steer sim everywhere. If the deadline of go test
// -timeout is near, it ends early and fails with the plans that it has cut off. With
// -run Test/NAME the plans of that name alone are run.
//
// Each plan is noted in the cache folder of the user before it runs: those that went on when
// this process was killed run first the next time.
//
// On a server of [steertest.KubeconfigVariable], which cannot be broken, f runs once, as it
// is and in real time.
func Test(t *testing.T, f func(t *testing.T), opts ...Option) {
	t.Helper()
	if worker.Serves(t) {
		worker.Serve(t, f)
	}
	if os.Getenv(steertest.KubeconfigVariable) != "" {
		t.Logf("sim: the API server of %s cannot be broken: the test runs once, as it is, in real time", steertest.KubeconfigVariable)
		f(t)
		return
	}
	o := options{}
	for _, opt := range opts {
		opt(&o)
	}
	ctx, cancel := bounded(t)
	defer cancel()
	files := folder(t)
	first, err := files.read()
	if err != nil {
		t.Fatalf("sim: %v", err)
	}
	wants, named := wanted(t)
	notes, left := newNotes(t)
	defer func() { notes.end(t, o.summary) }() // also after t.Fatal
	r, err := explore.Run(ctx, explore.Options{
		Test: t.Name(), First: together(first, left), Wants: wants, Orders: countOrders(), Plans: countPlans(),
		Accepts: o.accepts, Shrinking: shrinkingRuns, Failures: failuresShown, Stuck: stuckFor, For: *simFor, Notes: notes,
	})
	var unusable *explore.UnusableError
	switch {
	case errors.As(err, &unusable):
		t.Fatalf("sim: %v", unusable)
	case err != nil && ctx.Err() == nil:
		t.Fatalf("sim: %v", err)
	case r.Reference.Skipped:
		t.Skip(strings.Join(r.Reference.Output, "\n"))
	}
	o.report(t, r, files, named)
}

// errTimeout is the cause of an end before the deadline of go test.
var errTimeout = errors.New("go test -timeout")

// bounded ends a bit before the deadline of the test: there is still time to say what ran.
func bounded(t *testing.T) (context.Context, context.CancelFunc) {
	deadline, ok := t.Deadline()
	if !ok {
		return context.WithCancel(t.Context())
	}
	margin := min(deadlineMargin, time.Until(deadline)/4)
	return context.WithDeadlineCause(t.Context(), deadline.Add(-margin), errTimeout)
}

func countOrders() int {
	if testing.Short() || raceDetector {
		return ordersShort
	}
	return orders
}

func countPlans() int {
	switch {
	case testing.Short():
		return plansShort
	case raceDetector:
		return plansRace
	}
	return 0
}

// wanted returns which plans go test -run asks for; nil for all.
func wanted(t *testing.T) (wants func(plan.Plan) bool, pattern string) {
	parts := strings.Split(runFlag(), "/")
	depth := strings.Count(t.Name(), "/") + 1
	if len(parts) <= depth || parts[depth] == "" {
		return nil, ""
	}
	of, err := regexp.Compile(parts[depth])
	if err != nil {
		return nil, "" // go test says so itself
	}
	return func(p plan.Plan) bool { return of.MatchString(p.Name()) }, parts[depth]
}

// accepts leaves out findings that are accepted.
func (o *options) accepts(findings []string) []string {
	return slices.DeleteFunc(slices.Clone(findings), func(line string) bool {
		for _, a := range o.accepted {
			if strings.Contains(line, a.what) {
				a.used = true
				return true
			}
		}
		return false
	})
}

// report makes subtests of what was found, and logs the rest.
func (o *options) report(t *testing.T, r explore.Result, files plans, named string) {
	t.Helper()
	for _, p := range r.Gone {
		files.gone(t, p)
	}
	for _, f := range r.Failures {
		t.Run(f.Plan.Name(), func(t *testing.T) {
			if f.Plan.Name() != (plan.Plan{}).Name() {
				f.File = files.write(t, f)
			}
			t.Errorf("sim: %s", f)
		})
	}
	if named != "" && r.Ran == 0 {
		t.Errorf("sim: no plan has the name that -run asks for, %s: run the test without it to see the names", named)
		return
	}
	if named != "" && len(r.Failures) == 0 {
		t.Run(strings.Trim(named, "^$"), func(*testing.T) {}) // it passes
	}
	o.summarize(r)
	switch text, failed := o.said(t.Name(), r); {
	case failed:
		t.Error(text)
	case testing.Verbose() || r.Left == 0:
		t.Log(text)
	default: // what a test logs is not shown when it passes
		fmt.Fprintln(os.Stderr, text)
	}
	for _, a := range o.accepted {
		if !a.used && named == "" && r.Left == 0 {
			t.Errorf("sim: Accept(%q) accepts nothing: remove it", a.what)
		}
	}
}

// said is what a reader is told of an exploration, and whether it is a failure.
func (o *options) said(test string, r explore.Result) (text string, failed bool) {
	text = fmt.Sprintf("sim: %s: %s", test, o.summary)
	if !errors.Is(r.Ended, errTimeout) {
		return text, false
	}
	return text + "\nthe time of go test -timeout is over: give it more, or bound the plans with -sim.for", true
}

// together are plans, each once.
func together(plans ...[]plan.Plan) (out []plan.Plan) {
	for _, p := range slices.Concat(plans...) {
		if !slices.ContainsFunc(out, func(o plan.Plan) bool { return o.Name() == p.Name() }) {
			out = append(out, p)
		}
	}
	return out
}

// summarize says how it went.
func (o *options) summarize(r explore.Result) {
	o.summary = fmt.Sprintf("%d runs", r.Runs)
	if r.Repeats > 0 {
		o.summary += fmt.Sprintf("; %d plans more fail like those above, or were not looked at", r.Repeats)
	}
	if r.Left > 0 {
		o.summary += fmt.Sprintf("; %d plans left out (-short, -race, -sim.for or -timeout)", r.Left)
	}
	for _, p := range r.Cut {
		o.summary += "\n  cut off: " + p.Name()
	}
	for _, field := range r.Masked {
		o.summary += "\n  not compared, since it differs in each run: " + field
	}
	for _, a := range o.accepted {
		o.summary += fmt.Sprintf("\n  accepted: %s: %s", a.what, a.why)
	}
}

// plans is the folder with the plans of a test.
type plans string

func folder(t *testing.T) plans {
	return plans(filepath.Join("testdata", "sim", filepath.FromSlash(t.Name())))
}

// extension of the files of plans.
const extension = ".plan"

func (f plans) read() (out []plan.Plan, err error) {
	names, err := filepath.Glob(filepath.Join(string(f), "*"+extension))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p, err := plan.Decode(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		out = append(out, p)
	}
	return out, nil
}

func (f plans) file(p plan.Plan) string { return filepath.Join(string(f), p.Name()+extension) }

// write keeps the plan of a failure, and returns the name of its file.
func (f plans) write(t *testing.T, failure report.Failure) string {
	text, err := plan.Encode(failure.Plan, failure.Verdict)
	if err == nil {
		err = os.MkdirAll(string(f), 0o755) // sources
	}
	if err == nil {
		err = os.WriteFile(f.file(failure.Plan), text, 0o644) // a source
	}
	if err != nil {
		t.Errorf("sim: keep the plan: %v", err)
		return ""
	}
	return f.file(failure.Plan)
}

// gone says that a plan is about a write that there is no more, or removes it.
func (f plans) gone(t *testing.T, p plan.Plan) {
	if _, err := os.Stat(f.file(p)); errors.Is(err, fs.ErrNotExist) {
		return // it was left by a process that was killed
	}
	if !*simUpdate {
		t.Logf("sim: %s is about a write that the operator does not make any more: go test -sim.update removes it", f.file(p))
		return
	}
	if err := os.Remove(f.file(p)); err != nil {
		t.Errorf("sim: %v", err)
	}
}
