// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

func newDevCommand() *cobra.Command {
	var crds, services []string
	cmd := &cobra.Command{
		Use:   "dev [[--crds DIR]... -- COMMAND [ARG...]]",
		Short: "Run the operator of a project, or a command, against a control plane of its own",
		Long: `Without a command, in a project of steer init: runs a control plane with simulated
workloads, generates, builds, applies the CRDs and runs the operator; when a file is
saved, generates and builds again, and starts the operator anew. Data and kubeconfig
are kept in .steer, and the address stays the same. A new control plane gets the
samples. The operator gets no input from the terminal.

With a command: starts a control plane in memory, applies the manifests, and runs the
command with KUBECONFIG pointing at it. Everything ends with the command, whose exit
status becomes that of steer. The command gets no input from the terminal.

The first line on standard error is what kubectl needs in another terminal.`,
		Example: `  steer dev
  steer dev --crds config/crd/bases -- go run ./cmd
  steer dev --crds config/crd/bases --crds config/samples -- go run ./cmd
  steer dev --webhook-service system/webhook-service=127.0.0.1:9443 --crds config -- go run ./cmd
  steer dev -- kubectl get namespaces`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch dash := cmd.ArgsLenAtDash(); {
			case len(args) > 0 && dash != 0:
				return &exitError{usageStatus, fmt.Sprintf("dev: write the command after --, as in: steer dev -- %s", strings.Join(args, " "))}
			case len(args) == 0 && (dash == 0 || len(crds) > 0):
				return &exitError{usageStatus, "dev: nothing to run; write the command after --, as in: steer dev -- go run ./cmd"}
			case len(args) == 0 && len(services) > 0:
				return &exitError{usageStatus, "dev: --" + webhookServiceFlag + " is for a command; in a project all Services of webhooks lead to the operator: leave it out, or write a command after --"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				webhooks, err := webhookOptions(services)
				if err != nil {
					return err
				}
				return dev(cmd.Context(), webhooks, crds, args)
			}
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			return devProject(cmd.Context(), dir, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cmd.Flags().StringArrayVar(&crds, "crds", nil, "with a command: `file or folder` of CustomResourceDefinitions, or of other manifests such as samples, to apply first, in the order given; may be repeated")
	addWebhookServices(cmd.Flags(), &services, "with a command: ")
	return cmd
}

func dev(ctx context.Context, webhooks webhookclient.Options, crds, command []string) (err error) {
	objects, err := manifest.Read(crds...)
	if err != nil {
		return err
	}
	// Found before anything starts, so that a typo costs nothing.
	program, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	plane, stop, err := startPlane(ctx, controlplane.Options{Listen: "127.0.0.1:0", Webhooks: webhooks})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	dir, err := os.MkdirTemp("", "steer-dev-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	c, err := client.New(plane.RESTConfig(), client.Options{FieldOwner: "steer-dev"})
	if err != nil {
		return err
	}
	if err := manifest.Apply(ctx, c, "", objects); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "export KUBECONFIG=%s # while the command runs\n", kubeconfig)
	return runCommand(ctx, program, command, "KUBECONFIG="+kubeconfig)
}

// runCommand runs the command in a process group of its own and passes signals
// on to all of it: `go run` and its like do not hand them to their child.
func runCommand(ctx context.Context, program string, command []string, env ...string) error {
	child := &exec.Cmd{
		Path: program, Args: command, Stdout: os.Stdout, Stderr: os.Stderr,
		Env:         append(os.Environ(), env...),
		SysProcAttr: ownGroup(),
	}
	// A background process group that reads from a terminal is stopped by it.
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		child.Stdin = os.Stdin
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := child.Start(); err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- child.Wait() }()

	ended := ctx.Done()
	for {
		select {
		case err := <-done:
			// Grandchildren that outlived the command end with it.
			killGroup(child.Process)
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return &exitError{status: exitStatus(exit)}
			}
			return err
		case s := <-signals:
			signalGroup(child.Process, s.(syscall.Signal))
		case <-ended:
			// A cancelled context that no signal explains.
			ended = nil
			signalGroup(child.Process, syscall.SIGTERM)
		}
	}
}
