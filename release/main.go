// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/mod/semver"
)

// errUsage is wrapped by the errors of wrong arguments.
var errUsage = errors.New("wrong arguments")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout); {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the flags of the commands.
type options struct {
	repo      string // a folder of the repository
	version   string
	revision  string
	out       string
	platforms string
	key       string
	tag       bool
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: name a command: cut, build, proxy or api", errUsage)
	}
	var o options
	f := flag.NewFlagSet("release "+args[0], flag.ContinueOnError)
	f.StringVar(&o.repo, "repo", "..", "a folder of the repository")
	var command func(context.Context, options, io.Writer) error
	switch args[0] {
	case "cut":
		command = cut
		f.StringVar(&o.version, "version", "", "version to release, such as v1.2.0 (required)")
	case "build":
		command = build
		f.StringVar(&o.version, "version", "", "version to release (default: that of the tag of the commit)")
		f.StringVar(&o.out, "out", "", "folder for the files (default: dist/VERSION in the repository)")
		f.StringVar(&o.platforms, "platforms", allPlatforms, "systems to build for, with commas between them")
		f.StringVar(&o.key, "key", "", "SSH key, or the public half of one that ssh-agent holds, that signs the checksums and tags")
		f.BoolVar(&o.tag, "tag", false, "make the tags of all modules; nothing is pushed")
	case "proxy":
		command = proxy
		f.StringVar(&o.version, "version", "", "version that the modules get (required)")
		f.StringVar(&o.revision, "revision", "HEAD", "commit to take")
		f.StringVar(&o.out, "out", "", "folder for the proxy (required)")
	case "api":
		command = api
	default:
		return fmt.Errorf("%w: %q is no command: name cut, build, proxy or api", errUsage, args[0])
	}
	f.SetOutput(out)
	if err := f.Parse(args[1:]); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%w: %q is too much", errUsage, f.Arg(0))
	}
	repo, err := filepath.Abs(o.repo)
	if err != nil {
		return err
	}
	o.repo = repo
	if o.version != "" && (semver.Canonical(o.version) != o.version || semver.Build(o.version) != "") {
		return fmt.Errorf("%w: -version %q is no version: give one such as v1.2.0", errUsage, o.version)
	}
	return command(ctx, o, out)
}

// cut writes what a release changes in the repository.
func cut(ctx context.Context, o options, out io.Writer) error {
	if o.version == "" {
		return fmt.Errorf("%w: -version is missing", errUsage)
	}
	work, err := os.MkdirTemp("", "steer-project-")
	if err != nil {
		return err
	}
	defer removeAll(work)
	fmt.Fprintln(out, "making a project as users of this version get it")
	if err := makeProject(ctx, o.repo, work); err != nil {
		return err
	}
	if err := cutChangelog(filepath.Join(o.repo, changelogFile), o.version, time.Now()); err != nil {
		return err
	}
	if err := keepAPI(o.repo, o.version); err != nil {
		return err
	}
	project := path.Join(projectsFolder, o.version)
	if err := os.CopyFS(filepath.Join(o.repo, filepath.FromSlash(project)), os.DirFS(filepath.Join(work, projectName))); err != nil {
		return err
	}
	fmt.Fprintf(out, "review and commit %s, %s and %s, and then: make release VERSION=%s\n", changelogFile, releasedFile, project, o.version)
	return nil
}

// proxy writes the modules of a commit as a module proxy.
func proxy(ctx context.Context, o options, _ io.Writer) error {
	if o.version == "" || o.out == "" {
		return fmt.Errorf("%w: -version and -out are required", errUsage)
	}
	r, err := newRelease(ctx, o.repo, o.revision, o.version)
	if err != nil {
		return err
	}
	return r.writeProxy(o.out)
}

// build makes the files of a release.
func build(ctx context.Context, o options, out io.Writer) error {
	revision, version, err := chooseRevision(ctx, o.repo, o.version)
	if err != nil {
		return err
	}
	o.version = version
	if o.out == "" {
		o.out = filepath.Join(o.repo, "dist", version)
	}
	if entries, err := os.ReadDir(o.out); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s has files already: remove it, or name another folder with -out", o.out)
	}
	r, err := newRelease(ctx, o.repo, revision, version)
	if err != nil {
		return err
	}
	if err := checkChangelog(string(r.files[changelogFile].data), version); err != nil {
		return err
	}
	if err := r.publish(ctx, o, out); err != nil {
		return err
	}
	if !o.tag {
		return nil
	}
	return r.tag(ctx, o.key, out)
}

// publish writes the files of a release to a folder.
func (r *release) publish(ctx context.Context, o options, out io.Writer) error {
	work, err := os.MkdirTemp("", "steer-release-")
	if err != nil {
		return err
	}
	defer removeAll(work)
	b := &builder{release: r, work: work}
	if err := b.start(ctx); err != nil {
		return err
	}
	var binaries []binary
	platforms := strings.Split(o.platforms, ",")
	for i, platform := range platforms {
		fmt.Fprintf(out, "building for %s, %d of %d\n", platform, i+1, len(platforms))
		one, err := b.binary(ctx, platform)
		if err != nil {
			return err
		}
		binaries = append(binaries, one)
	}
	fmt.Fprintln(out, "reading licenses and packing")
	parts, err := b.modules(ctx, binaries)
	if err != nil {
		return err
	}
	files, err := r.artifacts(binaries, parts)
	if err != nil {
		return err
	}
	if o.key == "" {
		fmt.Fprintln(out, "nothing is signed: -key names a key that signs")
	} else if files[signatureFile], err = sign(ctx, o.key, filepath.Join(work, checksumsFile), files[checksumsFile]); err != nil {
		return err
	}
	if err := writeFiles(o.out, files); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s has %d files\n", o.out, len(files))
	return nil
}
