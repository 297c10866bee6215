// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"

	"golang.org/x/term"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/dev/webhooks"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/internal/children"
)

// CommandOptions are those of [Command].
type CommandOptions struct {
	// Manifests are files and folders to apply first, in this order. None: those of the
	// project in the working directory, if it has a file PROJECT.
	Manifests []string
	// Webhooks says where Services are; those of webhooks that its Services do not name lead to
	// the command.
	Webhooks webhookclient.Options
	// WebhookPort is the port of this machine at which the command serves webhooks.
	// Default: [DefaultWebhookPort].
	WebhookPort uint16
	// Errs gets the line that sets KUBECONFIG, and what becomes of the webhooks.
	Errs io.Writer
}

// DefaultWebhookPort is that of controller-runtime.
const DefaultWebhookPort = 9443

// Command runs a command against a control plane in memory until the command or ctx
// ends. An [*exec.ExitError] is how the command ended; see [children.ExitStatus].
func Command(ctx context.Context, o CommandOptions, command []string) (err error) {
	var project kustomized
	if len(o.Manifests) == 0 {
		if project, err = readKustomized("."); err != nil {
			return err
		}
		o.Manifests = project.manifests
	}
	objects, err := manifest.Read(o.Manifests...)
	if err != nil {
		return err
	}
	local := webhooks.New(net.JoinHostPort("127.0.0.1", strconv.Itoa(int(cmp.Or(o.WebhookPort, DefaultWebhookPort)))))
	services := o.Webhooks
	services.Resolve = local.Resolve
	// Found before anything starts, so that a typo costs nothing.
	program, err := exec.LookPath(command[0])
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	plane, stop, err := StartPlane(ctx, controlplane.Options{Listen: "127.0.0.1:0", Webhooks: services})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	dir, err := os.MkdirTemp("", "steer-dev-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	env, err := environment(dir)
	if err != nil {
		return err
	}
	kubeconfig := filepath.Join(dir, "kubeconfig")
	if err := plane.WriteKubeconfig(kubeconfig); err != nil {
		return err
	}
	c, err := client.New(plane.RESTConfig(), client.Options{FieldOwner: "steer-dev"})
	if err != nil {
		return err
	}
	now, later := local.Divide(services.Services, objects)
	if err := manifest.Apply(ctx, c, "", now); err != nil {
		return err
	}
	if err := project.patch(ctx, c); err != nil {
		return err
	}
	fmt.Fprintf(o.Errs, "export KUBECONFIG=%s # while the command runs\n", kubeconfig)

	running, ended := context.WithCancel(ctx)
	applied := make(chan error, 1)
	go func() { applied <- local.ApplyOnceServed(running, c, later, o.Errs) }()
	err = runCommand(ctx, program, command, append(env, "KUBECONFIG="+kubeconfig)...)
	ended()
	if failed := <-applied; err == nil {
		err = failed
	}
	return err
}

// environment makes the folder for temporary files of a command, with a certificate for its
// webhooks where controller-runtime looks for it, and returns the variables that name it.
func environment(dir string) ([]string, error) {
	temporary := filepath.Join(dir, "tmp")
	if err := webhooks.WriteCertificate(filepath.Join(temporary, "k8s-webhook-server", "serving-certs")); err != nil {
		return nil, err
	}
	return []string{"TMPDIR=" + temporary, "TMP=" + temporary, "TEMP=" + temporary}, nil // TMP and TEMP for Windows
}

// runCommand runs the command in a process group of its own and passes signals
// on to all of it: `go run` and its like do not hand them to their child.
func runCommand(ctx context.Context, program string, command []string, env ...string) error {
	child := &exec.Cmd{
		Path: program, Args: command, Stdout: os.Stdout, Stderr: os.Stderr,
		Env: append(os.Environ(), env...),
	}
	// A background process group that reads from a terminal is stopped by it.
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		child.Stdin = os.Stdin
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	running, err := children.Start(child)
	if err != nil {
		return fmt.Errorf("dev: %w", err)
	}
	done := make(chan error, 1)
	go func() { done <- running.Wait() }()

	ended := ctx.Done()
	for {
		select {
		case err := <-done:
			return err
		case s := <-signals:
			running.Signal(s.(syscall.Signal))
		case <-ended:
			// A cancelled context that no signal explains.
			ended = nil
			running.Signal(syscall.SIGTERM)
		}
	}
}
