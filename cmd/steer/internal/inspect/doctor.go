// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package inspect holds the commands that report what is the case and change nothing: doctor,
// lint, test and version.
package inspect

import (
	"context"
	"errors"
	"fmt"
	goversion "go/version"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/modfile"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/cluster"
	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/project"
)

// minimalGo is the oldest Go that builds Steer, that of its go.mod.
const minimalGo = "go1.26.0"

// lowSpace and noSpace are bytes free on a disk that are few and too few.
const (
	lowSpace = 1 << 30
	noSpace  = 100 << 20
)

// Outcomes of a check.
const (
	fine    = "ok"
	warning = "warn"
	failure = "fail"
)

// finding is the outcome of one check.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Run    string `json:"run,omitempty"` // the command that mends it
}

// NewDoctor returns the command doctor.
func NewDoctor() *cobra.Command {
	var output, kubeconfig string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what Steer needs: Go, ports, disk, the API server, the project",
		Long: `Checks Go, the ports of Steer's programs, the disk, the API server of the kubeconfig
with its version, and, in a project, PROJECT, go.mod, generated files, and whether the
CRDs of the server are those that are generated. Nothing is changed. The exit status is
1 if a check fails.`,
		Example: "  steer doctor\n  steer doctor -o json",
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			line := progress.Start(cmd.ErrOrStderr(), "looking at Go, the server and the project")
			found := examine(cmd.Context(), dir, kubeconfig)
			line.Stop()
			if err := printAs(cmd.OutOrStdout(), output, found, func() string { return tabulate(found) }); err != nil {
				return err
			}
			failed := 0
			for _, f := range found {
				if f.Status == failure {
					failed++
				}
			}
			if failed > 0 {
				return &command.ExitError{Status: 1, Message: command.Count(failed, "check") + " failed"}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "format: json, or text, the default")
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "file that names the server (default: $KUBECONFIG, ~/.kube/config)")
	return cmd
}

