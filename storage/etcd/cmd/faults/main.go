// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command faults runs three etcd members and three servers of steer up on this machine, and
// in each round breaks something of them under load: processes, the network between them, or
// the data. After each round everything works again, and what the clients of the round have
// seen is checked: the operations on each object are linearizable, and so are the uses and
// the revocation of each token, every acknowledged write is stored, and every watcher has seen every change once and in order. It fails with the
// first round for which that does not hold.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/storage/etcd/internal/cluster"
	"github.com/steer-dev/steer/storage/etcd/internal/traffic"
)

// flags of the command.
type flags struct {
	etcd, etcdutl, steer string
	disks                bool
	rounds               int
	within               time.Duration
	only                 string
}

func main() {
	var f flags
	flag.StringVar(&f.etcd, "etcd", "etcd", "the program etcd")
	flag.StringVar(&f.etcdutl, "etcdutl", "", "the program etcdutl; empty: no backups are restored")
	flag.StringVar(&f.steer, "steer", "steer-etcd", "the program steer-etcd")
	flag.BoolVar(&f.disks, "disks", false, "the disks of members are full and slow as well: this process may mount file systems, in a namespace of its own, and strace may trace members")
	flag.IntVar(&f.rounds, "rounds", 20, "number of rounds")
	flag.DurationVar(&f.within, "within", 0, "begin no round after this time; 0: all")
	flag.StringVar(&f.only, "only", "", "names of faults to play alone, with commas between them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, f)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "faults:", err)
		os.Exit(1)
	}
}

// say writes a line with the time.
func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// found returns the whole path of a program.
func found(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

func run(ctx context.Context, f flags) (err error) {
	var programs [2]string
	for i, name := range []string{f.etcd, f.steer} {
		if programs[i], err = found(name); err != nil {
			return err
		}
	}
	faults, err := chosen(f)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "steer-faults-")
	if err != nil {
		return err
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Etcd: programs[0], Steer: programs[1], LeaseTime: 4 * time.Second, Disks: f.disks, Log: say})
	defer func() {
		if c != nil {
			c.Close()
		}
		if err != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w (logs: %s)", err, dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if err != nil {
		return err
	}
	p := &player{cluster: c, etcdutl: f.etcdutl, total: map[string]int{}}
	if p.config, err = clientcmd.BuildConfigFromFlags("", c.Servers[0].Kubeconfig()); err != nil {
		return err
	}
	began := time.Now()
	for n := range f.rounds {
		if f.within != 0 && time.Since(began) > f.within {
			break
		}
		if err := p.round(ctx, n, faults[n%len(faults)]); err != nil {
			return err
		}
	}
	p.sum(time.Since(began))
	return nil
}

// chosen returns the faults to play.
func chosen(f flags) ([]fault, error) {
	out := all(f.etcdutl != "", f.disks)
	if f.only == "" {
		return out, nil
	}
	names := strings.Split(f.only, ",")
	out = slices.DeleteFunc(out, func(f fault) bool { return !slices.Contains(names, f.name) })
	if len(out) != len(names) {
		return nil, fmt.Errorf("not all of %s are faults", f.only)
	}
	return out, nil
}

// player plays rounds.
type player struct {
	cluster *cluster.Cluster
	config  *rest.Config
	etcdutl string

	rounds, succeeded, failed, events, watches, gaps int
	total                                            map[string]int
}

// round plays one fault under load and checks what clients have seen.
func (p *player) round(ctx context.Context, n int, f fault) error {
	ctx, cancel := context.WithTimeout(ctx, 6*time.Minute)
	defer cancel()
	began := time.Now()
	fail := func(err error) error { return fmt.Errorf("round %d, %s: %w", n, f.name, err) }
	tlsConfig, err := rest.TLSConfigFor(p.config)
	if err != nil {
		return fail(err)
	}
	tlsConfig.NextProtos = nil // those of the transport
	start := func(name string) (t *traffic.Run, err error) {
		err = p.cluster.Retry(ctx, time.Minute, func(ctx context.Context) error {
			t, err = traffic.Start(ctx, traffic.Options{
				Address: p.cluster.Balancer.Address(), TLS: tlsConfig, Name: fmt.Sprintf("%s%d", name, time.Now().UnixNano()),
				Clients: 5, Watchers: 3, Pause: 10 * time.Millisecond, Timeout: 5 * time.Second,
			})
			return err
		})
		return t, err
	}
	t, err := start(fmt.Sprintf("n%d-", n))
	if err != nil {
		return fail(err)
	}
	if err := t.Await(ctx, 50); err != nil {
		return fail(err)
	}
	if f.quiet { // what is written meanwhile is lost by intention
		before, err := t.Finish(ctx, false)
		if err != nil {
			return fail(err)
		}
		p.add(before)
	}
	if err := f.play(ctx, p); err != nil {
		return fail(err)
	}
	if err := p.cluster.Heal(ctx); err != nil {
		return fail(err)
	}
	if f.quiet {
		if t, err = start(fmt.Sprintf("n%d-", n)); err != nil {
			return fail(err)
		}
	}
	if err := t.Await(ctx, 50); err != nil {
		return fail(err)
	}
	report, err := t.Finish(ctx, f.gaps)
	if err != nil {
		return fail(err)
	}
	p.add(report)
	p.rounds++
	p.total[f.name]++
	say("%3d  %-34s %5d requests, %3d failed, %5d events in %2d watches, %5.1f s",
		n, f.name, report.Succeeded+report.Failed, report.Failed, report.Events, report.Watches, time.Since(began).Seconds())
	return nil
}

func (p *player) add(r traffic.Report) {
	p.succeeded += r.Succeeded
	p.failed += r.Failed
	p.events += r.Events
	p.watches += r.Watches
	p.gaps += r.Gaps
}

func (p *player) sum(took time.Duration) {
	say("%d rounds in %v: %d requests succeeded, %d failed or have an unknown outcome; %d events in %d watches, %d of them after a gap; no acknowledged write is lost",
		p.rounds, took.Round(time.Second), p.succeeded, p.failed, p.events, p.watches, p.gaps)
	for _, name := range slices.Sorted(maps.Keys(p.total)) {
		fmt.Printf("%5d  %s\n", p.total[name], name)
	}
}
