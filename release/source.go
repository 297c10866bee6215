// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/sumdb/dirhash"
)

// steerPath is the path of the main module.
const steerPath = "github.com/steer-dev/steer"

// releasedModules are the folders of the modules that have versions, each after those
// that it requires. docs/depend.md lists them for users.
func releasedModules() []string {
	return []string{"", "interop", "storage/etcd", "storage/sqlite", "trace/otel"}
}

// file is a file of a commit.
type file struct {
	data []byte
	mode os.FileMode
}

// release is a version of all modules, made of a commit.
type release struct {
	repo    string
	parent  string // the commit that it is made of
	version string
	time    time.Time       // of the parent
	files   map[string]file // by path in the repository; go.mod and go.sum as released
	changed []string        // the files that differ from the parent's
	modules []releasedModule
}

// releasedModule is a module as a proxy serves it.
type releasedModule struct {
	module.Version
	folder string // "" for the main module
	mod    []byte
	zip    []byte
}

// modulePath is the path of the module of a folder.
func modulePath(folder string) string { return path.Join(steerPath, folder) }

// newRelease reads a commit, and makes its modules require one another at a version.
func newRelease(ctx context.Context, repo, revision, version string) (*release, error) {
	r := &release{repo: repo, version: version}
	var err error
	if r.parent, err = git(ctx, repo, "rev-parse", "--verify", revision+"^{commit}"); err != nil {
		return nil, err
	}
	stamp, err := git(ctx, repo, "show", "-s", "--format=%cI", r.parent)
	if err != nil {
		return nil, err
	}
	if r.time, err = time.Parse(time.RFC3339, stamp); err != nil {
		return nil, err
	}
	r.time = r.time.UTC()
	if r.files, err = filesOf(ctx, repo, r.parent); err != nil {
		return nil, err
	}
	for _, folder := range releasedModules() {
		if err := r.add(folder); err != nil {
			return nil, fmt.Errorf("module %s: %w", modulePath(folder), err)
		}
	}
	return r, nil
}

// add makes the module of a folder, with those before it as its requirements.
func (r *release) add(folder string) error {
	modName, sumName := path.Join(folder, "go.mod"), path.Join(folder, "go.sum")
	mod, err := modfile.Parse(modName, r.files[modName].data, nil)
	if err != nil {
		return err
	}
	sums := string(r.files[sumName].data)
	for _, replace := range slices.Clone(mod.Replace) {
		if !r.has(replace.Old.Path) {
			return fmt.Errorf("go.mod replaces %s, which no user of the module would get", replace.Old.Path)
		}
		if err := mod.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
			return err
		}
	}
	for _, other := range r.modules {
		if !slices.ContainsFunc(mod.Require, func(q *modfile.Require) bool { return q.Mod.Path == other.Path }) {
			continue
		}
		if err := mod.AddRequire(other.Path, r.version); err != nil {
			return err
		}
		lines, err := other.sums()
		if err != nil {
			return err
		}
		sums = sortedLines(withoutLines(sums, other.Path+" ") + lines)
	}
	mod.Cleanup()
	text, err := mod.Format()
	if err != nil {
		return err
	}
	r.set(modName, text)
	r.set(sumName, []byte(sums))
	archive, err := r.zip(folder)
	if err != nil {
		return err
	}
	r.modules = append(r.modules, releasedModule{module.Version{Path: modulePath(folder), Version: r.version}, folder, text, archive})
	return nil
}

func (r *release) has(modulePath string) bool {
	return slices.ContainsFunc(r.modules, func(m releasedModule) bool { return m.Path == modulePath })
}

func (r *release) set(name string, data []byte) {
	was, exists := r.files[name]
	if bytes.Equal(was.data, data) && (exists || len(data) == 0) {
		return
	}
	r.files[name] = file{data: data, mode: 0o644}
	r.changed = append(r.changed, name)
}

// sums are the lines of a go.sum about a module.
func (m releasedModule) sums() (string, error) {
	whole, err := hashZip(m.zip)
	if err != nil {
		return "", err
	}
	ofMod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(m.mod)), nil })
	return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", m.Path, m.Version.Version, whole, m.Path, m.Version.Version, ofMod), err
}

func withoutLines(text, prefix string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, prefix) {
			out.WriteString(line)
		}
	}
	return out.String()
}

func sortedLines(text string) string {
	return strings.Join(slices.SortedFunc(strings.Lines(text), compareSums), "")
}

// compareSums is the order of the go command: by path, by version, go.mod last.
func compareSums(a, b string) int {
	split := func(line string) (path, version, suffix string) {
		path, rest, _ := strings.Cut(line, " ")
		version, _, _ = strings.Cut(rest, " ")
		version, suffix, _ = strings.Cut(version, "/")
		return path, version, suffix
	}
	aPath, aVersion, aSuffix := split(a)
	bPath, bVersion, bSuffix := split(b)
	if c := strings.Compare(aPath, bPath); c != 0 {
		return c
	}
	if c := semver.Compare(aVersion, bVersion); c != 0 {
		return c
	}
	return strings.Compare(aSuffix, bSuffix)
}

// filesOf reads the files of a commit.
func filesOf(ctx context.Context, repo, commit string) (map[string]file, error) {
	top, err := git(ctx, repo, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "git", "-c", "core.autocrlf=input", "-c", "core.eol=lf", "archive", "--format=tar", commit)
	cmd.Dir = top
	archive, err := cmd.Output()
	if err != nil {
		return nil, commandError(cmd, err, nil)
	}
	files := map[string]file{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return nil, err
		}
		files[header.Name] = file{data: data, mode: header.FileInfo().Mode().Perm()}
	}
}

// git runs git, and returns what it printed without the last line break.
func git(ctx context.Context, dir string, args ...string) (string, error) {
	return gitWith(ctx, dir, nil, nil, args...)
}

// gitWith runs git with variables and an input.
func gitWith(ctx context.Context, dir string, env []string, input []byte, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	if input != nil {
		cmd.Stdin = bytes.NewReader(input)
	}
	out, err := cmd.Output()
	if err != nil {
		return "", commandError(cmd, err, nil)
	}
	return strings.TrimSuffix(string(out), "\n"), nil
}

// commandError says which command failed, and what it printed.
func commandError(cmd *exec.Cmd, err error, out []byte) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(exit.Stderr) > 0 {
		out = exit.Stderr
	}
	return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(out))
}
