// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/scaffold/adopt"
)

// setupName is the name of the program that installs those of envtest. Under it this one
// links itself in their place.
const setupName = "setup-envtest"

func newSetupCommand() *cobra.Command {
	root := &cobra.Command{Use: setupName, Short: "Make a folder in which Steer stands in for the programs of envtest", SilenceErrors: true, SilenceUsage: true}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return command.Usage(err.Error()) })
	var binDir, form string
	use := &cobra.Command{
		Use:   "use [VERSION]",
		Short: "Make the folder for a version of Kubernetes, and print it; Steer serves the API of one version in all of them",
		RunE: func(cmd *cobra.Command, args []string) error {
			version := fmt.Sprintf("1.%d.0", command.KubernetesMinor)
			switch {
			case len(args) > 1:
				return command.Usage("use takes one version")
			case len(args) == 1 && args[0] != "latest" && args[0] != "":
				version = args[0]
			}
			if !slices.Contains([]string{"path", "env", "overview"}, form) {
				return command.Usage(fmt.Sprintf("--print %q is not known: give path, env or overview", form))
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			if program, err = filepath.EvalSymlinks(program); err != nil {
				return err
			}
			dir, err := adopt.Assets(binDir, version, program)
			if err != nil {
				return err
			}
			return printAssets(cmd.OutOrStdout(), form, version, dir)
		},
	}
	command.Group(root, use)
	f := root.PersistentFlags()
	f.StringVar(&binDir, "bin-dir", defaultBinDir(), "folder in which k8s/VERSION-OS-ARCH is made")
	f.StringVarP(&form, "print", "p", "overview", "what to print: path, env or overview")
	// What makes a difference only where something is downloaded.
	for _, name := range []string{"installed-only", "use-env", "force", "verify", "use-deprecated-gcs"} {
		f.Bool(name, false, "no effect: nothing is downloaded")
	}
	f.Lookup("installed-only").Shorthand = "i"
	for _, name := range []string{"arch", "os", "index", "remote-bucket", "remote-server"} {
		f.String(name, "", "no effect: nothing is downloaded")
	}
	return root
}

// printAssets prints a folder in a form that --print takes.
func printAssets(out io.Writer, form, version, dir string) error {
	var err error
	switch form {
	case "path":
		_, err = fmt.Fprint(out, dir)
	case "env":
		_, err = fmt.Fprintf(out, "export KUBEBUILDER_ASSETS='%s'\n", dir)
	default:
		_, err = fmt.Fprintf(out, "Version: %s\nOS/Arch: steer %s in place of Kubernetes\nPath: %s\n", version, command.Version(), dir)
	}
	return err
}

// defaultBinDir is where setup-envtest keeps its folders.
func defaultBinDir() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return "."
	}
	return filepath.Join(cmp.Or(os.Getenv("XDG_DATA_HOME"), filepath.Join(home, ".local", "share")), "kubebuilder-envtest")
}
