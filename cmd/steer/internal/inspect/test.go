// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/dev"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/cmd/steer/internal/rights"
	"github.com/steer-dev/steer/internal/children"
	"github.com/steer-dev/steer/scaffold/project"
)

// rightsFolder has the rights that the tests used, below the folder of the project.
const rightsFolder = project.StateDir + "/rights"

// rightsVariable is steertest.RightsVariable; that package is for tests only.
const rightsVariable = "STEERTEST_RIGHTS"

// NewTest returns the command test.
func NewTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test [ARGUMENTS OF go test]",
		Short: "Run the tests of a project, and report which rights of its operator they use",
		Long: `Runs go test with the arguments, on all packages if they name none, and with the exit
status of go test. Tests of steertest run the operator under its generated role. When
all packages and tests ran, it says how many of the rights of the markers they used,
and which no test used. steer lint compares what they used with the markers.`,
		Example:            "  steer test\n  steer test -race\n  steer test ./internal/controller -run Scales -v",
		DisableFlagParsing: true, // they are those of go test
		RunE: func(cmd *cobra.Command, args []string) error {
			if slices.Contains(args, "--help") || slices.Contains(args, "-h") {
				return cmd.Help()
			}
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			line := progress.Start(cmd.ErrOrStderr(), "building and running the tests")
			defer line.Stop()
			return runTests(cmd.Context(), dir, args, line.Writer(cmd.OutOrStdout()), line.Writer(cmd.ErrOrStderr()))
		},
	}
}

func runTests(ctx context.Context, dir string, args []string, out, errs io.Writer) error {
	p, err := project.Read(dir)
	if errors.Is(err, project.ErrUsage) {
		return command.Usage(err.Error())
	}
	if err != nil {
		return err
	}
	args, whole := testArguments(args, p.Repo)
	cmd := exec.Command("go", append([]string{"test"}, args...)...) // it is what the command is for
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, errs
	if !term.IsTerminal(int(os.Stdin.Fd())) { // it would be stopped by reading from that
		cmd.Stdin = os.Stdin
	}
	folder := filepath.Join(dir, rightsFolder)
	if whole {
		if err := dev.MakeState(dir); err != nil {
			return err
		}
		if err := errors.Join(os.RemoveAll(folder), os.Mkdir(folder, 0o755)); err != nil {
			return err
		}
		cmd.Env = append(os.Environ(), rightsVariable+"="+folder)
	}
	err = children.Run(ctx, cmd)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if whole { // what did not run used nothing
			err = os.RemoveAll(folder)
		}
		return errors.Join(err, &command.ExitError{Status: children.ExitStatus(exit)})
	}
	if err != nil || !whole {
		return err
	}
	return coverage(ctx, dir, p, folder, errs)
}

// testArguments completes the arguments of go test, and reports whether all tests of the
// project run. Then results are not taken from the cache: cached tests use no rights.
func testArguments(args []string, module string) (_ []string, whole bool) {
	end := len(args) // what follows is for the test binaries
	named, some, counted := false, false, false
	for i := 0; i < end; i++ {
		arg := args[i]
		name, _, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimLeft(arg, "-"), "test."), "=")
		switch {
		case !strings.HasPrefix(arg, "-"):
			named = named || strings.HasPrefix(arg, ".") || arg == module || strings.HasPrefix(arg, module+"/")
		case name == "args":
			end = i
		default:
			some = some || slices.Contains([]string{"run", "skip", "short", "list", "c"}, name)
			counted = counted || name == "count"
			if !hasValue && command.TakesValue(name) {
				i++
			}
		}
	}
	if named {
		return args, false
	}
	more := []string{"./..."}
	if !some && !counted {
		more = []string{"-count=1", "./..."}
	}
	return slices.Insert(slices.Clone(args), end, more...), !some
}

// coverage says what the tests used of the rights of the markers.
func coverage(ctx context.Context, dir string, p *project.Project, folder string, errs io.Writer) error {
	used, err := rights.ReadUsed(folder)
	if err != nil || len(used) == 0 {
		return errors.Join(err, os.RemoveAll(folder)) // no operator ran
	}
	sources, err := rights.Read(ctx, dir, p)
	if err != nil {
		return err
	}
	seen, all := sources.Coverage(used)
	fmt.Fprintf(errs, "steer: the tests used %d of the %s that the markers give\n", seen, command.Count(all, "right"))
	for _, finding := range sources.Findings(used) {
		fmt.Fprintln(errs, finding.String())
	}
	return nil
}
