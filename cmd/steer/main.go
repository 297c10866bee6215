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

// run executes the command line and returns the exit status: 0 when it did what
// was asked, the child's status for commands that run one, 1 otherwise.
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
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(
		newUpCommand(),
		newSnapshotCommand(),
		newDemoCommand(),
		newDevCommand(),
		newGenerateCommand(),
		newVersionCommand(),
	)
	return root
}
