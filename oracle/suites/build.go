// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// Builder compiles suites.
type Builder struct {
	// Oracle is the folder of module oracle, Work the one for what is made. Both are absolute.
	Oracle, Work string
}

// module as `go list -m -json` shows it.
type module struct{ Path, Version, Dir string }

// Build compiles a suite and returns its test binary, and the folder in which it runs.
func (b Builder) Build(ctx context.Context, s Suite) (binary, dir string, err error) {
	source, err := b.copy(ctx, s.Module)
	if err != nil {
		return "", "", err
	}
	modfile, err := b.modfile(ctx, s.Module, source)
	if err != nil {
		return "", "", err
	}
	overlay, err := b.overlay(s, source)
	if err != nil {
		return "", "", err
	}
	// The name is the one that go test gives it: some tests expect their name as a field manager.
	binary = filepath.Join(b.Work, "tests", s.Name, path.Base(s.Package)+".test")
	_, err = b.command(ctx, "go", "test", "-c", "-vet=off", "-mod=mod", "-modfile="+modfile, "-overlay="+overlay, "-o", binary, s.Module+"/"+s.Package)
	return binary, filepath.Join(source, filepath.FromSlash(s.Package)), err
}

// copy copies a module, once for each version: files in the module cache cannot be overlaid.
func (b Builder) copy(ctx context.Context, name string) (string, error) {
	text, err := b.command(ctx, "go", "mod", "download", "-json", name)
	if err != nil {
		return "", err
	}
	var m module
	if err := json.Unmarshal(text, &m); err != nil {
		return "", fmt.Errorf("go mod download %s: %w", name, err)
	}
	to := filepath.Join(b.Work, "source", filepath.FromSlash(m.Path)+"@"+m.Version)
	if _, err := os.Stat(to); err == nil {
		return to, nil
	}
	partial := to + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.CopyFS(partial, os.DirFS(m.Dir))); err != nil {
		return "", fmt.Errorf("copy %s: %w", m.Dir, err)
	}
	if err := executable(partial); err != nil {
		return "", err
	}
	return to, os.Rename(partial, to)
}

// executable lets the scripts that tests call be run, but for those that say they cannot: the files
// of a module have no modes.
func executable(folder string) error {
	return filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(file) != ".sh" || strings.HasSuffix(file, "-not-executable.sh") {
			return err
		}
		return os.Chmod(file, 0o755)
	})
}

// modfile is the go.mod of module oracle, as seen from another folder, with the copy of a
// module in the place of the module.
func (b Builder) modfile(ctx context.Context, name, source string) (string, error) {
	modfile := filepath.Join(b.Work, path.Base(name)+".mod")
	for from, to := range map[string]string{"go.mod": modfile, "go.sum": strings.TrimSuffix(modfile, ".mod") + ".sum"} {
		text, err := os.ReadFile(filepath.Join(b.Oracle, from))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
	}
	_, err := b.command(ctx, "go", "mod", "edit",
		"-replace=github.com/steer-dev/steer="+filepath.Dir(b.Oracle), "-replace="+name+"="+source, modfile)
	return modfile, err
}

// overlay names the files of ours that take the places of those of a module.
func (b Builder) overlay(s Suite, source string) (string, error) {
	ours := filepath.Join(b.Oracle, "suites", "testdata", "overlay", path.Base(s.Module))
	replace := map[string]string{}
	err := filepath.WalkDir(ours, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		below, err := filepath.Rel(ours, file)
		if err != nil {
			return err
		}
		replaced := filepath.Join(source, below)
		if _, err := os.Stat(replaced); err != nil {
			return fmt.Errorf("%s replaces nothing: %w", file, err)
		}
		replace[replaced] = file
		return nil
	})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(b.Work, s.Name+".overlay.json")
	return name, os.WriteFile(name, text, 0o644)
}

// command runs a program in module oracle; its output is part of the error.
func (b Builder) command(ctx context.Context, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.Oracle, &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", cmd, err, errs.Bytes(), out.Bytes())
	}
	return out.Bytes(), nil
}
