// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// move brings a repository to another release: the modules, what is
// generated from them, kube-apiserver and its answers. What differs afterwards is for people.
// The tree has to be clean, so that what it shows as changed is the move.
type move struct {
	out     io.Writer
	root    string // the folder of the repository
	release release
	was     string // the version of staging that go.mod requires before
	server  []byte // go.mod of k8s.io/kubernetes
	// binaries is a folder with the server, which is built into oracle/bin if it is empty.
	binaries string
}

// errDirty says why nothing was moved.
var errDirty = errors.New("there are changes that are not committed: commit or stash them, so that git diff shows the move alone")

// run moves the modules, builds, generates and records.
func (m move) run(ctx context.Context) error {
	status, err := m.output(ctx, "git", "status", "--porcelain")
	if err != nil {
		return err
	}
	if status != "" {
		return errDirty
	}
	if semver.Compare(m.release.staging, m.was) <= 0 {
		return fmt.Errorf("go.mod requires %s: %s is no move forward", m.was, m.release.staging)
	}
	if err := m.modules(ctx); err != nil {
		return err
	}
	if err := m.versions(); err != nil {
		return err
	}
	binaries := m.binaries
	if binaries == "" {
		binaries = "bin"
		if err := m.do(ctx, "oracle", "go", "build", "-o", "bin/", "./cmd/..."); err != nil {
			return err
		}
	} else if binaries, err = filepath.Abs(binaries); err != nil {
		return err
	}
	served := []string{"env", "STEER_UPSTREAM_BIN=" + binaries}
	for _, recorded := range []struct {
		command []string
		into    string // a file that gets the output
	}{
		{[]string{"go", "run", "./cmd/record"}, ""},
		{[]string{"go", "run", "./cmd/bootstrap"}, "controlplane/rbac/bootstrap.txt"},
		{[]string{"go", "run", "./cmd/bootstrap", "-of", "flow"}, "controlplane/core/flowcontrol/bootstrap.txt"},
	} {
		if err := m.record(ctx, slices.Concat(served, recorded.command), recorded.into); err != nil {
			return err
		}
	}
	if err := m.do(ctx, ".", "go", "generate", "./apiserver/openapi/gotypes"); err != nil {
		return err
	}
	return m.summary(ctx)
}

// modules requires the release in every go.mod.
func (m move) modules(ctx context.Context) error {
	files, err := m.moduleFiles(ctx)
	if err != nil {
		return err
	}
	for _, path := range files {
		err := m.edit(path, func(text []byte) ([]byte, error) { return require(path, text, m.release, m.server) })
		if err != nil {
			return err
		}
	}
	for _, path := range files {
		if err := m.do(ctx, filepath.Dir(path), "go", "mod", "tidy"); err != nil {
			return err
		}
	}
	return nil
}

// moduleFiles are the go.mod files that follow Kubernetes, the main one first: all but the module
// that has an older server, and projects as earlier versions of Steer wrote them.
func (m move) moduleFiles(ctx context.Context) ([]string, error) {
	listed, err := m.output(ctx, "git", "ls-files", "go.mod", "*/go.mod")
	if err != nil {
		return nil, err
	}
	files := slices.DeleteFunc(strings.Fields(listed), func(path string) bool {
		return strings.HasPrefix(path, "oracle/older/") || strings.HasPrefix(path, "scaffold/testdata/")
	})
	slices.SortFunc(files, func(a, b string) int {
		return strings.Count(a, "/") - strings.Count(b, "/")
	})
	return files, nil
}

// require returns a go.mod file with the modules of a release. A module that requires the server
// replaces the modules that the server's own go.mod replaces, and has its version of etcd.
func require(path string, text []byte, r release, server []byte) ([]byte, error) {
	file, err := modfile.Parse(path, text, nil)
	if err != nil {
		return nil, err
	}
	serverFile, err := modfile.Parse("go.mod of "+serverModule, server, nil)
	if err != nil {
		return nil, err
	}
	etcd, hasServer := map[string]string{}, false
	for _, q := range serverFile.Require {
		if strings.HasPrefix(q.Mod.Path, "go.etcd.io/etcd/") {
			etcd[q.Mod.Path] = q.Mod.Version
		}
	}
	for _, q := range slices.Clone(file.Require) {
		version := q.Mod.Version
		switch {
		case q.Mod.Path == serverModule:
			version, hasServer = r.server, true
		case isStaging(q.Mod.Path, version):
			version = r.staging
		case semver.Compare(etcd[q.Mod.Path], version) > 0:
			version = etcd[q.Mod.Path]
		}
		if err := file.AddRequire(q.Mod.Path, version); err != nil {
			return nil, err
		}
	}
	for _, p := range slices.Clone(file.Replace) {
		if isStaging(p.New.Path, p.New.Version) {
			if err := file.AddReplace(p.Old.Path, p.Old.Version, p.New.Path, r.staging); err != nil {
				return nil, err
			}
		}
	}
	if hasServer {
		for _, p := range serverFile.Replace {
			if err := file.AddReplace(p.Old.Path, "", p.Old.Path, r.staging); err != nil {
				return nil, err
			}
		}
	}
	file.Cleanup()
	return file.Format()
}

