// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffolding holds the commands that write files of a project: init, create, delete,
// adopt and package.
package scaffolding

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/project"
)

// NewInit returns the command init.
func NewInit() *cobra.Command {
	var o scaffold.InitOptions
	fetch := true
	var plugins []string
	var version string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Start a project in the working directory",
		Long: `Starts a project: a Go module with an operator that has no controllers yet, and the
file PROJECT. Add kinds to it with steer create api. Flags that kubebuilder's init has, too,
mean what they mean there; --plugins, --project-version and --skip-go-version-check are
accepted and change nothing.

Existing files are not overwritten without --force; a go.mod that is there is kept
and completed. If the command fails, all files are as they were.`,
		Example: `  steer init --domain example.com
  steer init --domain example.com --repo github.com/example/guestbook --license apache2 --owner 'Example Inc.'`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Offline = !fetch
			if version != project.Version {
				return command.Usage(fmt.Sprintf("--project-version %q is not known: this steer writes version %s", version, project.Version))
			}
			if len(plugins) > 0 {
				fmt.Fprintln(cmd.ErrOrStderr(), "steer: --plugins changes nothing: --layout, --with and steer package have what plugins add")
			}
			if o.Checkout == "" {
				o.Steer, o.Checkout = command.Origin()
			} else if dir, err := filepath.Abs(o.Checkout); err == nil {
				o.Checkout = dir
			}
			return change(cmd, "making the project", scaffold.Init, o, "go on with: go tool steer create api --group GROUP --version v1 --kind KIND")
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.Domain, "domain", "my.domain", "domain of the API groups")
	f.StringVar(&o.Repo, "repo", "", "path of the Go module (default: that of go.mod, or DOMAIN/NAME)")
	f.StringVar(&o.Name, "project-name", "", "name of the project and its operator (default: the name of the folder)")
	f.StringVar(&o.License, "license", "none", "license in the headers of Go files: apache2 or none")
	f.StringVar(&o.LicenseFile, "license-file", "", "file with the text of the headers, in place of --license")
	f.StringVar(&o.Owner, "owner", "", "owner that the headers name")
	f.StringSliceVar(&plugins, "plugins", nil, "accepted from kubebuilder's users; changes nothing")
	f.StringVar(&version, "project-version", project.Version, "accepted from kubebuilder's users; has to be the default")
	f.Bool("skip-go-version-check", false, "accepted from kubebuilder's users; changes nothing")
	f.BoolVar(&o.MultiGroup, "multigroup", false, "give every API group folders of its own")
	f.StringVar(&o.Layout, "layout", "lean", "files of the project: "+strings.Join(scaffold.Layouts(), " or ")+", which adds kustomizations and a Dockerfile")
	f.StringSliceVar(&o.With, "with", nil, "further files: "+strings.Join(scaffold.Extras(), ", "))
	f.BoolVar(&fetch, "fetch-deps", true, "complete go.mod and go.sum, from the network where modules are missing")
	f.StringVar(&o.Checkout, "replace", "", "folder with Steer's sources to use in place of a release (default: the checkout that this steer was built in, if it was)")
	f.BoolVar(&o.Force, "force", false, "overwrite existing files")
	return cmd
}

// NewCreate returns the command create.
func NewCreate() *cobra.Command {
	return command.Group(&cobra.Command{Use: "create", Short: "Add to a project"}, newCreateAPICommand(), newCreateWebhookCommand(), newCreateServerCommand())
}

// NewEdit returns the command edit.
func NewEdit() *cobra.Command {
	var o scaffold.EditOptions
	cmd := &cobra.Command{
		Use:   "edit",
		Short: "Change what a project was made with",
		Long: `With --multigroup, files of kinds that are added go to folders by API group, and the
project may have several groups. Files that are there stay where they are, and all commands
find them there; who moves those of a kind changes its path in PROJECT.`,
		Example: `  steer edit --multigroup`,
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("multigroup") {
				return command.Usage("edit: nothing to change: give --multigroup")
			}
			return change(cmd, "changing the project", scaffold.Edit, o, "")
		},
	}
	cmd.Flags().BoolVar(&o.MultiGroup, "multigroup", false, "give every API group that is added folders of its own")
	return cmd
}

// NewDelete returns the command delete.
func NewDelete() *cobra.Command {
	return command.Group(&cobra.Command{Use: "delete", Short: "Remove from a project"}, newDeleteAPICommand(), newDeleteWebhookCommand(), newDeleteServerCommand())
}

