// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffolding

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/scaffold/adopt"
	"github.com/steer-dev/steer/scaffold/project"
)

// NewAdopt returns the command adopt.
func NewAdopt() *cobra.Command {
	var o adopt.Options
	var undo, report, measure bool
	cmd := &cobra.Command{
		Use:   "adopt",
		Short: "Let a project of kubebuilder or operator-sdk generate and test with Steer",
		Long: `Changes the recipes of the Makefile that install controller-gen and setup-envtest, in a
project of kubebuilder or operator-sdk with layout v3 or v4: they install Steer under
these names. All targets, suites and sources stay as they are. Recipes of other forms
are named and left.

--undo restores the Makefile, with the edits that were made since. --report changes
nothing; it prints what a move to Steer's runtime would need and what could be deleted
then, and with --measure how long make test takes in a copy before and after.`,
		Example: `  steer adopt --report
  steer adopt
  steer adopt --undo`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Checkout == "" {
				o.Steer, o.Checkout = command.Origin()
			} else if dir, err := filepath.Abs(o.Checkout); err == nil {
				o.Checkout = dir
			}
			var result *adopt.Result
			var err error
			switch {
			case undo && (report || measure):
				return command.Usage("--undo does not go with --report and --measure")
			case undo:
				result, err = adopt.Undo(o.Dir)
			case report || measure:
				return printReport(cmd, o, measure)
			default:
				result, err = adopt.Adopt(o)
			}
			return concludeAdoption(cmd, result, err)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&undo, "undo", false, "restore the Makefile")
	f.BoolVar(&report, "report", false, "print what a move to Steer's runtime would need, and change nothing")
	f.BoolVar(&measure, "measure", false, "report, and measure make test in a copy of the project")
	f.StringVar(&o.Checkout, "replace", "", "folder with Steer's sources to build in place of a release (default: the checkout that this steer was built in, if it was)")
	return cmd
}

// adoptionError gives errors about the project the status of wrong usage.
func adoptionError(err error) error {
	if errors.Is(err, project.ErrUsage) {
		return command.Usage(err.Error())
	}
	return err
}

func concludeAdoption(cmd *cobra.Command, result *adopt.Result, err error) error {
	if err != nil {
		return adoptionError(err)
	}
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	if result.Restored > 0 {
		fmt.Fprintf(errs, "steer: %s restored after an earlier command that was interrupted\n", command.Count(result.Restored, "file"))
	}
	if !result.Changed {
		fmt.Fprintln(errs, "steer: nothing to change")
		return nil
	}
	fmt.Fprintln(out, "change Makefile")
	for _, place := range result.Replaced {
		fmt.Fprintln(out, "replace "+place)
	}
	for _, place := range result.Left {
		fmt.Fprintln(errs, "steer: left, since its form is not known: "+place)
	}
	return nil
}

func printReport(cmd *cobra.Command, o adopt.Options, measure bool) error {
	line := progress.Start(cmd.ErrOrStderr(), "reading the project")
	report, err := adopt.Examine(cmd.Context(), o)
	line.Stop()
	if err != nil {
		return adoptionError(err)
	}
	if _, err := fmt.Fprint(cmd.OutOrStdout(), report.Text()); err != nil || !measure {
		return err
	}
	line = progress.Start(cmd.ErrOrStderr(), "measuring in a copy of the project")
	errs := line.Writer(cmd.ErrOrStderr())
	times, err := adopt.Measure(cmd.Context(), o, func(step string) { fmt.Fprintln(errs, "steer: "+step) })
	line.Stop()
	if err != nil {
		return adoptionError(err)
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), times.Text())
	return err
}
