// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package steer is the front door of an operator: what its main needs.
//
//	func main() {
//		steer.Main(steer.Operator{
//			Name:   "crontab-operator",
//			Scheme: steer.Scheme{v1.AddToScheme, batchv1.AddToScheme},
//			Setup: func(ctx context.Context, m *manager.Manager) error {
//				return controller.Add(m, &Reconciler{Client: m.Client()})
//			},
//		})
//	}
//
// Flags, configuration, signals, logging, probes, metrics and leader election
// come with it, under the names that kubebuilder projects and their manifests
// use.
package steer

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
)

// Scheme lists the AddToScheme functions of the API packages whose Go types an
// operator uses.
type Scheme []func(*runtime.Scheme) error

// Operator is a program that reconciles.
type Operator struct {
	// Name of the operator, such as "crontab-operator"; see
	// manager.Options.Name. Required.
	Name string
	// Scheme of its Go types.
	Scheme Scheme
	// Setup adds the controllers. It runs once, before anything starts.
	Setup func(ctx context.Context, m *manager.Manager) error
	// Flags registers flags of the operator's own beside the standard ones; nil
	// registers none.
	Flags func(*flag.FlagSet)
	// Configure changes the manager's options after flags and environment have
	// been read; nil changes nothing.
	Configure func(*manager.Options)
	// Config of the cluster, in place of what flags and environment say; nil
	// means them. Tests and in-process control planes set it.
	Config *rest.Config
}

// Main runs the operator with the arguments of the process until SIGINT or
// SIGTERM, and exits: with status 0 when it was told to stop, 2 when the
// arguments are wrong, 1 otherwise. A second signal exits at once. The log of
// the operator becomes that of the process: what slog's default logger and
// client-go (klog) say goes to it.
func Main(op Operator) {
	ctx, stop := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go obey(signals, stop) // as long as the process
	adopt := func(log *slog.Logger, libraries slog.Level) {
		slog.SetDefault(log)
		klog.SetSlogLogger(slog.New(quieter{log.Handler(), libraries}))
	}
	switch err := run(ctx, os.Args[1:], op, adopt); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		os.Exit(0)
	case errors.Is(err, ErrUsage):
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	default:
		slog.Error("the operator ended", "operator", op.Name, "error", err)
		os.Exit(1)
	}
}

// obey stops the operator at the first signal and the process at the second.
func obey(signals <-chan os.Signal, stop func()) {
	slog.Info("Stopping", "signal", (<-signals).String(), "advice",
		"wait for what is running to return; a second signal ends the process at once and leaves the leader lease to expire")
	stop()
	slog.Error("Ended by a second signal: what was running is cut off, and the next leader waits until the lease expires", "signal", (<-signals).String())
	os.Exit(1)
}

// ErrUsage is wrapped by errors about flags and arguments.
var ErrUsage = errors.New("usage")

// Run is Main without a process around it: it returns when ctx ends, with nil,
// or when the operator fails.
func Run(ctx context.Context, args []string, op Operator) error {
	return run(ctx, args, op, func(*slog.Logger, slog.Level) {})
}

// Options returns the options of the operator's manager as [Run] makes them of
// the arguments and the environment. before changes them first, [Operator.Configure]
// then has the last word. It is for those who run the manager themselves, such as
// package steertest.
func (op Operator) Options(args []string, before func(*manager.Options)) (manager.Options, error) {
	s, err := parseFlags(args, op)
	if err != nil {
		return manager.Options{}, err
	}
	return op.options(s, before)
}

func (op Operator) options(s *settings, before func(*manager.Options)) (manager.Options, error) {
	scheme, err := client.NewScheme(op.Scheme...)
	if err != nil {
		return manager.Options{}, fmt.Errorf("steer: %w", err)
	}
	o := s.options(op.Name, scheme)
	before(&o)
	if op.Configure != nil {
		op.Configure(&o)
	}
	return o, nil
}

// run is Run with a function that is given the log, and the lowest level of what
// libraries log, before anything happens.
func run(ctx context.Context, args []string, op Operator, adopt func(*slog.Logger, slog.Level)) error {
	if op.Name == "" || op.Setup == nil {
		return errors.New("steer: Operator.Name and Operator.Setup are required")
	}
	s, err := parseFlags(args, op)
	if err != nil {
		return err
	}
	opts, err := op.options(s, func(*manager.Options) {})
	if err != nil {
		return err
	}
	adopt(opts.Log, s.log.libraries())
	cfg := op.Config
	if cfg == nil {
		if cfg, err = s.config(); err != nil {
			return err
		}
	}
	opts.RecordDir = cmp.Or(opts.RecordDir, os.Getenv("STEER_RECORD_DIR")) // as steer dev has it
	m, err := manager.New(cfg, opts)
	if err != nil {
		return err
	}
	if err := op.Setup(ctx, m); err != nil {
		return fmt.Errorf("steer: set up %s: %w", op.Name, err)
	}
	return m.Start(ctx)
}