func newCreateAPICommand() *cobra.Command {
	var o scaffold.APIOptions
	resource, controller, namespaced, run := true, true, true, true
	cmd := &cobra.Command{
		Use:   "api",
		Short: "Add a kind, or a version of one, with a controller and its test",
		Long: `Adds a kind to a project of steer init: Go types, a controller, a test of it, a sample.
The flags mean what those of kubebuilder's create api mean; --controller-name and --ssa are
not there.

A further version of a kind begins with the types and the sample of the highest one that
there is; the version that there was stays the one that is stored. --resource=false makes
a controller only, of a kind of k8s.io/api, of one that the project has, or of one of another
module, which --external-api-path names.`,
		Example: `  steer create api --group webapp --version v1 --kind Guestbook
  steer create api --group webapp --version v2 --kind Guestbook
  steer create api --group apps --version v1 --kind Deployment --resource=false
  steer create api --group cert-manager --version v1 --kind Certificate --resource=false \
    --external-api-domain io --external-api-path github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.ClusterScoped, o.NoResource, o.NoController, o.NoGenerate = !namespaced, !resource, !controller, !run
			return change(cmd, "adding the kind", scaffold.CreateAPI, o, "")
		},
	}
	f := cmd.Flags()
	gvkFlags(cmd, &o.GVK)
	f.StringVar(&o.Plural, "plural", "", "name of the resource (default: the plural of the kind)")
	f.BoolVar(&namespaced, "namespaced", true, "objects belong to namespaces")
	externalFlags(cmd, &o.External)
	f.BoolVar(&resource, "resource", true, "make the types")
	f.BoolVar(&controller, "controller", true, "make the controller")
	f.BoolVar(&run, "make", true, "bring generated files, go.mod and go.sum up to date afterwards")
	f.BoolVar(&o.Force, "force", false, "overwrite existing files")
	return cmd
}

func newCreateWebhookCommand() *cobra.Command {
	var o scaffold.WebhookOptions
	run := true
	cmd := &cobra.Command{
		Use:   "webhook",
		Short: "Add webhooks of a kind that complete, validate and convert its objects",
		Long: `Adds a defaulter, a validator or both to a kind of the project, of k8s.io/api or, with
--external-api-path, of another module, and with --conversion makes the version of a kind of
the project the hub that its other versions convert to and from. The flags mean what those
of kubebuilder's create webhook mean. A second webhook joins the file of the first, whose
code stays.`,
		Example: `  steer create webhook --group webapp --version v1 --kind Guestbook --defaulting --programmatic-validation
  steer create webhook --group webapp --version v2 --kind Guestbook --conversion --spoke v1
  steer create webhook --group core --version v1 --kind Pod --defaulting`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.NoGenerate = !run
			return change(cmd, "adding the webhooks", scaffold.CreateWebhook, o, "")
		},
	}
	f := cmd.Flags()
	gvkFlags(cmd, &o.GVK)
	f.BoolVar(&o.Defaulting, "defaulting", false, "make a defaulter")
	f.BoolVar(&o.Validation, "programmatic-validation", false, "make a validator")
	f.StringVar(&o.DefaultingPath, "defaulting-path", "", "`path` at which the defaulter is served (default /mutate-GROUP-VERSION-KIND)")
	f.StringVar(&o.ValidationPath, "validation-path", "", "`path` at which the validator is served (default /validate-GROUP-VERSION-KIND)")
	externalFlags(cmd, &o.External)
	f.BoolVar(&o.Conversion, "conversion", false, "make the version the hub of a conversion")
	f.StringSliceVar(&o.Spokes, "spoke", nil, "with --conversion: other `versions` of the kind that are converted (default: all)")
	f.BoolVar(&run, "make", true, "bring generated files, go.mod and go.sum up to date afterwards")
	f.BoolVar(&o.Force, "force", false, "overwrite existing files")
	return cmd
}

func newCreateServerCommand() *cobra.Command {
	var o scaffold.ServerOptions
	namespaced, run := true, true
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Add a custom API server, or a kind that it serves",
		Long: `Adds a custom API server to a project, in cmd/server, with the Go types of the kind. Its
definition is generated from them into cmd/server/definitions, which the server embeds:
no cluster gets it. A second kind joins the server. The server runs beside the operator
in steer dev and alone with make run-server; steer package yaml and helm deploy it. See
docs/custom-api-servers.md of Steer.`,
		Example: `  steer create server --group notes --version v1 --kind Note
  make run-server`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.ClusterScoped, o.NoGenerate = !namespaced, !run
			return change(cmd, "adding the server", scaffold.CreateServer, o, "")
		},
	}
	f := cmd.Flags()
	gvkFlags(cmd, &o.GVK)
	f.StringVar(&o.Plural, "plural", "", "name of the resource (default: the plural of the kind)")
	f.BoolVar(&namespaced, "namespaced", true, "objects belong to namespaces")
	f.BoolVar(&run, "make", true, "bring generated files, go.mod and go.sum up to date afterwards")
	f.BoolVar(&o.Force, "force", false, "overwrite existing files")
	return cmd
}

func newDeleteServerCommand() *cobra.Command {
	return newDeletion(scaffold.DeleteServer, "server", "Remove a kind from the custom API server, and the server with the last one",
		`Removes types and definition of a kind of the custom API server, and with the last kind
the server. Files with contents that git does not have are removed with --force only.`)
}

func newDeleteWebhookCommand() *cobra.Command {
	return newDeletion(scaffold.DeleteWebhook, "webhook", "Remove the webhooks of a kind",
		`Removes defaulter, validator and conversion, and what was generated of them. Files
with contents that git does not have are removed with --force only.`)
}

func newDeleteAPICommand() *cobra.Command {
	return newDeletion(scaffold.DeleteAPI, "api", "Remove a version of a kind, with the last one also the controller",
		`Removes types, sample and generated files of a version of a kind, and with the last version
the controller and its test; while there is another one, they are changed to reconcile that.
Files with contents that git does not have are removed with --force only.`)
}

// newDeletion is a command that removes a part of a kind.
func newDeletion(remove func(context.Context, scaffold.DeleteOptions) (*project.Report, error), what, short, long string) *cobra.Command {
	var o scaffold.DeleteOptions
	example := "  steer delete " + what + " --group webapp --version v1 --kind Guestbook"
	cmd := &cobra.Command{
		Use: what, Short: short, Long: long,
		Example: example + " --dry-run\n" + example,
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return change(cmd, "removing", remove, o, "")
		},
	}
	gvkFlags(cmd, &o.GVK)
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "print what would change, and change nothing")
	cmd.Flags().BoolVar(&o.Force, "force", false, "remove files also where git does not have their contents")
	return cmd
}

func gvkFlags(cmd *cobra.Command, gvk *project.GVK) {
	f := cmd.Flags()
	f.StringVar(&gvk.Group, "group", "", "API group, without the domain")
	f.StringVar(&gvk.Version, "version", "", "version of the API, such as v1 or v1alpha1")
	f.StringVar(&gvk.Kind, "kind", "", "kind, such as Guestbook")
}

func externalFlags(cmd *cobra.Command, external *project.External) {
	f := cmd.Flags()
	f.StringVar(&external.Path, "external-api-path", "", "Go `package` that has the type of a kind of another module")
	f.StringVar(&external.Domain, "external-api-domain", "", "`domain` of the group of that kind")
	f.StringVar(&external.Module, "external-api-module", "", "`module@version` that has the package (default: what go mod tidy finds)")
}

// change runs a function that changes the files of a project, shows what it is doing, and
// prints what it has done, and next, what to do now.
func change[O any](cmd *cobra.Command, doing string, run func(context.Context, O) (*project.Report, error), o O, next string) error {
	line := progress.Start(cmd.ErrOrStderr(), doing)
	report, err := run(cmd.Context(), o)
	line.Stop()
	return conclude(cmd, report, err, next)
}

// conclude prints what a command has done, and next, what to do now.
func conclude(cmd *cobra.Command, report *project.Report, err error, next string) error {
	out, errs := cmd.OutOrStdout(), cmd.ErrOrStderr()
	var wrong *generate.SourceError
	switch {
	case errors.As(err, &wrong):
		command.PrintProblems(errs, wrong)
		return &command.ExitError{Status: 1, Message: err.Error() + "; all files are as they were"}
	case errors.Is(err, project.ErrUsage):
		return command.Usage(err.Error())
	case err != nil:
		return err
	}
	if report.Restored > 0 {
		fmt.Fprintf(errs, "steer: %s restored after an earlier command that was interrupted\n", command.Count(report.Restored, "file"))
	}
	for _, list := range []struct {
		what  string
		names []string
	}{{"create", report.Created}, {"change", report.Changed}, {"remove", report.Removed}} {
		for _, name := range list.names {
			fmt.Fprintf(out, "%s %s\n", list.what, name)
		}
	}
	for _, note := range report.Notes {
		fmt.Fprintln(errs, "steer: "+note)
	}
	if next != "" {
		fmt.Fprintln(errs, "steer: "+next)
	}
	return nil
}
