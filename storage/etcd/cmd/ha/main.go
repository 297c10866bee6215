// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command ha runs three etcd members and three servers of steer up on this machine, with
// clients, kubectl and an operator at work behind a TCP balancer, and restarts all six
// processes one after the other; with -from the servers change from one version to another
// thereby, and back. It fails if one request failed, or if a watcher missed a change. With
// -keep it leaves the cluster running until it is interrupted.
package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/storage/etcd/internal/cluster"
	"github.com/steer-dev/steer/storage/etcd/internal/traffic"
)

// flags of the command.
type flags struct {
	etcd, steer, from, operator, definitions string
	rounds                                   int
	keep                                     bool
}

func main() {
	var f flags
	flag.StringVar(&f.etcd, "etcd", "etcd", "the program etcd")
	flag.StringVar(&f.steer, "steer", "steer-etcd", "the program steer-etcd")
	flag.StringVar(&f.from, "from", "", "the program steer-etcd of an earlier version, with which the servers run before they are restarted with -steer, and again after that; empty: the same")
	flag.StringVar(&f.operator, "operator", "", "the operator of examples/replicas; empty: none runs")
	flag.StringVar(&f.definitions, "definitions", "", "folder of the definitions of the operator")
	flag.IntVar(&f.rounds, "rounds", 1, "how often all processes are restarted")
	flag.BoolVar(&f.keep, "keep", false, "leave the cluster running until it is interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, f)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "ha:", err)
		os.Exit(1)
	}
}

// say writes a line with the time.
func say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

