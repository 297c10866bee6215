// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package generate compares the generators: steer generate with controller-gen and
// code-generator, over the API packages of published modules. Every figure is CPU
// time of the process and its children.
package generate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

const group = "generate"

// Binaries are the programs compared.
type Binaries struct {
	// Steer is the command of this repository; Upstream is the directory with
	// controller-gen, client-gen, lister-gen, informer-gen and register-gen.
	Steer, Upstream string
}

// Upstreams are the generators to install, as module queries of the go command.
func Upstreams() []string {
	const generators = "k8s.io/code-generator/cmd/"
	return []string{
		"sigs.k8s.io/controller-tools/cmd/controller-gen@v0.23.0",
		generators + "client-gen@v0.37.2", generators + "lister-gen@v0.37.2",
		generators + "informer-gen@v0.37.2", generators + "register-gen@v0.37.2",
	}
}

// run is one measurement in progress.
type run struct {
	binaries Binaries
	out      *report.Report
	work     string
	goCache  string
}

// Run measures both sides in turn, rounds times.
func Run(ctx context.Context, out *report.Report, log io.Writer, binaries Binaries, rounds int) (err error) {
	work, err := os.MkdirTemp("", "steer-generate-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	cache, err := exec.CommandContext(ctx, "go", "env", "GOCACHE").Output()
	if err != nil {
		return err
	}
	r := &run{binaries: binaries, out: out, work: work, goCache: strings.TrimSpace(string(cache))}
	for _, m := range modules() {
		for _, side := range []report.Side{report.Steer, report.Upstream} {
			if err := m.copyTo(ctx, r.dir(m, side)); err != nil {
				return err
			}
		}
	}
	for round := range out.Turns(ctx, group, rounds) {
		fmt.Fprintf(log, "generate: round %d\n", round+1)
		for _, m := range modules() {
			if err := r.manifests(ctx, m, round == 0); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
			if m.name == "gateway-api" {
				if err := r.clients(ctx, m, round == 0); err != nil {
					return fmt.Errorf("clients of %s: %w", m.name, err)
				}
			}
		}
	}
	return nil
}

func (r *run) dir(m module, side report.Side) string {
	return filepath.Join(r.work, string(side), m.name)
}

// add records CPU time and its goal.
func (r *run) add(name string, side report.Side, cpu time.Duration, goal report.Goal) {
	r.out.Add(group, name, "ms", report.Lower, side, cpu.Seconds()*1000)
	r.out.Expect(group, name, goal)
}

// spent is what one program took.
type spent struct{ cpu, wall time.Duration }

// call runs a program in a directory. Steer's own records go to cache.
func (r *run) call(ctx context.Context, dir, cache, program string, args ...string) (spent, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Dir = dir
	command.Env = environment("XDG_CACHE_HOME="+cache, "GOCACHE="+r.goCache)
	var said bytes.Buffer
	command.Stdout, command.Stderr = &said, &said
	begin := time.Now()
	if err := command.Run(); err != nil {
		return spent{}, fmt.Errorf("%s %s: %w: %s", filepath.Base(program), strings.Join(args, " "), err, said.String())
	}
	return spent{command.ProcessState.UserTime() + command.ProcessState.SystemTime(), time.Since(begin)}, nil
}

// manifests makes definitions, deep copies, roles and webhook configurations.
func (r *run) manifests(ctx context.Context, m module, compare bool) error {
	args := []string{"crd", "object", "rbac:roleName=bench", "webhook", "output:artifacts:config=made"}
	for _, p := range m.paths {
		args = append(args, "paths="+p)
	}
	line := "crd, object, rbac, webhook of " + m.name
	for _, side := range []report.Side{report.Steer, report.Upstream} {
		dir, cache := r.dir(m, side), filepath.Join(r.work, "cache-"+m.name)
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, "made")), os.RemoveAll(cache)); err != nil {
			return err
		}
		program, extra := filepath.Join(r.binaries.Upstream, "controller-gen"), []string(nil)
		if side == report.Steer {
			program, extra = r.binaries.Steer, []string{"generate", "--lenient"} // as lenient as controller-gen
		}
		full := append(extra, args...)
		cold, err := r.call(ctx, dir, cache, program, full...)
		if err != nil {
			return err
		}
		r.add(line, side, cold.cpu, report.Goal{Times: 8})
		again, err := r.call(ctx, dir, cache, program, full...)
		if err != nil {
			return err
		}
		r.add("the same again, nothing changed: "+m.name, side, again.cpu, report.Goal{AtMost: 50})
		r.out.Add(group, "its wall time: "+m.name, "ms", report.Lower, side, again.wall.Seconds()*1000)
	}
	if !compare {
		return nil
	}
	return r.same(m, line, func(name string) bool {
		return strings.HasPrefix(name, "made/") || path.Base(name) == "zz_generated.deepcopy.go"
	})
}

