// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/oracle/suites/plane"
)

// Limit is how long a test may take, in a process of its own.
const Limit = 150 * time.Second

// Runner runs the tests of a suite that was built.
type Runner struct {
	// Binary of the tests, and the folder in which they run.
	Binary, Dir string
	// Program is the command line of Steer, under the name of kube-apiserver. Programs is a
	// folder with etcd: tests of Kubernetes start one, which Steer uses in those for which OnEtcd
	// reports true. EtcdProgram is steer-etcd, under the name of kube-apiserver, for these.
	Program, EtcdProgram, Programs string
	OnEtcd                         func(test string) bool
	// Logs is the folder for the output of tests that fail.
	Logs string
	// Tests selects tests by name. All: what is recorded as not applicable runs, too.
	Tests *regexp.Regexp
	All   bool
	// AtOnce is how many tests run at the same time.
	AtOnce int
	// Each is called for each test that has ended.
	Each func(test string, line Line, took time.Duration)
}

// Run runs the tests, and returns what each did. Tests that are recorded as not applicable
// do not run, and keep their reason.
func (r Runner) Run(ctx context.Context, recorded Recorded) (Recorded, error) {
	names, err := r.names(ctx)
	if err != nil {
		return nil, err
	}
	var (
		mu   sync.Mutex
		all  sync.WaitGroup
		free = make(chan struct{}, max(r.AtOnce, 1))
		out  = Recorded{}
	)
	for _, name := range names {
		if known := recorded[name]; known.Verdict == NotApplicable && !r.All {
			out[name] = known
			continue
		}
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			began := time.Now()
			line := r.one(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			out[name] = line
			r.Each(name, line, time.Since(began))
		})
	}
	all.Wait()
	return out, ctx.Err()
}

func (r Runner) names(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, r.Binary, "-test.list=^Test")
	var errs bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stderr = r.Dir, r.environment(""), &errs
	text, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, errs.Bytes())
	}
	names := strings.Fields(string(text))
	return slices.DeleteFunc(names, func(name string) bool {
		return !strings.HasPrefix(name, "Test") || r.Tests != nil && !r.Tests.MatchString(name)
	}), nil
}

// environment is that of the process of a test.
func (r Runner) environment(test string) []string {
	out := append(os.Environ(), "PATH="+r.Programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	if r.OnEtcd(test) {
		return append(out, plane.Program+"="+r.EtcdProgram, plane.Shared+"=true")
	}
	return append(out, plane.Program+"="+r.Program)
}

// leaf is a subtest that failed, or was skipped.
var leaf = regexp.MustCompile(`(?m)^\s+--- FAIL: (\S+)`)

// one runs a test in a process of its own. A failure names what failed in it.
func (r Runner) one(ctx context.Context, name string) Line {
	within, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	cmd := exec.CommandContext(within, r.Binary, "-test.v", "-test.run=^"+name+"$", fmt.Sprintf("-test.timeout=%s", Limit))
	// Tests name files in it that others name, too.
	own, err := os.MkdirTemp("", "steer-suites-")
	if err != nil {
		return Line{Fail, err.Error()}
	}
	defer os.RemoveAll(own)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = r.Dir, append(r.environment(name), "TMPDIR="+own), &out, &out
	err = children.Run(within, cmd)
	switch {
	case err == nil && bytes.Contains(out.Bytes(), []byte("--- SKIP: "+name+" ")):
		return Line{Skip, "it skips itself"}
	case err == nil:
		return Line{Pass, ""}
	}
	_ = os.WriteFile(filepath.Join(r.Logs, name+".log"), out.Bytes(), 0o644)
	if within.Err() != nil {
		return Line{Fail, fmt.Sprintf("it takes longer than %s", Limit)}
	}
	failed := map[string]bool{}
	for _, m := range leaf.FindAllSubmatch(out.Bytes(), -1) {
		failed[string(m[1])] = true
	}
	for sub := range failed { // those with subtests of their own are none
		delete(failed, sub[:strings.LastIndex(sub, "/")])
	}
	if len(failed) == 0 {
		return Line{Fail, "not explained yet"}
	}
	return Line{Fail, fmt.Sprintf("not explained yet: %d subtests, such as %s", len(failed), slices.Min(slices.Collect(maps.Keys(failed))))}
}