func run(ctx context.Context, f flags) (err error) {
	dir, err := os.MkdirTemp("", "steer-ha-")
	if err != nil {
		return err
	}
	etcd, err := exec.LookPath(f.etcd)
	if err != nil {
		return err
	}
	steer, err := exec.LookPath(f.steer)
	if err != nil {
		return err
	}
	say("three members of etcd and three servers start in %s", dir)
	programs := []string{absolute(steer)}
	if f.from != "" {
		from, err := exec.LookPath(f.from)
		if err != nil {
			return err
		}
		programs = []string{absolute(steer), absolute(from)}
	}
	c, err := cluster.Start(ctx, cluster.Options{Dir: dir, Etcd: absolute(etcd), Steer: programs[len(programs)-1], Log: say})
	defer func() {
		if c != nil {
			c.Close()
		}
		if err != nil {
			err = fmt.Errorf("%w (logs: %s)", err, dir)
			return
		}
		err = os.RemoveAll(dir)
	}()
	if err != nil {
		return err
	}
	kubeconfig := c.Servers[0].Kubeconfig()
	say("they are up behind https://%s: export KUBECONFIG=%s", c.Balancer.Address(), kubeconfig)
	work, err := begin(ctx, c, f, kubeconfig)
	if err != nil {
		return err
	}
	for range f.rounds {
		for _, program := range programs {
			if err := rolling(ctx, c, work.traffic, program); err != nil {
				return errors.Join(err, work.end(ctx))
			}
		}
	}
	if err := work.end(ctx); err != nil {
		return err
	}
	if f.keep {
		say("the cluster runs until this program is interrupted")
		<-ctx.Done()
	}
	return nil
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// rolling restarts all servers, with a program, and all members, one after the other.
func rolling(ctx context.Context, c *cluster.Cluster, t *traffic.Run, program string) error {
	settle := func() error {
		within, cancel := context.WithTimeout(ctx, 2*time.Minute)
		defer cancel()
		return t.Await(within, 200)
	}
	if err := settle(); err != nil {
		return err
	}
	for _, s := range c.Servers {
		say("server %d restarts with %s", s.Index, program)
		s.Stop()
		s.Program = program
		if err := s.Start(ctx); err != nil {
			return err
		}
		if err := settle(); err != nil {
			return err
		}
	}
	for _, m := range c.Members {
		say("etcd %s restarts", m.Name)
		if err := c.Yield(ctx, m); err != nil {
			return err
		}
		m.Stop()
		if err := m.Start(); err != nil {
			return err
		}
		if err := c.Ready(ctx, m); err != nil {
			return err
		}
		if err := settle(); err != nil {
			return err
		}
	}
	return nil
}

// work is what goes on while processes are restarted.
type work struct {
	traffic  *traffic.Run
	operator *children.Child // nil: there is none
	env      []string
	log      string

	stop    context.CancelFunc
	kubectl sync.WaitGroup
	mu      sync.Mutex
	calls   int
	failed  []error
}

func begin(ctx context.Context, c *cluster.Cluster, f flags, kubeconfig string) (*work, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	tlsConfig, err := clientTLS(config)
	if err != nil {
		return nil, err
	}
	w := &work{env: append(os.Environ(), "KUBECONFIG="+kubeconfig), log: filepath.Join(c.Dir, "operator.log")}
	if f.operator != "" && w.hasKubectl() {
		if err := w.operate(ctx, f); err != nil {
			return nil, err
		}
	}
	w.traffic, err = traffic.Start(ctx, traffic.Options{
		Address: c.Balancer.Address(), TLS: tlsConfig, Name: "ha", Clients: 6, Watchers: 3,
		Pause: 20 * time.Millisecond, Timeout: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	if !w.hasKubectl() {
		say("there is no kubectl: it is left out")
		return w, nil
	}
	loop, stop := context.WithCancel(ctx)
	w.stop = stop
	w.kubectl.Go(func() {
		for n := 0; loop.Err() == nil; n++ {
			w.call("apply", "-f", "-", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"kubectl","namespace":"default"},"data":{"n":"%d"}}`, n))
			w.call("get", "configmaps,namespaces", "-A", "")
			if w.operator != nil {
				w.call("scale", "fleets.example.com/ha", fmt.Sprintf("--replicas=%d", 1+n%5), "")
			}
		}
	})
	return w, nil
}

func (w *work) hasKubectl() bool {
	_, err := exec.LookPath("kubectl")
	return err == nil
}

func clientTLS(config *rest.Config) (*tls.Config, error) {
	c, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, err
	}
	c.NextProtos = nil // those of the transport
	return c, nil
}

// operate starts the operator and gives it something to do.
func (w *work) operate(ctx context.Context, f flags) error {
	for _, args := range [][]string{
		{"apply", "-f", f.definitions, ""},
		{"wait", "--for=condition=Established", "crd/fleets.example.com", ""},
		{"apply", "-f", "-", `{"apiVersion":"example.com/v1","kind":"Fleet","metadata":{"name":"ha","namespace":"default"},"spec":{"replicas":2,"image":"i"}}`},
	} {
		if err := w.kubectlRun(ctx, args...); err != nil {
			return err
		}
	}
	log, err := os.Create(w.log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the operator has it
	cmd := exec.Command(f.operator, "--health-probe-bind-address=0", "--metrics-bind-address=0")
	cmd.Env, cmd.Stdout, cmd.Stderr = w.env, log, log
	w.operator, err = children.Start(cmd)
	return err
}

// kubectlRun runs kubectl; the last argument is its input.
func (w *work) kubectlRun(ctx context.Context, args ...string) error {
	last := len(args) - 1
	_, err := w.kubectlOutput(ctx, args[last], args[:last]...)
	return err
}

// kubectlOutput runs kubectl with an input and returns what it prints.
func (w *work) kubectlOutput(ctx context.Context, input string, args ...string) (string, error) {
	var out, errs bytes.Buffer
	cmd := exec.Command("kubectl", args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = w.env, strings.NewReader(input), &out, &errs
	if err := children.Run(ctx, cmd); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s%s", strings.Join(args, " "), err, out.Bytes(), errs.Bytes())
	}
	return out.String(), nil
}

// call is kubectlRun where failures are counted.
func (w *work) call(args ...string) {
	err := w.kubectlRun(context.Background(), args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls++
	if err != nil {
		w.failed = append(w.failed, err)
	}
}

// end ends the work and returns what failed.
func (w *work) end(ctx context.Context) error {
	if w.stop != nil {
		w.stop()
	}
	w.kubectl.Wait()
	var errs []error
	if w.operator != nil {
		errs = append(errs, w.settled(ctx))
		w.operator.Signal(syscall.SIGTERM)
		if err := w.operator.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("the operator: %w", err))
		}
		errs = append(errs, w.quiet())
	}
	within, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	report, err := w.traffic.Finish(within, false)
	errs = append(errs, err)
	errs = append(errs, report.Failures...)
	errs = append(errs, w.failed...)
	say("%d requests and %d runs of kubectl, of which %d and %d failed; %d events in %d watches",
		report.Succeeded+report.Failed, w.calls, report.Failed, len(w.failed), report.Events, report.Watches)
	return errors.Join(errs...)
}

// settled waits until the operator has done what the last kubectl scale asked for.
func (w *work) settled(ctx context.Context) error {
	for began := time.Now(); ; {
		get := func(args ...string) string {
			out, _ := w.kubectlOutput(ctx, "", append([]string{"get"}, args...)...) // compared below
			return strings.TrimSpace(out)
		}
		want := get("fleets.example.com/ha", "-o", "jsonpath={.spec.replicas}")
		pods := get("pods", "-l", "example.com/fleet=ha", "-o", "name")
		if got := fmt.Sprint(len(strings.Fields(pods))); want != "" && got == want {
			say("the operator has made the %s Pods of the fleet", want)
			return nil
		} else if time.Since(began) > time.Minute {
			return fmt.Errorf("the operator has made %s Pods, want %s", got, want)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// quiet returns the errors that the operator has logged.
func (w *work) quiet() error {
	text, err := os.ReadFile(w.log)
	if err != nil {
		return err
	}
	var errs []error
	for line := range bytes.Lines(text) {
		if bytes.Contains(line, []byte(`"level":"ERROR"`)) || bytes.Contains(line, []byte("level=ERROR")) {
			errs = append(errs, fmt.Errorf("the operator logs: %s", bytes.TrimSpace(line)))
		}
	}
	return errors.Join(errs...)
}
