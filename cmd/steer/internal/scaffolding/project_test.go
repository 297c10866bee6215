// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffolding

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/project"
)

func TestChangesOfAProjectAreListed(t *testing.T) {
	t.Parallel()
	var out, errs strings.Builder
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	report := &project.Report{Restored: 1, Created: []string{"a.go"}, Changed: []string{"PROJECT"}, Removed: []string{"b.go"}, Notes: []string{"c.go is left"}}
	if err := conclude(cmd, report, nil, "go on"); err != nil {
		t.Fatal(err)
	}
	if want := "create a.go\nchange PROJECT\nremove b.go\n"; out.String() != want {
		t.Errorf("printed %q, want %q", out.String(), want)
	}
	if want := "steer: 1 file restored after an earlier command that was interrupted\nsteer: c.go is left\nsteer: go on\n"; errs.String() != want {
		t.Errorf("noted %q, want %q", errs.String(), want)
	}
}

func TestErrorsOfAProjectHaveTheirStatus(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err    error
		status int
	}{
		{fmt.Errorf("%w: there is no PROJECT", project.ErrUsage), command.UsageStatus},
		{&generate.SourceError{}, 1},
	} {
		cmd := &cobra.Command{}
		var exit *command.ExitError
		if err := conclude(cmd, nil, test.err, ""); !errors.As(err, &exit) || exit.Status != test.status {
			t.Errorf("%v: got %v, want the status %d", test.err, err, test.status)
		}
	}
	other := errors.New("disk full")
	if err := conclude(&cobra.Command{}, nil, other, ""); !errors.Is(err, other) {
		t.Errorf("got %v, want %v", err, other)
	}
}

// TestAdditionsOfKustomizationsAreThoseOfTheFile: the next command would take away what a flag
// has added.
func TestAdditionsOfKustomizationsAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	cmd := NewPackage()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"kustomize", "--with=records,alerts"})
	var exit *command.ExitError
	if err := cmd.ExecuteContext(t.Context()); !errors.As(err, &exit) || exit.Status != command.UsageStatus || !strings.Contains(err.Error(), "write with: [records, alerts] there") {
		t.Errorf("got %v", err)
	}
}
