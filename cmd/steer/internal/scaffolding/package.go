// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package scaffolding

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/bundle"
	"github.com/steer-dev/steer/scaffold/chart"
	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/kustomize"
	"github.com/steer-dev/steer/scaffold/project"
)

// packaging is what is shown while a package is made.
const packaging = "generating, and making the package"

// NewPackage returns the command package.
func NewPackage() *cobra.Command {
	return command.Group(&cobra.Command{Use: "package", Short: "Make what brings the operator of a project to a cluster"},
		newPackageYAMLCommand(), newPackageKustomizeCommand(), newPackageHelmCommand(), newPackageOLMCommand())
}

func newPackageYAMLCommand() *cobra.Command {
	var image, output string
	var with []string
	cmd := &cobra.Command{
		Use:   "yaml",
		Short: "Write all objects of a deployment to one file for kubectl apply",
		Long: `Writes the CRDs, the roles with their bindings, the Deployment with a restricted
security context, Services, a NetworkPolicy, a PodDisruptionBudget and the webhook
configurations to one file. Image, namespace, replicas and resources are those of
steer.yaml. What the types and markers say is generated for it: nothing else is written.

--with=records keeps the records of reconciles in files of each Pod, for steer why, history
and tree with --records NAMESPACE/deploy/NAME; --with=grafana adds a board of the metrics in a
ConfigMap, and --with=alerts a PrometheusRule and a ServiceMonitor. steer.yaml keeps that as
with: [records, grafana, alerts].`,
		Example: `  steer package yaml
  steer package yaml --with=records,grafana,alerts
  steer package yaml --image registry.example.com/guestbook:v1 -o - | kubectl apply --server-side -f -`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			line := progress.Start(cmd.ErrOrStderr(), packaging)
			text, err := deployment(cmd.Context(), dir, image, with)
			line.Stop()
			var wrong *generate.SourceError
			switch {
			case errors.As(err, &wrong):
				command.PrintProblems(cmd.ErrOrStderr(), wrong)
				return err
			case errors.Is(err, project.ErrUsage):
				return command.Usage(err.Error())
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
	withFlag(cmd, &with)
	cmd.Flags().StringVarP(&output, "output", "o", filepath.Join("dist", "install.yaml"), "file to write, or - for standard output")
	return cmd
}

func newPackageKustomizeCommand() *cobra.Command {
	var o kustomize.Options
	var with []string
	cmd := &cobra.Command{
		Use:   "kustomize",
		Short: "Write the kustomizations of a deployment to the folder config",
		Long: `Writes config/default and the folders that it is made of (crd, manager, network-policy,
rbac, webhook and, with serviceMonitor in steer.yaml, prometheus), as projects of
kubebuilder have them, and config/samples. kubectl apply -k config/default installs what
package yaml writes. CRDs, roles and webhooks are the files of steer generate.

Files that were edited since they were written are left, and named when what is generated
for them has changed.`,
		Example: `  steer package kustomize
  kubectl apply --server-side -k config/default`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("with") {
				return command.Usage("package kustomize has no --with, since steer create and make manifests write the kustomizations by steer.yaml alone: write with: [" + strings.Join(with, ", ") + "] there")
			}
			return change(cmd, packaging, kustomize.Write, o, "")
		},
	}
	cmd.Flags().StringVar(&o.Image, "image", "", "image of the operator (default: that of steer.yaml)")
	cmd.Flags().StringSliceVar(&with, "with", nil, "refused: write it into steer.yaml")
	_ = cmd.Flags().MarkHidden("with") // it is there
	cmd.Flags().BoolVar(&o.Force, "force", false, "write files anew that were edited")
	return cmd
}

func newPackageHelmCommand() *cobra.Command {
	var o chart.Options
	cmd := &cobra.Command{
		Use:   "helm",
		Short: "Write a Helm chart of the deployment",
		Long: `Writes a chart of the objects of package yaml. Its values, which have the names of those
of kubebuilder's charts, are image, replicas and resources, and whether there are CRDs,
metrics, a ServiceMonitor, a NetworkPolicy and webhooks. CRDs are templates, so that an
upgrade of the release upgrades them. --with adds what it adds to package yaml, each with
a value that turns it off.

Files that were edited since they were written are left, and named when what is generated
for them has changed; values.yaml gets the values that it does not have. --image and
--version change edited files, too.`,
		Example: `  steer package helm
  steer package helm --image registry.example.com/guestbook:v1 --version 1.0.0
  helm upgrade --install guestbook dist/chart --namespace guestbook-system --create-namespace`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return change(cmd, packaging, chart.Write, o, "")
		},
	}
	cmd.Flags().StringVar(&o.Image, "image", "", "image of the operator that values.yaml names (default: that of steer.yaml)")
	withFlag(cmd, &o.With)
	cmd.Flags().StringVar(&o.Version, "version", "", "version of the chart (default 0.1.0)")
	cmd.Flags().StringVarP(&o.Output, "output", "o", filepath.Join("dist", "chart"), "folder of the chart")
	cmd.Flags().BoolVar(&o.Force, "force", false, "write files anew that were edited")
	return cmd
}

func newPackageOLMCommand() *cobra.Command {
	var o bundle.Options
	cmd := &cobra.Command{
		Use:   "olm",
		Short: "Write a bundle for the Operator Lifecycle Manager",
		Long: `Writes a bundle of the form registry+v1: a ClusterServiceVersion with the Deployment,
the rights, the kinds and the webhooks of the operator, its CRDs, and the annotations.
What is for people comes from config/manifests/bases/NAME.clusterserviceversion.yaml,
and from the markers of operator-sdk in the Go types.

Files that were edited since they were written are left, and named when what is generated
for them has changed.`,
		Example: `  steer package olm --version 0.1.0
  steer package olm --version 0.2.0 --replaces guestbook.v0.1.0 --channels stable,alpha`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return change(cmd, packaging, bundle.Write, o, "")
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Version, "version", "", "version of the bundle, such as 0.1.0")
	f.StringVar(&o.Replaces, "replaces", "", "name of the version before, such as guestbook.v0.1.0")
	f.StringSliceVar(&o.Channels, "channels", []string{"alpha"}, "channels that the bundle is in, the default one first")
	f.StringVar(&o.Image, "image", "", "image of the operator (default: that of steer.yaml)")
	withFlag(cmd, &o.With)
	f.StringVarP(&o.Output, "output", "o", "bundle", "folder of the bundle")
	f.BoolVar(&o.Force, "force", false, "write files anew that were edited")
	return cmd
}

// withFlag adds the flag --with.
func withFlag(cmd *cobra.Command, with *[]string) {
	cmd.Flags().StringSliceVar(with, "with", nil, "further parts, of "+strings.Join(deploy.Additions(), ", ")+" (default: those of steer.yaml)")
}

// deployment is the manifest of all objects of a project's deployment.
func deployment(ctx context.Context, dir, image string, with []string) ([]byte, error) {
	project, settings, err := deploy.ReadProject(dir, image, with...)
	if err != nil {
		return nil, err
	}
	objects, err := deploy.Objects(ctx, dir, project, settings)
	if err != nil {
		return nil, err
	}
	return deploy.YAML(objects)
}
