// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command sidebyside runs Steer and its upstream counterparts in turn on this machine and
// prints medians and ratios.
//
//	go run ./cmd/sidebyside [-only server] [-quick] [-json FILE] [-chart FILE] [-benchstat FILE] [-publish]
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/steer-dev/steer/bench/envtest"
	"github.com/steer-dev/steer/bench/generate"
	"github.com/steer-dev/steer/bench/report"
	"github.com/steer-dev/steer/bench/runtime"
	"github.com/steer-dev/steer/bench/scale"
	"github.com/steer-dev/steer/bench/server"
	"github.com/steer-dev/steer/bench/weight"
)

// settings are the flags.
type settings struct {
	only, json, chart, benchstat, upstream, root string
	quick, cold, publish                         bool
	rounds                                       int
}

func main() {
	var s settings
	flag.StringVar(&s.only, "only", "", "run one group: server, pods, etcd, etcdscale, etcdservers, webhooks, aggregation, fairness, envtest, weight, runtime, generate or scale (default: all but etcdscale)")
	flag.StringVar(&s.json, "json", "", "write everything measured to this file")
	flag.StringVar(&s.chart, "chart", "", "write an SVG chart to this file")
	flag.StringVar(&s.benchstat, "benchstat", "", "write everything measured to this file in the format of Go's benchmarks")
	flag.BoolVar(&s.publish, "publish", false, "keep what was measured in docs/measured.json, and rewrite docs/measured.md, docs/growth.svg and the figures of README.md from it")
	flag.StringVar(&s.upstream, "upstream", os.Getenv("STEER_UPSTREAM_BIN"), "directory with the binaries of module oracle (upstream, kube-apiserver, etcd)")
	flag.StringVar(&s.root, "root", "..", "directory of the main module")
	flag.BoolVar(&s.quick, "quick", false, "a tenth of the work, once")
	flag.BoolVar(&s.cold, "cold", false, "weight: also compile from an empty cache (minutes of CPU)")
	flag.IntVar(&s.rounds, "rounds", 0, "how often each side runs (default: 3, or 1 with -quick)")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "sidebyside:", err)
		os.Exit(1)
	}
}

// group is measured into a report. prepare builds what it takes into dir, which is
// not measured and takes as long as it takes, and returns what measures.
type group struct {
	name    string
	prepare func(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error)
	// limit is how long it may measure. 0: groupLimit.
	limit time.Duration
	// named: it runs only where -only names it.
	named bool
}

type measurement func(ctx context.Context) error

// groups in the order in which they run.
func groups() []group {
	return []group{
		{name: "server", prepare: prepareServer},
		{name: "pods", prepare: preparePods},
		{name: "etcd", prepare: prepareEtcd},
		{name: "etcdscale", prepare: prepareEtcdScale, limit: time.Hour, named: true},
		{name: "etcdservers", prepare: prepareEtcdServers},
		{name: "webhooks", prepare: prepareWebhooks},
		{name: "aggregation", prepare: prepareAggregation},
		{name: "fairness", prepare: prepareFairness},
		{name: "envtest", prepare: prepareEnvtest},
		{name: "weight", prepare: prepareWeight},
		{name: "runtime", prepare: prepareRuntime},
		{name: "generate", prepare: prepareGenerate},
		{name: "scale", prepare: prepareScale},
	}
}

func run(ctx context.Context, s settings) error {
	out := report.New(time.Now())
	kept, err := report.ReadKept(s.root)
	if err != nil {
		return err
	}
	var failed []error
	ran := false
	for _, g := range groups() {
		if s.only != g.name && (s.only != "" || g.named) {
			continue
		}
		ran = true
		one := report.New(time.Now())
		one.Command = s.flags(g.name)
		if err := g.measure(ctx, s, one); err != nil {
			failed = append(failed, fmt.Errorf("group %s: %w", g.name, err)) // the others still count
		} else {
			kept[g.name] = one
		}
		out.Merge(one)
	}
	if !ran {
		var names []string
		for _, g := range groups() {
			names = append(names, g.name)
		}
		return fmt.Errorf("no group %q; there are %s", s.only, strings.Join(names, ", "))
	}
	failed = append(failed, out.WriteTable(os.Stdout), write(s.json, out.WriteJSON), write(s.chart, out.WriteChart), write(s.benchstat, out.WriteBenchstat))
	if s.publish {
		failed = append(failed, kept.Publish(s.root))
	}
	return errors.Join(failed...)
}