// isStaging reports whether a module has the versions of Kubernetes: v0, and its minor.
func isStaging(path, version string) bool {
	return strings.HasPrefix(path, "k8s.io/") && semver.Major(version) == "v0" && semver.MajorMinor(version) != "v0.0"
}

// edit writes what a function makes of a file.
func (m move) edit(path string, to func(text []byte) ([]byte, error)) error {
	path = filepath.Join(m.root, path)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if text, err = to(text); err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644) //nolint:gosec // the mode of a file that is there stays
}

// recordedPages name the version whose answers are recorded, and no other.
func recordedPages() []string {
	return []string{"README.md", "docs/behaviour.md", "docs/guarantees.md", "docs/kinds.md", "oracle/README.md"}
}

// versions writes the version into what says which one is served, or recorded.
func (m move) versions() error {
	var older int
	if _, err := fmt.Sscanf(m.was, "v0.%d.", &older); err != nil {
		return fmt.Errorf("%s: %w", m.was, err)
	}
	was, is := "1"+strings.TrimPrefix(m.was, "v0"), strings.TrimPrefix(m.release.server, "v")
	edits := []struct{ path, old, new string }{
		{"apiserver/health.go", `"v` + was + `"`, `"v` + is + `"`},
		{"cmd/steer/internal/command/version.go", fmt.Sprint("KubernetesMinor = ", older), fmt.Sprint("KubernetesMinor = ", m.release.minor)},
	}
	for _, page := range recordedPages() {
		edits = append(edits, struct{ path, old, new string }{page, was, is})
	}
	for _, served := range edits {
		err := m.edit(served.path, func(text []byte) ([]byte, error) {
			if !bytes.Contains(text, []byte(served.old)) {
				return nil, fmt.Errorf("%s does not have %s: mend internal/kubernetes/move.go", served.path, served.old)
			}
			return bytes.ReplaceAll(text, []byte(served.old), []byte(served.new)), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// record runs a command in the oracle, and writes what it prints into a file.
func (m move) record(ctx context.Context, command []string, into string) error {
	if into == "" {
		return m.do(ctx, "oracle", command...)
	}
	fmt.Fprintf(m.out, "-- oracle: %s > %s\n", strings.Join(command, " "), into)
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = filepath.Join(m.root, "oracle")
	text, err := c.Output()
	if err != nil {
		return explained(err)
	}
	return m.edit(into, func([]byte) ([]byte, error) { return text, nil })
}

// summary prints what the move changed, and what is left to be done by hand.
func (m move) summary(ctx context.Context) error {
	was := "1." + strings.TrimPrefix(m.was, "v0.")
	fmt.Fprintln(m.out, "\n# What the move changed")
	if err := m.do(ctx, ".", "git", "--no-pager", "diff", "--stat"); err != nil {
		return err
	}
	fmt.Fprintf(m.out, "\n# Texts that still say %s\n\n", was)
	// git grep fails where nothing is found.
	texts, err := m.output(ctx, "git", "grep", "-nIF", was, "--", ":!CHANGELOG.md", ":!docs/designs", ":!*go.mod", ":!*go.sum", ":!go.tools.mod")
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		return err
	}
	fmt.Fprintln(m.out, texts)
	fmt.Fprintln(m.out, "# Then: go test ./controlplane -run TestOracle, and docs/kubernetes.md")
	return nil
}

// do runs a command in a folder, and shows what it prints.
func (m move) do(ctx context.Context, dir string, command ...string) error {
	fmt.Fprintf(m.out, "-- %s: %s\n", dir, strings.Join(command, " "))
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir, c.Stdout, c.Stderr = filepath.Join(m.root, dir), m.out, m.out
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s in %s: %w", strings.Join(command, " "), dir, err)
	}
	return nil
}

func (m move) output(ctx context.Context, command ...string) (string, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = m.root
	out, err := c.Output()
	return string(out), explained(err)
}
