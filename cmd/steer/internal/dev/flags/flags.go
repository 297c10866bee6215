// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package flags is the command dev with its flags; what it runs is in package dev.
package flags

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/dev"
	"github.com/steer-dev/steer/cmd/steer/internal/planeflags"
	"github.com/steer-dev/steer/controlplane/serviceaddress"
	"github.com/steer-dev/steer/controlplane/webhookclient"
	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/scaffold/project"
)

// devFlags are the flags of steer dev.
type devFlags struct {
	crds     []string
	services planeflags.Services
	debug    string
	port     uint16
	at       remoteFlags
}

// New returns the command.
func New() *cobra.Command {
	f := &devFlags{}
	cmd := &cobra.Command{
		Use:   "dev [[--crds DIR]... -- COMMAND [ARG...]]",
		Short: "Run the operator of a project, or a command, against a control plane of its own",
		Long: `Without a command, in a project of steer init: runs a control plane with simulated
workloads, generates, builds, applies the CRDs and runs the operator; when a file is
saved, generates and builds again, and starts the operator anew. Data and kubeconfig
are kept in .steer, and the address stays the same. Each sample is applied once. The
operator runs under its generated role; what it may not do is printed with the marker
that allows it. In a terminal a screen shows its controllers, and takes keys; elsewhere
the operator reads standard input.

With --debug the operator is built without optimisation and runs under dlv, which
editors attach to; its webhooks have 30 seconds to answer, the most that Kubernetes
allows. It never takes part in leader election.

With --context the operator of a project runs against that cluster of the kubeconfig, as
its service account. What it needs there (namespace, CRDs, account and roles) is first
applied without being persisted; what that would change is printed, and applied once it
is confirmed, at the terminal or with --yes. What a saved file changes is printed and
applied. Webhooks are not called. This process holds the leader lease of the operator,
and refuses to start while another one holds it, unless --takeover is given.

With a command: starts a control plane in memory, applies the manifests, and runs the
command with KUBECONFIG pointing at it. Everything ends with the command, whose exit
status becomes that of steer. The command gets no input from the terminal.

The webhooks of an operator that the command runs are called as in a cluster. The
command finds a certificate where controller-runtime looks for it, since its folder for
temporary files is one of its own (TMPDIR); all Services of webhooks lead to the port
9443 of this machine, and the webhook configurations are applied once it is served.

The first line on standard error is what kubectl needs in another terminal.`,
		Example: `  steer dev
  steer dev --debug
  steer dev --context kind-test
  steer dev -- make run
  steer dev --crds config/crd/bases -- go run ./cmd
  steer dev --crds config/crd/bases --crds config/samples -- go run ./cmd
  steer dev --service system/webhook-service=127.0.0.1:9443 --crds config -- go run ./cmd
  steer dev -- kubectl get namespaces`,
		Args: f.check,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return f.command(cmd, args)
			}
			return f.project(cmd)
		},
	}
	cmd.Flags().StringArrayVar(&f.crds, "crds", nil, "with a command: `file or folder` of CustomResourceDefinitions, or of other manifests such as samples, to apply first, in the order given; may be repeated\n"+
		"(default: where there is a file PROJECT, those of config/crd and config/webhook)")
	cmd.Flags().StringVar(&f.debug, "debug", "", "in a project: build without optimisation, and run under the debugger of Go (dlv) at the `address`")
	cmd.Flags().Lookup("debug").NoOptDefVal = "127.0.0.1:2345"
	cmd.Flags().Uint16Var(&f.port, "webhook-port", dev.DefaultWebhookPort, "with a command: port of this machine at which it serves webhooks")
	f.services.AddFlags(cmd.Flags(), "with a command: ")
	f.at.register(cmd)
	return cmd
}

// check refuses flags and arguments that do not go together.
func (f *devFlags) check(cmd *cobra.Command, args []string) error {
	switch dash := cmd.ArgsLenAtDash(); {
	case len(args) > 0 && dash != 0:
		return command.Usage(fmt.Sprintf("dev: write the command after --, as in: steer dev -- %s", strings.Join(args, " ")))
	case len(args) == 0 && (dash == 0 || len(f.crds) > 0):
		return command.Usage("dev: nothing to run; write the command after --, as in: steer dev -- go run ./cmd")
	case len(args) > 0 && f.debug != "":
		return command.Usage("dev: --debug is for the operator of a project: leave it out, or start the command under dlv")
	case len(args) == 0 && f.services.Given():
		return command.Usage("dev: --" + serviceaddress.Flag + " is for a command; in a project all Services of webhooks lead to the operator: leave it out, or write a command after --")
	}
	return f.at.check(cmd, args)
}

// command runs a command against a control plane of its own. Its exit status is that of the command.
func (f *devFlags) command(cmd *cobra.Command, args []string) error {
	var webhooks webhookclient.Options
	if err := f.services.Apply(&webhooks); err != nil {
		return err
	}
	err := dev.Command(cmd.Context(), dev.CommandOptions{Manifests: f.crds, Webhooks: webhooks, WebhookPort: f.port, Errs: cmd.ErrOrStderr()}, args)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &command.ExitError{Status: children.ExitStatus(exit)}
	}
	return err
}

// project runs the operator of the project in the folder.
func (f *devFlags) project(cmd *cobra.Command) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	remote, err := f.at.remote(cmd)
	if err != nil {
		return err
	}
	err = dev.Project(cmd.Context(), dev.Options{
		Dir: dir, Out: cmd.OutOrStdout(), Errs: cmd.ErrOrStderr(), Cache: command.CacheDir(), Keys: command.DevKeys(), Version: command.Version(),
		Debug: f.debug, Terminal: terminal(), In: input(), Remote: remote,
	})
	if errors.Is(err, project.ErrUsage) {
		return command.Usage(fmt.Sprintf("dev: %v; or write a command after --, as in: steer dev -- go run ./cmd", err))
	}
	return err
}

// input is what commands read. A process group of its own that reads from a terminal is
// stopped by it.
func input() *os.File {
	if term.IsTerminal(int(os.Stdin.Fd())) {
		return nil
	}
	return os.Stdin
}

// terminal is that of the process, nil if it has none.
func terminal() *dev.Terminal {
	if !term.IsTerminal(int(os.Stdin.Fd())) || !term.IsTerminal(int(os.Stdout.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return &dev.Terminal{In: os.Stdin, Out: os.Stdout, NoColor: os.Getenv("NO_COLOR") != ""}
}
