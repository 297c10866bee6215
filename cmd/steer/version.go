// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of Steer and of the Kubernetes API that it serves",
		Example: "  steer version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "steer %s (Kubernetes API 1.36)\n", moduleVersion())
			return err
		},
	}
}

// moduleVersion is the version of Steer that the binary was built from, "devel" in a
// checkout.
func moduleVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	steer := &info.Main
	for _, dep := range info.Deps { // of another module's tool
		if dep.Path == steerModule {
			steer = dep
		}
	}
	if steer.Path != steerModule || steer.Replace != nil || steer.Version == "" || steer.Version == "(devel)" {
		return "devel"
	}
	return steer.Version
}

// steerModule is the module of this program.
const steerModule = "github.com/steer-dev/steer"