// measure runs the group within its time, in a directory that goes afterwards.
func (g group) measure(ctx context.Context, s settings, out *report.Report) (err error) {
	dir, err := os.MkdirTemp("", "steer-sidebyside-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	run, err := g.prepare(ctx, s, dir, out)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(g.limit, groupLimit))
	defer cancel()
	return run(ctx)
}

// groupLimit is how long a group may measure that has no limit of its own.
const groupLimit = 10 * time.Minute

// flags are those that run one group as it was run.
func (s settings) flags(group string) string {
	text := "-only " + group
	if s.quick {
		text += " -quick"
	}
	if s.cold && group == "weight" {
		text += " -cold"
	}
	if s.rounds > 0 {
		text += fmt.Sprint(" -rounds ", s.rounds)
	}
	return text
}

// write creates a file; no name writes nothing.
func write(name string, content func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(content(file), file.Close())
}

// build compiles a command into a directory and returns the binary.
func build(ctx context.Context, into, dir, pkg string) (string, error) {
	binary := filepath.Join(into, filepath.Base(pkg))
	command := exec.CommandContext(ctx, "go", "build", "-o", binary, pkg)
	command.Dir, command.Stderr = dir, os.Stderr
	command.Env = append(os.Environ(), "CGO_ENABLED=0") // as images of operators are built
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("build %s: %w", pkg, err)
	}
	return binary, nil
}

func prepareServer(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, upstream, err := servers(ctx, s, dir, out)
	scale := choose(s, server.Full, server.Quick)
	s.setRounds(&scale.Rounds)
	return func(ctx context.Context) error { return server.Run(ctx, out, os.Stderr, steer, upstream, scale) }, err
}

func prepareEtcd(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	upstream := server.Kubernetes{Binaries: s.upstream}
	if !upstream.Built() {
		return nil, errors.New("it needs kube-apiserver and etcd: build module oracle, and name the folder with -upstream")
	}
	binary, err := build(ctx, dir, filepath.Join(s.root, "storage", "etcd"), "./cmd/steer-etcd")
	scale := choose(s, server.Full, server.Quick)
	s.setRounds(&scale.Rounds)
	return func(ctx context.Context) error {
		return server.RunEtcd(ctx, out, os.Stderr, server.Steer{Binary: binary}, upstream, scale)
	}, err
}

func prepareEtcdScale(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, etcd, err := onEtcd(ctx, s, dir)
	objects := choose(s, server.FullEtcdScale, server.QuickEtcdScale)
	return func(ctx context.Context) error { return server.RunEtcdScale(ctx, out, os.Stderr, steer, etcd, objects) }, err
}

func prepareEtcdServers(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, etcd, err := onEtcd(ctx, s, dir)
	scale := choose(s, server.Full, server.Quick)
	s.setRounds(&scale.Rounds)
	return func(ctx context.Context) error { return server.RunEtcdServers(ctx, out, os.Stderr, steer, etcd, scale) }, err
}

// onEtcd returns steer-etcd, and the program etcd.
func onEtcd(ctx context.Context, s settings, dir string) (steer server.Steer, etcd string, err error) {
	if etcd, err = server.EtcdBinary(s.upstream); err != nil {
		return steer, "", err
	}
	steer.Binary, err = build(ctx, dir, filepath.Join(s.root, "storage", "etcd"), "./cmd/steer-etcd")
	return steer, etcd, err
}

func preparePods(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, upstream, err := servers(ctx, s, dir, out)
	scale := choose(s, server.FullPods, server.QuickPods)
	s.setRounds(&scale.Rounds)
	return func(ctx context.Context) error { return server.RunPods(ctx, out, os.Stderr, steer, upstream, scale) }, err
}

func prepareWebhooks(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, upstream, err := servers(ctx, s, dir, out)
	scale := choose(s, server.FullWebhooks, server.QuickWebhooks)
	s.setRounds(&scale.Rounds)
	return func(ctx context.Context) error {
		return server.RunWebhooks(ctx, out, os.Stderr, steer, upstream, scale)
	}, err
}

func prepareAggregation(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, upstream, err := servers(ctx, s, dir, out)
	if err != nil {
		return nil, err
	}
	backend, err := build(ctx, dir, filepath.Join(s.root, "bench"), "./cmd/probe-backend")
	scale := choose(s, server.FullAggregation, server.QuickAggregation)
	s.setRounds(&scale.Rounds)
	return func(ctx context.Context) error {
		return server.RunAggregation(ctx, out, os.Stderr, steer, upstream, backend, scale)
	}, err
}

func prepareFairness(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, upstream, err := servers(ctx, s, dir, out)
	scale := choose(s, server.FullFairness, server.QuickFairness)
	s.setRounds(&scale.Rounds)
	return func(ctx context.Context) error {
		return server.RunFairness(ctx, out, os.Stderr, steer, upstream, scale)
	}, err
}

func prepareEnvtest(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	binary, err := build(ctx, dir, s.root, "./cmd/steer")
	if err != nil {
		return nil, err
	}
	bench, err := filepath.Abs(filepath.Join(s.root, "bench"))
	if err != nil {
		return nil, err
	}
	programs := envtest.Programs{Steer: filepath.Join(dir, "assets"), Definitions: filepath.Join(bench, "envtest", "config", "crd")}
	if err := envtest.Link(binary, programs.Steer); err != nil {
		return nil, err
	}
	if programs.Suite, err = build(ctx, dir, bench, "./cmd/probe-envtest"); err != nil {
		return nil, err
	}
	if reference(s, out) != nil {
		programs.Upstream = s.upstream
	}
	scale := choose(s, envtest.Full, envtest.Quick)
	s.setRounds(&scale.Rounds)
	return func(ctx context.Context) error { return envtest.Run(ctx, out, os.Stderr, programs, scale) }, nil
}

