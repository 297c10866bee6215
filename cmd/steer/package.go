// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/deploy"
)

func newPackageCommand() *cobra.Command {
	return groupOf(&cobra.Command{Use: "package", Short: "Make what brings the operator of a project to a cluster"}, newPackageYAMLCommand())
}

func newPackageYAMLCommand() *cobra.Command {
	var image, output string
	cmd := &cobra.Command{
		Use:   "yaml",
		Short: "Write all objects of a deployment to one file for kubectl apply",
		Long: `Writes the CRDs, the roles with their bindings, the Deployment with a restricted
security context, Services, a NetworkPolicy, a PodDisruptionBudget and the webhook
configurations to one file. Image, namespace, replicas and resources are those of
steer.yaml. What the types and markers say is generated for it: nothing else is written.`,
		Example: `  steer package yaml
  steer package yaml --image registry.example.com/guestbook:v1 -o - | kubectl apply --server-side -f -`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			text, err := deployment(cmd.Context(), dir, image)
			var wrong *generate.SourceError
			switch {
			case errors.As(err, &wrong):
				printProblems(cmd.ErrOrStderr(), wrong)
				return err
			case errors.Is(err, scaffold.ErrUsage):
				return &exitError{usageStatus, err.Error()}
			case err != nil:
				return err
			case output == "-":
				_, err := cmd.OutOrStdout().Write(text)
				return err
			}
			file := output
			if !filepath.IsAbs(file) {
				file = filepath.Join(dir, file)
			}
			before, err := os.ReadFile(file)
			if err == nil && bytes.Equal(before, text) {
				return nil
			}
			if err := generate.Apply([]generate.Change{{Path: file, Before: before, After: text}}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "write %s\n", output)
			return err
		},
	}
	cmd.Flags().StringVar(&image, "image", "", "image of the operator (default: that of steer.yaml)")
	cmd.Flags().StringVarP(&output, "output", "o", filepath.Join("dist", "install.yaml"), "file to write, or - for standard output")
	return cmd
}

// deployment is the manifest of all objects of a project's deployment.
func deployment(ctx context.Context, dir, image string) ([]byte, error) {
	project, err := scaffold.ReadProject(dir)
	if err != nil {
		return nil, err
	}
	settings, err := deploy.ReadSettings(dir, project)
	if err != nil {
		return nil, err
	}
	if image != "" {
		settings.Image = image
	}
	objects, err := deploy.Objects(ctx, dir, project, settings)
	if err != nil {
		return nil, err
	}
	return deploy.YAML(objects)
}
