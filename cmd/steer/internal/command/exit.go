// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command holds what the commands of steer share: exit statuses, arguments,
// forms of output, and the version of the program.
package command

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// Exit statuses beside 0, success, and 1, a failure.
const (
	UsageStatus = 2 // arguments, flags and names that are not valid
	DriftStatus = 3 // files are not what they should be
)

// ExitError ends the program with a status of its own.
type ExitError struct {
	Status int
	// Message is printed to standard error; empty: nothing is.
	Message string
}

func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d: %s", e.Status, e.Message) }

// Usage returns an error about the arguments of a command.
func Usage(message string) error { return &ExitError{Status: UsageStatus, Message: message} }

// Group makes parent a command that has subcommands and does nothing itself.
func Group(parent *cobra.Command, children ...*cobra.Command) *cobra.Command {
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
		return Usage(message)
	}
	return parent
}

// NoArguments refuses arguments that are no flags.
func NoArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return Usage(fmt.Sprintf("%s takes flags only, but was given %q", cmd.CommandPath(), args[0]))
}
