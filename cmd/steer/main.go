// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Command steer is the command line of Steer: a Kubernetes control plane in one
// process and everything an operator author does around it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:]))
}

// Exit statuses beside 0 and 1, a failure.
const (
	usageStatus = 2 // arguments, flags and names that cannot be
	driftStatus = 3 // files are not what they should be
)

// run executes the command line and returns the exit status: 0 for success, the
// child's status for commands that run one, usageStatus, driftStatus, or 1.
func run(ctx context.Context, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	root := newProgram(os.Args[0])
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	name := "steer"
	if root.Name() == compatibleName {
		name = compatibleName
	}
	var exit *exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.message != "" {
			fmt.Fprintln(os.Stderr, name+": "+exit.message)
		}
		return exit.status
	default:
		fmt.Fprintln(os.Stderr, name+": "+err.Error())
		return 1
	}
}

// exitError ends the program with a status of its own.
type exitError struct {
	status  int
	message string
}

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d: %s", e.status, e.message) }

// newProgram returns what the program is under the name it was started with:
// itself, or one that it stands in for.
func newProgram(name string) *cobra.Command {
	switch strings.TrimSuffix(filepath.Base(name), ".exe") {
	case compatibleName:
		return newCompatibleCommand()
	case etcdName:
		return newEtcdCommand()
	case apiserverName:
		return newAPIServerCommand()
	case setupName:
		return newSetupCommand()
	}
	return newRootCommand()
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "steer",
		Short:         "Kubernetes operators with the control plane inside",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &exitError{usageStatus, err.Error()} })
	groupOf(root,
		newInitCommand(),
		newCreateCommand(),
		newDeleteCommand(),
		newAdoptCommand(),
		newUpCommand(),
		newSnapshotCommand(),
		newDemoCommand(),
		newDevCommand(),
		newTestCommand(),
		newGenerateCommand(),
		newLintCommand(),
		newPackageCommand(),
		newDoctorCommand(),
		newVersionCommand(),
	)
	return root
}

// groupOf makes a command one that has subcommands and does nothing itself.
func groupOf(parent *cobra.Command, children ...*cobra.Command) *cobra.Command {
	parent.AddCommand(children...)
	parent.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	parent.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		message := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			message += ": did you mean " + strings.Join(near, " or ") + "?"
		}
		return &exitError{usageStatus, message}
	}
	return parent
}

// noArguments refuses arguments that are no flags.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return &exitError{usageStatus, fmt.Sprintf("%s takes flags only, but was given %q", cmd.CommandPath(), args[0])}
}
