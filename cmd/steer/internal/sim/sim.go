// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sim has the command sim: go test of the packages that break operators on purpose,
// with what goes on in them.
package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/internal/journal"
)

// module is that of package sim.
const module = "github.com/steer-dev/steer/sim"

// New returns the command sim.
func New() *cobra.Command {
	return &cobra.Command{
		Use:   "sim [PACKAGES] [ARGUMENTS OF go test]",
		Short: "Break the operators of a project on purpose, and show how far that is",
		Long: `Runs go test with the arguments on those of the packages, ./... if none is named, whose
tests use sim.Test, and with the exit status of go test. It says of each simulation how
many of its plans have run and what was found, while it goes on, and what was left out.

Beside the flags of go test there are those of simulations:

  -sim.for DURATION   run plans for so long; without it all are run
  -sim.update         remove plans from testdata/sim whose writes are no longer there

-short and -race bound the plans to the most telling.`,
		Example:            "  steer sim\n  steer sim ./internal/controller -sim.for 20s\n  steer sim -run 'TestShop/^crash_after_create_Secret_shop-till$'",
		DisableFlagParsing: true, // they are those of go test
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return cmd.Help()
			}
			line := progress.Start(cmd.ErrOrStderr(), "building the tests")
			defer line.Stop()
			f := &follower{out: line.Writer(cmd.ErrOrStderr()), line: line, ended: map[string]bool{}}
			return run(cmd.Context(), args, f, line.Writer(cmd.OutOrStdout()), line.Writer(cmd.ErrOrStderr()))
		},
	}
}

func run(ctx context.Context, args []string, f *follower, out, errs io.Writer) error {
	a := split(args)
	packages, err := a.uses(ctx, errs)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return command.Usage(fmt.Sprintf("no test of %s uses sim.Test: say it where a test of steertest says synctest.Test", strings.Join(a.packages, " ")))
	}
	if f.dir, err = os.MkdirTemp("", "steer-sim-"); err != nil {
		return err
	}
	// What is left of it is for the system to remove.
	defer func() { _ = os.RemoveAll(f.dir) }()
	cmd := exec.Command("go", slices.Concat([]string{"test"}, a.flags, packages, a.rest)...) // it is what the command is for
	cmd.Stdout, cmd.Stderr, cmd.Env = out, errs, append(os.Environ(), journal.Variable+"="+f.dir)
	following, stop := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		f.follow(following)
	}()
	err = children.Run(ctx, cmd)
	stop()
	<-over
	f.close()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &command.ExitError{Status: children.ExitStatus(exit)}
	}
	return err
}

// arguments are those of go test.
type arguments struct {
	// listing are the flags that go list takes as well.
	flags, listing, packages []string
	// rest is for the test binaries.
	rest []string
}

// split tells packages from flags and their values.
func split(args []string) (a arguments) {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, _, whole := strings.Cut(strings.TrimPrefix(strings.TrimLeft(arg, "-"), "test."), "=")
		switch {
		case !strings.HasPrefix(arg, "-"):
			a.packages = append(a.packages, arg)
			continue
		case name == "args":
			a.rest = args[i:]
			i = len(args)
			continue
		}
		flag := []string{arg}
		if !whole && command.TakesValue(name) && i+1 < len(args) {
			i++
			flag = append(flag, args[i])
		}
		a.flags = append(a.flags, flag...)
		if slices.Contains([]string{"C", "mod", "modfile", "overlay", "tags"}, name) {
			a.listing = append(a.listing, flag...)
		}
	}
	if len(a.packages) == 0 {
		a.packages = []string{"./..."}
	}
	return a
}

// uses returns those of the packages whose tests use package sim.
func (a arguments) uses(ctx context.Context, errs io.Writer) ([]string, error) {
	var out bytes.Buffer
	list := slices.Concat([]string{"list"}, a.listing, []string{"-test", "-f", "{{.ImportPath}} {{join .Deps \" \"}}"}, a.packages)
	cmd := exec.Command("go", list...) // packages that the user has named
	cmd.Stdout, cmd.Stderr = &out, errs
	if err := children.Run(ctx, cmd); err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	return using(out.String()), nil
}

// using reads what go list says of packages and their test binaries, which are named after
// them with .test.
func using(list string) (packages []string) {
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if name, ok := strings.CutSuffix(words[0], ".test"); ok && slices.Contains(words[1:], module) {
			packages = append(packages, name)
		}
	}
	return packages
}

// follower says what the journals of a folder say.
type follower struct {
	dir   string
	out   io.Writer
	line  *progress.Line
	ended map[string]bool // by file
}

// How often a follower looks, and how often it has a line for each test that goes on where
// there is no terminal.
const (
	looking = 200 * time.Millisecond
	telling = 30 * time.Second
)

func (f *follower) follow(ctx context.Context) {
	tick := time.NewTicker(looking)
	defer tick.Stop()
	told := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		going := f.look()
		if len(going) > 0 {
			f.line.Show(strings.Join(going, "; "))
		}
		if !f.line.Visible() && time.Since(told) >= telling {
			told = time.Now()
			for _, text := range going {
				fmt.Fprintln(f.out, text)
			}
		}
	}
}

// look says which simulations are over, and returns how far the others are.
func (f *follower) look() (going []string) {
	all, err := journal.All(f.dir)
	if err != nil {
		return nil
	}
	for _, s := range all {
		if !s.Ended {
			going = append(going, far(s))
		} else if !f.ended[s.File] {
			f.ended[s.File] = true
			fmt.Fprintf(f.out, "%s: %s\n", far(s), s.Summary)
		}
	}
	return going
}

// far says how far a simulation is.
func far(s journal.State) string {
	if s.Plans == 0 && len(s.Found) == 0 {
		return "sim: " + s.Test + ": without faults"
	}
	return fmt.Sprintf("sim: %s: %d of %s, %s", s.Test, s.Over, command.Count(s.Plans, "plan"), command.Count(len(s.Found), "finding"))
}

// close says what is left when go test is over: simulations that were ended.
func (f *follower) close() {
	f.look()
	all, err := journal.All(f.dir)
	if err != nil {
		fmt.Fprintln(f.out, "steer:", err)
	}
	for _, s := range all {
		if s.Ended {
			continue
		}
		fmt.Fprintf(f.out, "%s: cut off\n", far(s))
		for _, run := range s.Running {
			fmt.Fprintf(f.out, "  cut off: %s\n", run.Name)
		}
	}
}
