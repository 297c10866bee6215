// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"
)

func TestArgumentsThatAreNotValidHaveTheStatusOfUsage(t *testing.T) {
	t.Parallel()
	nothing := func(*cobra.Command, []string) error { return nil }
	for want, args := range map[string][]string{
		`unknown command "creat" for "steer": did you mean create?`:    {"creat"},
		`unknown command "x" for "steer"`:                              {"x"},
		`steer create api takes flags only, but was given "guestbook"`: {"create", "api", "guestbook"},
	} {
		root := Group(&cobra.Command{Use: "steer", SilenceErrors: true, SilenceUsage: true},
			Group(&cobra.Command{Use: "create"}, &cobra.Command{Use: "api", Args: NoArguments, RunE: nothing}))
		root.SetArgs(args)
		var exit *ExitError
		if err := root.ExecuteContext(t.Context()); !errors.As(err, &exit) || exit.Status != UsageStatus || exit.Message != want {
			t.Errorf("%v: got %v, want %s", args, err, want)
		}
	}
}

func TestOriginIsTheCheckout(t *testing.T) {
	t.Parallel()
	version, checkout := Origin()
	if version != "" || checkout == "" {
		t.Errorf("got version %q and checkout %q of a test in the checkout", version, checkout)
	}
}