// tabulate prints findings, one a line.
func tabulate(found []finding) string {
	var out strings.Builder
	for _, f := range found {
		fmt.Fprintf(&out, "%-4s  %-14s  %s", f.Status, f.Check, f.Text)
		if f.Run != "" {
			fmt.Fprintf(&out, "; run: %s", f.Run)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// examine makes all checks.
func examine(ctx context.Context, dir, kubeconfig string) []finding {
	found := []finding{checkGo(ctx, dir)}
	for _, port := range []struct{ address, use string }{
		{"127.0.0.1:6443", "steer up takes another one with --listen"},
		{":8081", "an operator takes another one for its probes with --health-probe-bind-address"},
		{":9443", "an operator takes another one for its webhooks with --webhook-port"},
	} {
		found = append(found, checkPort(port.address, port.use))
	}
	found = append(found, checkDisk(dir))
	config, server := checkServer(ctx, kubeconfig)
	found = append(found, server)
	if _, err := os.Stat(filepath.Join(dir, project.File)); err == nil {
		of, own := checkProject(dir)
		found = append(found, of)
		if own {
			found = append(found, checkModule(dir), checkGenerated(ctx, dir))
		}
		if own && config != nil {
			found = append(found, checkDefinitions(ctx, dir, config))
		}
	}
	return found
}

func checkGo(ctx context.Context, dir string) finding {
	goEnv := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	goEnv.Dir = dir
	out, err := goEnv.Output()
	if err != nil {
		return finding{"go", failure, "the go command cannot be run: " + err.Error() + "; install Go from https://go.dev/dl", ""}
	}
	return checkGoVersion(strings.TrimSpace(string(out)))
}

// checkGoVersion looks at a version such as go1.26.1, or devel go1.27-1a2b3c of a Go that
// was built from its sources.
func checkGoVersion(is string) finding {
	version, _, _ := strings.Cut(strings.TrimPrefix(is, "devel "), " ")
	if goversion.Compare(version, minimalGo) < 0 {
		return finding{"go", failure, fmt.Sprintf("%s is too old: %s or newer is needed", is, minimalGo), "go get " + strings.Replace(minimalGo, "go", "go@", 1)}
	}
	return finding{"go", fine, is, ""}
}

func checkPort(address, use string) finding {
	name := "port " + address[strings.LastIndexByte(address, ':')+1:]
	l, err := net.Listen("tcp", address)
	if err == nil {
		err = l.Close()
	}
	if err != nil {
		return finding{name, warning, "is in use: " + use, ""}
	}
	return finding{name, fine, "is free", ""}
}

func checkDisk(dir string) finding {
	free, err := freeSpace(dir)
	text := fmt.Sprintf("%d MiB are free", free>>20)
	switch {
	case err != nil:
		return finding{"disk", warning, "its free space is not known: " + err.Error(), ""}
	case free < noSpace:
		return finding{"disk", failure, text + ": builds and control planes need more", "go clean -cache"}
	case free < lowSpace:
		return finding{"disk", warning, text, "go clean -cache"}
	}
	return finding{"disk", fine, text, ""}
}

// checkServer asks the server of the kubeconfig for its version. The configuration is
// nil if it cannot be asked.
func checkServer(ctx context.Context, kubeconfig string) (*rest.Config, finding) {
	config, err := cluster.Config(kubeconfig)
	if errors.Is(err, cluster.ErrNoKubeconfig) {
		return nil, finding{"server", warning, err.Error(), ""}
	}
	if err != nil {
		return nil, finding{"server", failure, err.Error(), ""}
	}
	s := askServer(ctx, kubeconfig)
	switch {
	case s.Error != "":
		return nil, finding{"server", failure, s.text(), ""}
	case !s.Supported:
		return config, finding{"server", warning, s.text(), ""}
	}
	return config, finding{"server", fine, s.text(), ""}
}

// checkProject looks at PROJECT. own is false for a project of another tool, whose module and
// generated files are not Steer's.
func checkProject(dir string) (f finding, own bool) {
	p, err := project.ReadAny(dir)
	if err != nil {
		return finding{"project", failure, err.Error(), ""}, true
	}
	text := fmt.Sprintf("%s with %s", p.Name, command.Count(len(p.Resources), "kind"))
	if slices.ContainsFunc(p.Layout, func(plugin string) bool { return strings.HasPrefix(plugin, "go.kubebuilder.io/") }) {
		return finding{"project", fine, text + ", of layout " + strings.Join(p.Layout, ","), ""}, false
	}
	if _, err := project.Read(dir); err != nil {
		return finding{"project", failure, err.Error(), ""}, true
	}
	if scaffold.Interrupted(dir) {
		return finding{"project", warning, "an earlier steer create or delete was interrupted: the next one restores the files that it had changed", ""}, true
	}
	return finding{"project", fine, text, ""}, true
}

// checkModule looks at what go.mod says of Steer.
func checkModule(dir string) finding {
	file := filepath.Join(dir, "go.mod")
	text, err := os.ReadFile(file)
	if err != nil {
		return finding{"go.mod", failure, err.Error(), "steer init"}
	}
	mod, err := modfile.Parse(file, text, nil)
	if err != nil {
		return finding{"go.mod", failure, strings.ReplaceAll(err.Error(), "\n", " "), ""}
	}
	version := ""
	for _, r := range mod.Require {
		if r.Mod.Path == command.Module {
			version = r.Mod.Version
		}
	}
	for _, r := range mod.Replace {
		if r.Old.Path != command.Module {
			continue
		}
		version = r.New.String()
		if r.New.Version != "" { // another module
			continue
		}
		path := r.New.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if _, err := os.Stat(filepath.Join(path, "go.mod")); err != nil {
			return finding{"go.mod", failure, fmt.Sprintf("%s is replaced by %s, which is no checkout of it", command.Module, r.New.Path), "go mod edit -dropreplace " + command.Module}
		}
	}
	if version == "" {
		return finding{"go.mod", failure, "does not require " + command.Module, "go get " + command.Module + "@latest"}
	}
	return finding{"go.mod", fine, "has " + command.Module + " " + version, ""}
}

// checkGenerated compares generated files with what would be generated.
func checkGenerated(ctx context.Context, dir string) finding {
	request, err := generate.Parse(nil, generate.Steer)
	if err != nil {
		return finding{"generated", failure, err.Error(), ""}
	}
	request.Dir = dir
	result, err := generate.Run(ctx, request)
	if err != nil {
		return finding{"generated", failure, err.Error(), "go tool steer generate"}
	}
	changes, err := result.Changes()
	switch {
	case err != nil:
		return finding{"generated", failure, err.Error(), ""}
	case len(changes) > 0:
		return finding{"generated", failure, fmt.Sprintf("%s not up to date", command.Count(len(changes), "file")), "go tool steer generate"}
	}
	return finding{"generated", fine, command.Count(len(result.Files), "file") + " up to date", ""}
}

// checkDefinitions compares the CRDs of the server with those that are generated: an
// apply that is not persisted shows what it would change.
func checkDefinitions(ctx context.Context, dir string, config *rest.Config) finding {
	objects, err := manifest.Read(filepath.Join(dir, "config", "crd", "bases"))
	if err != nil {
		return finding{"crds", warning, "there are none: " + err.Error(), "go tool steer generate"}
	}
	ctx, cancel := context.WithTimeout(ctx, serverTimeout)
	defer cancel()
	c, err := client.New(config, client.Options{FieldOwner: "steer-doctor"})
	if err != nil {
		return finding{"crds", failure, err.Error(), ""}
	}
	for _, o := range objects {
		live := client.NewUnstructured(o.GroupVersionKind())
		err := c.Get(ctx, client.ObjectKey{Name: o.GetName()}, live)
		if apierrors.IsNotFound(err) {
			return finding{"crds", warning, o.GetName() + " is not on the server", "make install"}
		}
		after := o.DeepCopy()
		if err == nil {
			err = c.Apply(ctx, after, client.ForceOwnership, client.DryRunAll)
		}
		if err != nil {
			return finding{"crds", failure, fmt.Sprintf("%s: %v", o.GetName(), err), ""}
		}
		if !reflect.DeepEqual(live.Object["spec"], after.Object["spec"]) {
			return finding{"crds", warning, o.GetName() + " on the server differs from the one that is generated", "make install"}
		}
	}
	return finding{"crds", fine, command.Count(len(objects), "CRD") + " on the server as generated", ""}
}
