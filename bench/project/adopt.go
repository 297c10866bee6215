// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// suite is what the suite of a kubebuilder project takes: of the test binary alone, and of
// go test, which links it first.
type suite struct {
	before, after times
}

type times struct{ alone, test time.Duration }

func (s suite) print(out io.Writer) {
	fmt.Fprintln(out, "The envtest suite that kubebuilder generates, before and after steer adopt, no test changed:")
	fmt.Fprintln(out)
	for _, row := range []struct {
		name          string
		before, after time.Duration
	}{{"the suite itself", s.before.alone, s.after.alone}, {"go test, which links it first", s.before.test, s.after.test}} {
		fmt.Fprintf(out, "%-30s %7.2f s %7.2f s %6.1fx\n", row.name, row.before.Seconds(), row.after.Seconds(), row.before.Seconds()/row.after.Seconds())
	}
}

// adopt measures the suite of a project with the programs of Kubernetes, and with Steer
// under their names after it was adopted.
func (b *bench) adopt(ctx context.Context, dir string) (s suite, err error) {
	r := &runner{bench: b, dir: dir, result: Result{Tool: "adopt"}}
	if err := r.begin(); err != nil {
		return s, err
	}
	tests, err := testsOf(dir)
	if err != nil {
		return s, err
	}
	upstream, err := filepath.Abs(b.Upstream)
	if err != nil {
		return s, err
	}
	if s.before, err = r.suite(ctx, upstream); err != nil {
		return s, fmt.Errorf("before adopt: %w", err)
	}
	if err := r.commands(ctx, "steer adopt", "make setup-envtest"); err != nil {
		return s, err
	}
	find := exec.CommandContext(ctx, filepath.Join(dir, "bin", "setup-envtest"), "use", "--bin-dir", filepath.Join(dir, "bin"), "-p", "path")
	find.Dir, find.Env = dir, r.env
	assets, err := find.Output()
	if err != nil {
		return s, fmt.Errorf("setup-envtest: %w", err)
	}
	if s.after, err = r.suite(ctx, strings.TrimSpace(string(assets))); err != nil {
		return s, fmt.Errorf("after adopt: %w", err)
	}
	now, err := testsOf(dir)
	if err == nil && now != tests {
		err = errors.New("steer adopt changed a test")
	}
	return s, err
}

// suite runs the suite, once to fill caches and once for its time.
func (r *runner) suite(ctx context.Context, assets string) (t times, err error) {
	r.env = append(r.env, "KUBEBUILDER_ASSETS="+assets)
	binary := filepath.Join(filepath.Dir(r.dir), "suite.test")
	r.result.Steps = nil
	err = r.commands(ctx,
		"go test -c -o "+binary+" ./internal/controller",
		"cd internal/controller && "+binary,
		"cd internal/controller && "+binary,
		"go test -count=1 ./internal/controller",
		"go test -count=1 ./internal/controller",
	)
	if err != nil {
		return t, err
	}
	return times{alone: r.result.Steps[2].Took, test: r.result.Steps[4].Took}, nil
}

// testsOf are the tests of a project, one after the other.
func testsOf(dir string) (string, error) {
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		all.Write(text)
		return err
	})
	return all.String(), err
}
