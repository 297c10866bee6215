// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const version = "v1.2.0"

// tree is a repository in small: the main module with a command that prints its version, or
// writes a project with a line for each of its commands, and modules beside it that replace
// it with its folder.
func tree() map[string]string {
	return map[string]string{
		"go.mod":    "module " + steerPath + "\n\ngo 1.26.0\n",
		"LICENSE":   "Apache License Version 2.0, January 2004\n",
		"client.go": "package steer\n\n// Name is what the other modules use.\nconst Name = \"steer\"\n",
		"cmd/steer/main.go": `package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) > 1 {
		before, _ := os.ReadFile("PROJECT")
		os.WriteFile("PROJECT", append(before, strings.Join(os.Args[1:3], " ")+"\n"...), 0o644)
		os.WriteFile("go.sum", nil, 0o644)
		os.WriteFile("go.mod", []byte("module x\n\nreplace ` + steerPath + ` => ../x\n"), 0o644)
		return
	}
	info, _ := debug.ReadBuildInfo()
	fmt.Println(info.Main.Version)
}
`,
		"interop/go.mod":                      nested("interop", ""),
		"interop/interop.go":                  "package interop\n\nimport \"" + steerPath + "\"\n\n// Name is that of steer.\nconst Name = steer.Name\n",
		"storage/etcd/go.mod":                 nested("storage/etcd", "../"),
		"storage/etcd/etcd.go":                "package etcd\n\nimport \"" + steerPath + "\"\n\n// Name is that of steer.\nconst Name = steer.Name\n",
		"storage/etcd/cmd/steer-etcd/main.go": "package main\n\nimport \"" + steerPath + "/storage/etcd\"\n\nfunc main() { println(etcd.Name) }\n",
		"storage/sqlite/go.mod":               nested("storage/sqlite", "../"),
		"storage/sqlite/db.go":                "package sqlite\n\nimport \"" + steerPath + "\"\n\n// Name is that of steer.\nconst Name = steer.Name\n",
		"trace/otel/go.mod":                   nested("trace/otel", "../"),
		"trace/otel/otel.go":                  "package otel\n\nimport \"" + steerPath + "\"\n\n// Name is that of steer.\nconst Name = steer.Name\n",
		"internal/house/testdata/api.txt":     ".: const Name\n",
		changelogFile:                         "# Changelog\n\n## Unreleased\n\n## " + version + " - 2026-11-23\n\n### Added\n\n- A command.\n",
	}
}

func nested(folder, up string) string {
	return "module " + steerPath + "/" + folder + "\n\ngo 1.26.0\n\nrequire " + steerPath + " v0.0.0\n\nreplace " + steerPath + " => ../" + up + "\n"
}

// repository commits a tree.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	command(t, dir, "git", "init", "-q", "-b", "main")
	commit(t, dir)
	return dir
}

func commit(t *testing.T, dir string) {
	t.Helper()
	command(t, dir, "git", "add", "-A")
	command(t, dir, "git", "-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-qm", "x")
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func command(t *testing.T, dir string, words ...string) string {
	t.Helper()
	return commandWith(t, dir, nil, words...)
}

func commandWith(t *testing.T, dir string, env []string, words ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// steer runs the command on a repository, and returns what it prints.
func steer(t *testing.T, repo string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{args[0], "-repo", repo}, args[1:]...), &out)
	return out.String(), err
}

func mustSteer(t *testing.T, repo string, args ...string) string {
	t.Helper()
	out, err := steer(t, repo, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
