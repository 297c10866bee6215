// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command flakes looks for tests that fail sometimes: it runs the tests of packages again and
// again with the race detector, in random order, with one processor and with two, with load
// beside them and without, and reports every failure with its output and how to run it again:
//
//	go run ./internal/flakes                    # rounds of all packages; goes on where it was ended
//	go run ./internal/flakes -rounds 20 ./queue # twenty rounds of one package
//	go run ./internal/flakes list               # packages that start goroutines or servers, and why
//	go run ./internal/flakes report -all        # what was recorded, test by test
//	go run ./internal/flakes -since main -within 4m
//
// A round of a package is one run of its test binary, under one [condition]; four rounds have
// all of them. Runs are recorded in a file, with the hash of the binary that ran: rounds that
// are recorded are not run again, and those of other code do not count.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

var (
	// errUsage is wrapped by the errors of wrong arguments.
	errUsage = errors.New("wrong arguments")
	// errFailed says that tests failed, all of which have been reported.
	errFailed = errors.New("tests failed")
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := command(ctx, os.Args[1:], os.Stdout); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "flakes:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "flakes:", err)
		os.Exit(1)
	}
}

// options are the flags and arguments of the commands.
type options struct {
	// Folder is in the module whose packages are tested.
	folder string
	// Kept is the folder of the test binaries and, unless results names another file, of the
	// results. It is made when it is missing.
	kept    string
	results string
	// Rounds is how often each package is run, and busy how often those are that start
	// goroutines or servers; the greater of the two holds. Recorded rounds count.
	rounds, busy int
	// Load is how many processors the load beside every second round burns.
	load int
	// Timeout ends a run, as that of go test: what runs then has failed.
	timeout time.Duration
	// Since is a commit: only packages are run whose tests may end otherwise than there. Empty
	// for all.
	since string
	// Within ends everything after a time, and what did not fit is printed. Zero for never.
	within time.Duration
	// All reports every test, not only those that failed.
	all      bool
	patterns []string
}

func command(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == loadCommand {
		processors, err := strconv.Atoi(args[1])
		if err != nil {
			return fmt.Errorf("%w: %w", errUsage, err)
		}
		burn(processors, os.Stdin)
		return nil
	}
	name, do := "", find
	if len(args) > 0 {
		switch args[0] {
		case "list":
			name, do, args = "list", list, args[1:]
		case "report":
			name, do, args = "report", report, args[1:]
		}
	}
	var o options
	f := flag.NewFlagSet("flakes "+name, flag.ContinueOnError)
	f.SetOutput(out)
	f.StringVar(&o.folder, "C", ".", "folder of the module whose packages are tested")
	f.StringVar(&o.kept, "keep", filepath.Join("bin", "flakes"), "folder of test binaries and results, below that of -C unless absolute")
	f.StringVar(&o.results, "results", "", "file of the results (default: results.jsonl in the folder of -keep)")
	if name == "" {
		f.IntVar(&o.rounds, "rounds", 8, "rounds of each package, recorded ones included")
		f.IntVar(&o.busy, "busy", 50, "rounds of packages that start goroutines or servers, if more")
		f.IntVar(&o.load, "load", 2*runtime.NumCPU(), "processors that the load beside loaded rounds burns")
		f.DurationVar(&o.timeout, "timeout", 20*time.Minute, "time that one run of a package may take")
		f.StringVar(&o.since, "since", "", "commit: run only packages whose tests have other code or data than there")
		f.DurationVar(&o.within, "within", 0, "time after which no run begins and what runs is ended (default: none)")
	}
	f.BoolVar(&o.all, "all", false, "report every test, not only those that failed")
	if err := f.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	o.patterns = f.Args()
	if len(o.patterns) == 0 {
		o.patterns = []string{"./..."}
	}
	var err error
	if o.folder, err = filepath.Abs(o.folder); err != nil {
		return err
	}
	if !filepath.IsAbs(o.kept) {
		o.kept = filepath.Join(o.folder, o.kept)
	}
	if o.results == "" {
		o.results = filepath.Join(o.kept, "results.jsonl")
	}
	return do(ctx, o, out)
}

// list prints the packages that start goroutines or servers.
func list(ctx context.Context, o options, out io.Writer) error {
	packages, err := loadPackages(ctx, o.folder, o.patterns)
	if err != nil {
		return err
	}
	busy := 0
	for _, p := range packages {
		reasons, err := starts(p)
		if err != nil {
			return err
		}
		if len(reasons) == 0 {
			continue
		}
		busy++
		fmt.Fprintln(out, p.short())
		for _, r := range reasons {
			fmt.Fprintln(out, "   ", r)
		}
	}
	fmt.Fprintf(out, "%d of %d packages with tests start goroutines or servers\n", busy, len(packages))
	return nil
}

// report prints what is recorded of the newest binary of each package.
func report(_ context.Context, o options, out io.Writer) error {
	kept, err := openResults(o.results)
	if err != nil {
		return err
	}
	defer kept.Close()
	if failed := summarize(kept, kept.newest()).print(out, o); failed > 0 {
		return fmt.Errorf("%w: %d", errFailed, failed)
	}
	return nil
}
