// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const (
	// projectsFolder keeps a project of every version, which `.ci/run upgrade` upgrades.
	projectsFolder = "scaffold/testdata/projects"
	projectName    = "guestbook"
)

// makeProject makes a project below a folder with the command line of the repository: kinds
// of its own and of Kubernetes, with controllers and webhooks. Its go.mod names no version
// of Steer that exists: an upgrade gives it one.
func makeProject(ctx context.Context, repo, dir string) error {
	program, project := filepath.Join(dir, "steer.exe"), filepath.Join(dir, projectName)
	if err := os.Mkdir(project, 0o755); err != nil {
		return err
	}
	top, err := git(ctx, repo, "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	if err := runIn(ctx, top, "go", "build", "-o", program, "./cmd/steer"); err != nil {
		return err
	}
	const own, deployment, pod = "--group webapp --version v1 --kind Guestbook", "--group apps --version v1 --kind Deployment", "--group core --version v1 --kind Pod"
	for _, line := range []string{
		"init --domain example.com --repo example.com/guestbook --project-name " + projectName,
		"create api " + own,
		"create webhook " + own + " --defaulting --programmatic-validation",
		"create api " + deployment + " --resource=false",
		"create webhook " + pod + " --defaulting",
	} {
		words := strings.Fields(line)
		if words[0] == "init" {
			words = append(words, "--replace", top)
		}
		if err := runIn(ctx, project, program, words...); err != nil {
			return err
		}
	}
	if err := runIn(ctx, project, "go", "mod", "edit", "-dropreplace="+steerPath); err != nil {
		return err
	}
	return os.Remove(filepath.Join(project, "go.sum")) // it is made again
}

// runIn runs a command in a folder.
func runIn(ctx context.Context, dir, name string, words ...string) error {
	cmd := exec.CommandContext(ctx, name, words...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return commandError(cmd, err, out)
	}
	return nil
}
