// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command suites runs the integration tests of Kubernetes against Steer, and compares what
// they do with what is recorded in testdata/suites. It runs in the folder of module oracle.
//
//	go run ./cmd/suites                      # all suites: an error if a test that passed fails
//	go run ./cmd/suites -suite apiextensions -run '^TestTable'
//	go run ./cmd/suites -update              # records what they did
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/steer-dev/steer/oracle/suites"
)

type settings struct {
	suite, run  string
	update, all bool
	atOnce      int
	work        string
}

func main() {
	var s settings
	flag.StringVar(&s.suite, "suite", "", "run the suites whose names match this regular expression")
	flag.StringVar(&s.run, "run", "", "run the tests whose names match this regular expression")
	flag.BoolVar(&s.update, "update", false, "record what the tests did; reasons stay")
	flag.BoolVar(&s.all, "all", false, "run tests that are recorded as not applicable, too")
	flag.IntVar(&s.atOnce, "at-once", runtime.NumCPU(), "how many tests run at the same time")
	flag.StringVar(&s.work, "work", "bin/suites", "folder for sources, binaries and logs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "suites:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings) error {
	oracle, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	work, err := filepath.Abs(s.work)
	if err != nil {
		return err
	}
	selected, err := regexp.Compile(s.suite)
	if err != nil {
		return fmt.Errorf("-suite: %w", err)
	}
	tests, err := regexp.Compile(s.run)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	program, etcdProgram := filepath.Join(work, "kube-apiserver"), filepath.Join(work, "etcd", "kube-apiserver")
	if err := os.MkdirAll(filepath.Dir(etcdProgram), 0o755); err != nil {
		return err
	}
	top := filepath.Dir(oracle)
	if err := errors.Join(build(ctx, top, "./cmd/steer", program), build(ctx, filepath.Join(top, "storage", "etcd"), "./cmd/steer-etcd", etcdProgram)); err != nil {
		return err
	}
	var failed []error
	ran := 0
	for _, suite := range suites.All() {
		if !selected.MatchString(suite.Name) {
			continue
		}
		ran++
		runner := suites.Runner{
			Program: program, EtcdProgram: etcdProgram, Programs: filepath.Join(oracle, "bin"), OnEtcd: suite.OnEtcd,
			Logs: filepath.Join(work, "logs", suite.Name), Tests: tests, All: s.all, AtOnce: s.atOnce,
		}
		failed = append(failed, one(ctx, suites.Builder{Oracle: oracle, Work: work}, suite, runner, s))
	}
	if ran == 0 {
		return fmt.Errorf("-suite %q selects none", s.suite)
	}
	return errors.Join(failed...)
}

// build builds a program of a module.
func build(ctx context.Context, module, program, as string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", as, program)
	cmd.Dir, cmd.Stderr = module, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w", program, err)
	}
	return nil
}

// one runs a suite, and prints what differs from the record.
func one(ctx context.Context, b suites.Builder, suite suites.Suite, r suites.Runner, s settings) error {
	recorded, err := suite.Read(b.Oracle)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.Logs, 0o755); err != nil {
		return err
	}
	began := time.Now()
	if r.Binary, r.Dir, err = b.Build(ctx, suite); err != nil {
		return fmt.Errorf("suite %s: %w", suite.Name, err)
	}
	fmt.Printf("== %s: built in %s\n", suite.Name, time.Since(began).Round(time.Second))
	r.Each = func(test string, line suites.Line, took time.Duration) {
		note := ""
		switch was := recorded[test].Verdict; was {
		case line.Verdict:
		case "":
			note = "  (not recorded)"
		default:
			note = fmt.Sprintf("  (it was: %s)", was)
		}
		fmt.Printf("%-4s %-60s %5.1f s%s\n", line.Verdict, test, took.Seconds(), note)
	}
	did, err := r.Run(ctx, recorded)
	if err != nil {
		return fmt.Errorf("suite %s: %w", suite.Name, err)
	}
	counts := did.Counts()
	fmt.Printf("== %s: %d pass, %d fail, %d not applicable, %d skip, of %d; %s\n", suite.Name, counts[suites.Pass], counts[suites.Fail],
		counts[suites.NotApplicable], counts[suites.Skip], len(did), time.Since(began).Round(time.Second))
	worse := recorded.Compare(did)
	if s.update {
		return suite.Write(b.Oracle, recorded.Merge(did))
	}
	if len(worse) > 0 {
		return fmt.Errorf("suite %s: %s; their output is in %s", suite.Name, strings.Join(worse, ", "), r.Logs)
	}
	return nil
}