// clients makes clientset, listers, informers and registration.
func (r *run) clients(ctx context.Context, m module, compare bool) error {
	const clientDir = "pkg/client"
	line := "client, lister, informer, register of " + m.name
	for _, side := range []report.Side{report.Steer, report.Upstream} {
		dir, cache := r.dir(m, side), filepath.Join(r.work, "cache-clients")
		if err := errors.Join(os.RemoveAll(filepath.Join(dir, clientDir)), os.RemoveAll(cache)); err != nil {
			return err
		}
		var total time.Duration
		steps, err := r.clientSteps(ctx, m, dir, clientDir, side)
		if err != nil {
			return err
		}
		for _, step := range steps {
			s, err := r.call(ctx, dir, cache, step[0], step[1:]...)
			if err != nil {
				return err
			}
			total += s.cpu
		}
		r.add(line, side, total, report.Goal{Times: 15})
	}
	if !compare {
		return nil
	}
	counts := map[report.Side]int{}
	for _, side := range []report.Side{report.Steer, report.Upstream} {
		made, err := outputs(filepath.Join(r.dir(m, side), clientDir), func(name string) bool { return strings.HasSuffix(name, ".go") })
		if err != nil {
			return err
		}
		counts[side] = len(made)
	}
	r.out.Note("%s: Steer made %d files, code-generator %d", line, counts[report.Steer], counts[report.Upstream])
	return nil
}

// clientSteps are the programs to run for clients, each with its arguments.
func (r *run) clientSteps(ctx context.Context, m module, dir, into string, side report.Side) ([][]string, error) {
	if side == report.Steer {
		args := []string{r.binaries.Steer, "generate", "--lenient", "client:dir=" + into, "lister:dir=" + into, "informer:dir=" + into, "register"}
		for _, p := range m.paths {
			args = append(args, "paths="+p)
		}
		return [][]string{args}, nil
	}
	packages, err := m.packages(ctx, dir)
	if err != nil {
		return nil, err
	}
	to, in := m.path+"/"+into, filepath.Join(dir, into)
	header := filepath.Join(r.work, "header.txt")
	if err := os.WriteFile(header, nil, 0o644); err != nil {
		return nil, err
	}
	tool := func(name string, args ...string) []string {
		return append([]string{filepath.Join(r.binaries.Upstream, name), "--go-header-file", header}, args...)
	}
	var inputs []string
	for _, name := range packages {
		inputs = append(inputs, strings.TrimPrefix(name, m.path))
	}
	return [][]string{
		tool("client-gen", "--clientset-name", "versioned", "--input-base", m.path, "--input", strings.Join(inputs, ","),
			"--output-dir", in+"/clientset", "--output-pkg", to+"/clientset"),
		tool("lister-gen", append([]string{"--output-dir", in + "/listers", "--output-pkg", to + "/listers"}, packages...)...),
		tool("informer-gen", append([]string{"--versioned-clientset-package", to + "/clientset/versioned", "--listers-package", to + "/listers",
			"--output-dir", in + "/informers", "--output-pkg", to + "/informers"}, packages...)...),
		tool("register-gen", append([]string{"--output-file", "zz_generated.register.go"}, packages...)...),
	}, nil
}

// same notes whether both sides left the same bytes.
func (r *run) same(m module, line string, keep func(string) bool) error {
	ours, err := outputs(r.dir(m, report.Steer), keep)
	if err != nil {
		return err
	}
	theirs, err := outputs(r.dir(m, report.Upstream), keep)
	if err != nil {
		return err
	}
	var differing []string
	for name, text := range theirs {
		if ours[name] != text {
			differing = append(differing, name)
		}
	}
	if len(differing) > 0 || len(ours) != len(theirs) {
		r.out.Note("%s: %d and %d files, of which differ: %s", line, len(ours), len(theirs), strings.Join(differing, ", "))
		return nil
	}
	r.out.Note("%s: %d files, the same bytes on both sides", line, len(ours))
	return nil
}
