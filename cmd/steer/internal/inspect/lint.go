// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/breaking"
	"github.com/steer-dev/steer/cmd/steer/internal/command"
	"github.com/steer-dev/steer/cmd/steer/internal/progress"
	"github.com/steer-dev/steer/cmd/steer/internal/rights"
	"github.com/steer-dev/steer/generate"
	"github.com/steer-dev/steer/scaffold/project"
)

// linter looks at one project.
type linter struct {
	dir  string
	out  io.Writer
	errs io.Writer
	// against is a revision of git to compare CRDs with; empty: none.
	against string
	strict  bool

	problems int
}

// NewLint returns the command lint.
func NewLint() *cobra.Command {
	l := &linter{}
	cmd := &cobra.Command{
		Use:   "lint",
		Short: "Report generated files, rights and CRDs that are not what they should be",
		Long: `Compares what a project says in several places. Problems are lines FILE:LINE: PROBLEM,
and the exit status is then 3:

  - generated files that are not what the types and markers say;
  - rights that the code declares to need, or that steer test saw used, and that no
    marker of a role gives;
  - webhooks that are configured and not served, or served and not configured;
    conversions that only the code or only the CRD has, or neither though the fields of
    the versions differ;
  - a status without the subresource, and children that no controller watches;
  - with --against, changes of CRDs since a revision of git that clients or stored
    objects do not survive: a version or field that is removed, a narrower type, enum
    or limit, a field that is required, and more.

Rights that are given by a wildcard, or that neither the code declares nor the last
steer test of the whole project saw used, are warnings; with --strict they are problems.`,
		Example: `  steer lint
  steer lint --against origin/main`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dir, err := os.Getwd()
			if err != nil {
				return err
			}
			line := progress.Start(cmd.ErrOrStderr(), "comparing the project with what it says")
			defer line.Stop()
			l.dir, l.out, l.errs = dir, line.Writer(cmd.OutOrStdout()), line.Writer(cmd.ErrOrStderr())
			return l.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.against, "against", "", "compare the CRDs with those of a `revision` of git, such as a tag or origin/main")
	f.BoolVar(&l.strict, "strict", false, "rights that nothing needs are problems")
	return cmd
}

func (l *linter) run(ctx context.Context) error {
	p, err := project.Read(l.dir)
	if errors.Is(err, project.ErrUsage) {
		return command.Usage(err.Error())
	}
	if err != nil {
		return err
	}
	if l.against != "" {
		if _, err := l.git(ctx, "rev-parse", "--verify", "--end-of-options", l.against+"^{commit}"); err != nil {
			return command.Usage(fmt.Sprintf("--against %q is no revision of the git repository of this folder: %v; in CI fetch it first, as with fetch-depth: 0", l.against, err))
		}
	}
	crds, err := l.generated(ctx)
	if err == nil {
		err = l.rights(ctx, p)
	}
	if err == nil {
		err = l.webhooks(ctx, p, crds)
	}
	if err == nil && l.against != "" {
		err = l.breaking(ctx, p, crds)
	}
	if err != nil {
		return err
	}
	if l.problems > 0 {
		return &command.ExitError{Status: command.DriftStatus, Message: command.Count(l.problems, "problem")}
	}
	return nil
}

func (l *linter) problem(text string) {
	l.problems++
	fmt.Fprintln(l.out, text)
}

// generated reports generated files that are stale, and returns the CRDs.
func (l *linter) generated(ctx context.Context) ([]generate.File, error) {
	request, err := generate.Parse(nil, generate.Steer)
	if err != nil {
		return nil, err
	}
	request.Dir = l.dir
	result, err := generate.Run(ctx, request)
	var wrong *generate.SourceError
	if errors.As(err, &wrong) {
		command.PrintProblems(l.errs, wrong)
	}
	if err != nil {
		return nil, err
	}
	changes, err := result.Changes()
	if err != nil {
		return nil, err
	}
	for _, change := range changes {
		l.problem(command.Relative(change.Path) + ":1: it is not what the types and markers say; run: go tool steer generate")
	}
	var crds []generate.File
	for _, file := range result.Files {
		if file.Generator == "crd" && !file.Embedded {
			crds = append(crds, file)
		}
	}
	return crds, nil
}

// rights compares the markers of roles with the code, and with the tests if they ran.
func (l *linter) rights(ctx context.Context, p *project.Project) error {
	sources, err := rights.Read(ctx, l.dir, p)
	if err != nil {
		return err
	}
	folder := filepath.Join(l.dir, rightsFolder)
	var used rights.Used
	if _, err := os.Stat(folder); err == nil {
		if used, err = rights.ReadUsed(folder); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, finding := range append(sources.Findings(used), sources.Unwatched()...) {
		if finding.Missing || l.strict {
			l.problem(finding.String())
			continue
		}
		fmt.Fprintln(l.errs, finding.String())
	}
	if used == nil {
		fmt.Fprintln(l.errs, "steer: rights are compared with the code only; run steer test first to compare them with what tests use")
	}
	return nil
}

// breaking compares the CRDs with those of the revision.
func (l *linter) breaking(ctx context.Context, p *project.Project, files []generate.File) error {
	const folder = project.CRDDir
	names, err := l.git(ctx, "ls-tree", "--name-only", "-z", l.against, folder+"/")
	if err != nil {
		return err
	}
	var before []map[string]any
	for name := range strings.SplitSeq(strings.TrimRight(names, "\x00"), "\x00") {
		if path.Ext(name) != ".yaml" {
			continue
		}
		text, err := l.git(ctx, "show", l.against+":./"+name)
		if err != nil {
			return err
		}
		if before, err = definitions(before, name, []byte(text)); err != nil {
			return fmt.Errorf("at %s: %w", l.against, err)
		}
	}
	var after []map[string]any
	place := map[string]string{}
	for _, file := range files {
		known := len(after)
		if after, err = definitions(after, file.Path, file.Data); err != nil {
			return err
		}
		for _, crd := range after[known:] {
			metadata, _ := crd["metadata"].(map[string]any)
			name, _ := metadata["name"].(string)
			place[name] = command.Relative(file.Path) + ":1: "
		}
	}
	changes := breaking.Changes(before, after)
	if len(changes) == 0 {
		return nil
	}
	request, err := generate.Parse(nil, generate.Steer)
	if err != nil {
		return err
	}
	request.Dir = l.dir
	places, err := request.Places(ctx)
	if err != nil {
		return err
	}
	for _, change := range changes {
		at := place[change.Definition]
		for _, r := range p.Resources {
			if r.PluralName()+"."+r.APIGroup() != change.Definition || change.Version != "" && change.Version != r.Version {
				continue
			}
			if found, ok := places.Find(r.Path, r.Kind, change.Path); ok {
				at = fmt.Sprintf("%s:%d: ", command.Relative(found.Filename), found.Line)
			}
		}
		l.problem(at + change.String())
	}
	return nil
}

// definitions adds the objects of a manifest to a list.
func definitions(to []map[string]any, name string, text []byte) ([]map[string]any, error) {
	objects, err := manifest.Parse(name, text)
	for _, o := range objects {
		to = append(to, o.Object)
	}
	return to, err
}

// git runs git in the folder of the project and returns what it prints.
func (l *linter) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = l.dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, strings.ReplaceAll(strings.TrimSpace(errs.String()), "\n", "; "))
	}
	return string(out), nil
}
