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

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/demo"
	dev "github.com/steer-dev/steer/cmd/steer/internal/dev/flags"
	"github.com/steer-dev/steer/cmd/steer/internal/envtest"
	"github.com/steer-dev/steer/cmd/steer/internal/explain"
	"github.com/steer-dev/steer/cmd/steer/internal/generator"
	"github.com/steer-dev/steer/cmd/steer/internal/inspect"
	"github.com/steer-dev/steer/cmd/steer/internal/scaffolding"
	"github.com/steer-dev/steer/cmd/steer/internal/sim"
	"github.com/steer-dev/steer/cmd/steer/up"
)

func main() {
	os.Exit(run(context.Background(), os.Args[1:]))
}

// run executes the command line and returns the exit status: 0 for success, that of a
// [command.ExitError], which commands that run a child end with, or 1.
func run(ctx context.Context, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()

	root := newProgram(os.Args[0])
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	name := "steer"
	if root.Name() == generator.CompatibleName {
		name = generator.CompatibleName
	}
	var exit *command.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		if exit.Message != "" {
			fmt.Fprintln(os.Stderr, name+": "+exit.Message)
		}
		return exit.Status
	default:
		fmt.Fprintln(os.Stderr, name+": "+err.Error())
		return 1
	}
}

// newProgram returns what the program is under the name it was started with:
// itself, or one that it stands in for.
func newProgram(name string) *cobra.Command {
	name = strings.TrimSuffix(filepath.Base(name), ".exe")
	if name == generator.CompatibleName {
		return generator.NewCompatible()
	}
	if program := envtest.New(name); program != nil {
		return program
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
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.Usage(err.Error()) })
	return command.Group(root,
		scaffolding.NewInit(),
		scaffolding.NewCreate(),
		scaffolding.NewEdit(),
		scaffolding.NewDelete(),
		scaffolding.NewAdopt(),
		up.New(nil),
		up.NewSnapshot(nil),
		up.NewService(),
		demo.New(),
		dev.New(),
		explain.NewHistory(),
		explain.NewWhy(),
		explain.NewTree(),
		explain.NewPage(),
		inspect.NewTest(),
		sim.New(),
		generator.New(),
		inspect.NewLint(),
		scaffolding.NewPackage(),
		inspect.NewDoctor(),
		inspect.NewVersion(),
	)
}
