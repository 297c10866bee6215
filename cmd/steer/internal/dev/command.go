// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"golang.org/x/term"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// CommandOptions are those of [Command].
type CommandOptions struct {
	// Manifests are files and folders to apply first, in this order.
	Manifests []string
	// Webhooks says where Services of webhooks are.
	Webhooks webhookclient.Options
	// Errs gets the line that sets KUBECONFIG.
	Errs io.Writer
}

// Command runs a command against a control plane in memory until the command or ctx
// ends. An [*exec.ExitError] is how the command ended; see [ExitStatus].
func Command(ctx context.Context, o CommandOptions, command []string) (err error) {
	objects, err := manifest.Read(o.Manifests...)
	if err != nil {
		return err
	}
	// Found before anything starts, so that a typo costs nothing.
	program, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	plane, stop, err := StartPlane(ctx, controlplane.Options{Listen: "127.0.0.1:0", Webhooks: o.Webhooks})
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
	fmt.Fprintf(o.Errs, "export KUBECONFIG=%s # while the command runs\n", kubeconfig)
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