// choose returns what a run does.
func choose[T any](s settings, full, quick func() T) T {
	if s.quick {
		return quick()
	}
	return full()
}

// setRounds replaces the default if the flag is set.
func (s settings) setRounds(rounds *int) {
	if s.rounds > 0 {
		*rounds = s.rounds
	}
}

// servers are both control planes; upstream is nil if kube-apiserver is not built.
func servers(ctx context.Context, s settings, dir string, out *report.Report) (steer, upstream server.Subject, err error) {
	binary, err := build(ctx, dir, s.root, "./cmd/steer")
	if err != nil {
		return nil, nil, err
	}
	bare, err := build(ctx, dir, filepath.Join(s.root, "bench"), "./cmd/probe-bare")
	return server.Steer{Binary: binary, Bare: bare}, reference(s, out), err
}

// reference is the real control plane, nil if it is not built.
func reference(s settings, out *report.Report) server.Subject {
	if kubernetes := (server.Kubernetes{Binaries: s.upstream}); kubernetes.Built() {
		return kubernetes
	}
	out.Note("kube-apiserver and etcd were not measured: build them with `go build -o bin/ ./cmd/...` in oracle/ and pass -upstream oracle/bin")
	return nil
}

func prepareWeight(_ context.Context, s settings, _ string, out *report.Report) (measurement, error) {
	return func(ctx context.Context) error {
		return weight.Run(ctx, out, os.Stderr,
			weight.Program{Dir: s.root, Package: "./examples/replicas/cmd"},
			weight.Program{Dir: filepath.Join(s.root, "bench"), Package: "./upstream/replicas"}, s.cold)
	}, nil
}

func prepareRuntime(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, probes, err := buildRuntime(ctx, dir, s)
	if err != nil {
		return nil, err
	}
	probes.Tests = filepath.Join(dir, "steertest.test")
	compile := exec.CommandContext(ctx, "go", "test", "-c", "-o", probes.Tests, "./steertest")
	compile.Dir, compile.Stderr = s.root, os.Stderr
	if err := compile.Run(); err != nil {
		return nil, fmt.Errorf("compile the tests of steertest: %w", err)
	}
	rounds, objects := 3, 10000
	if s.quick {
		rounds, objects = 1, 1000
	}
	s.setRounds(&rounds)
	// Without the disk: how long a flush takes is the server's business, and the
	// tail of a change would be nothing else.
	subject := server.Steer{Binary: steer, InMemory: true}
	return func(ctx context.Context) error {
		return runtime.Run(ctx, out, os.Stderr, subject, probes, s.root, rounds, objects)
	}, nil
}

// buildRuntime compiles the server and the probes of both sides.
func buildRuntime(ctx context.Context, into string, s settings) (steer string, probes runtime.Probes, err error) {
	bench := filepath.Join(s.root, "bench")
	if steer, err = build(ctx, into, s.root, "./cmd/steer"); err != nil {
		return "", probes, err
	}
	if probes.Steer, err = build(ctx, into, bench, "./cmd/probe-steer"); err != nil {
		return "", probes, err
	}
	probes.Upstream, err = build(ctx, into, bench, "./cmd/probe-controller-runtime")
	return steer, probes, err
}

func prepareScale(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, probes, err := buildRuntime(ctx, dir, s)
	if err != nil {
		return nil, err
	}
	size, upstream := choose(s, scale.Full, scale.Quick), reference(s, out)
	return func(ctx context.Context) error {
		return scale.Run(ctx, out, os.Stderr, server.Steer{Binary: steer}, upstream, probes, size)
	}, nil
}

func prepareGenerate(ctx context.Context, s settings, dir string, out *report.Report) (measurement, error) {
	steer, err := build(ctx, dir, s.root, "./cmd/steer")
	if err != nil {
		return nil, err
	}
	upstream := filepath.Join(dir, "upstream")
	for _, query := range generate.Upstreams() {
		install := exec.CommandContext(ctx, "go", "install", query)
		install.Dir, install.Stderr = dir, os.Stderr
		install.Env = append(os.Environ(), "GOBIN="+upstream, "GOFLAGS=")
		if err := install.Run(); err != nil {
			return nil, fmt.Errorf("install %s: %w", query, err)
		}
	}
	rounds := 3
	if s.quick {
		rounds = 1
	}
	s.setRounds(&rounds)
	return func(ctx context.Context) error {
		return generate.Run(ctx, out, os.Stderr, generate.Binaries{Steer: steer, Upstream: upstream}, rounds)
	}, nil
}
