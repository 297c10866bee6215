// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// rounds is what find does with one package.
type rounds struct {
	pkg    *testedPackage
	reach  reach
	busy   bool
	goal   int
	binary *testBinary // nil until it is compiled
	done   int         // recorded runs of binary
}

// hunt runs rounds of packages and records them.
type hunt struct {
	options
	out     io.Writer
	kept    *results
	runner  *runner
	compile func(context.Context, *testedPackage) (*testBinary, error)
	run     func(context.Context, *testBinary, condition, int64) (run, error)
	todo    []*rounds
}

// find runs what is missing of the rounds of the packages, and reports all that is recorded of
// their binaries.
func find(ctx context.Context, o options, out io.Writer) error {
	packages, err := loadPackages(ctx, o.folder, o.patterns)
	if err != nil {
		return err
	}
	h := &hunt{options: o, out: out}
	if h.todo, err = choose(ctx, o, packages); err != nil {
		return err
	}
	if h.runner, err = newRunner(ctx, o); err != nil {
		return err
	}
	if h.kept, err = openResults(o.results); err != nil {
		return err
	}
	defer h.kept.Close()
	h.compile = func(ctx context.Context, p *testedPackage) (*testBinary, error) { return compile(ctx, p, o.kept) }
	h.run = h.runOnce
	if o.since != "" {
		fmt.Fprintf(out, "%d of %d packages have tests with other code or data than at %s\n", len(h.todo), len(packages), o.since)
	}
	return h.hunt(ctx)
}

// choose returns the packages to run, those first whose failures are most likely.
func choose(ctx context.Context, o options, packages []*testedPackage) ([]*rounds, error) {
	var differs change
	module := ""
	if o.since != "" {
		var err error
		if differs, err = changesSince(ctx, o.folder, o.since); err != nil {
			return nil, err
		}
		file, err := goCommand(ctx, o.folder, "env", "GOMOD")
		if err != nil {
			return nil, err
		}
		module = filepath.Dir(strings.TrimSpace(string(file)))
	}
	var todo []*rounds
	for _, p := range packages {
		r := &rounds{pkg: p, goal: o.rounds}
		if o.since != "" {
			if r.reach = differs.reaches(p, module); r.reach == notReached {
				continue
			}
		}
		reasons, err := starts(p)
		if err != nil {
			return nil, err
		}
		if r.busy = len(reasons) > 0; r.busy {
			r.goal = max(o.rounds, o.busy)
		}
		todo = append(todo, r)
	}
	slices.SortStableFunc(todo, func(a, b *rounds) int {
		if c := cmp.Compare(b.reach, a.reach); c != 0 {
			return c
		}
		return cmp.Compare(b.goal, a.goal)
	})
	return todo, nil
}

// hunt runs one round of each package after the other until all have theirs, or time is up.
func (h *hunt) hunt(ctx context.Context) error {
	bounded := ctx
	if h.within > 0 {
		var cancel context.CancelFunc
		bounded, cancel = context.WithTimeout(ctx, h.within)
		defer cancel()
	}
	var err error
	for more := true; more && err == nil; {
		more = false
		for _, r := range h.todo {
			if err = h.round(bounded, r); err != nil {
				break
			}
			more = more || r.done < r.goal
		}
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return fmt.Errorf("ended by a signal: what was recorded counts, and the same command goes on: %w", ctx.Err())
	case errors.Is(bounded.Err(), context.DeadlineExceeded):
		h.printLeft()
	default:
		return err
	}
	var hashes []string
	for _, r := range h.todo {
		if r.binary != nil {
			hashes = append(hashes, r.binary.hash)
		}
	}
	if failed := summarize(h.kept, hashes).print(h.out, h.options); failed > 0 {
		return fmt.Errorf("%w: %d", errFailed, failed)
	}
	return nil
}

// round runs the next round of a package, if there is one.
func (h *hunt) round(ctx context.Context, r *rounds) error {
	if r.binary == nil {
		var err error
		if r.binary, err = h.compile(ctx, r.pkg); err != nil {
			return err
		}
		r.done = h.kept.rounds(r.binary.hash)
	}
	if r.done >= r.goal {
		return nil
	}
	c := conditionOf(r.done)
	one, err := h.run(ctx, r.binary, c, rand.Int64())
	if err != nil {
		return err
	}
	if err := h.kept.add(one); err != nil {
		return err
	}
	r.done++
	verdict := "ok  "
	if len(one.Failed) > 0 {
		verdict = "FAIL"
	}
	fmt.Fprintf(h.out, "%s %-48s %d/%d  %-20s seed %-20d %6.1f s\n", verdict, r.pkg.short(), r.done, r.goal, c, one.Seed, one.Seconds)
	for _, f := range one.Failed {
		f.print(h.out)
	}
	return nil
}

// runOnce runs a binary with the load that the condition says.
func (h *hunt) runOnce(ctx context.Context, b *testBinary, c condition, seed int64) (run, error) {
	if c.Loaded {
		l, err := startLoad(ctx, h.load)
		if err != nil {
			return run{}, err
		}
		defer l.stop()
	}
	return h.runner.run(ctx, b, c, seed)
}

// printLeft prints what did not fit into the time.
func (h *hunt) printLeft() {
	var none, some []string
	for _, r := range h.todo {
		switch {
		case r.binary == nil || r.done == 0:
			none = append(none, r.pkg.short())
		case r.done < r.goal:
			some = append(some, fmt.Sprintf("%s (%d of %d)", r.pkg.short(), r.done, r.goal))
		}
	}
	fmt.Fprintf(h.out, "what did not fit within %v:\n", h.within.Round(time.Second))
	if len(none) > 0 {
		fmt.Fprintf(h.out, "  %d packages have no round: %s\n", len(none), strings.Join(none, " "))
	}
	if len(some) > 0 {
		fmt.Fprintf(h.out, "  %d packages have some of their rounds: %s\n", len(some), strings.Join(some, ", "))
	}
}
