// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package dev

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/internal/children"
)

func TestCommandRunsAgainstAControlPlane(t *testing.T) {
	t.Parallel()
	manifests := filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(manifests, []byte("{apiVersion: v1, kind: Namespace, metadata: {name: team}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		script string
		status int
	}{
		"that succeeds": {`test -s "$KUBECONFIG" && test -s "$TMPDIR/k8s-webhook-server/serving-certs/tls.crt"`, 0},
		"that fails":    {"exit 3", 3},
		"that is ended": {"kill -TERM $$", 128 + 15},
	} {
		var said strings.Builder
		err := Command(t.Context(), CommandOptions{Manifests: []string{manifests}, Errs: &said}, []string{"sh", "-c", c.script})
		status := 0
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			status = children.ExitStatus(exit)
		} else if err != nil {
			t.Errorf("a command %s: %v", name, err)
		}
		if status != c.status {
			t.Errorf("a command %s: status %d, want %d", name, status, c.status)
		}
		path, ok := strings.CutPrefix(strings.TrimSuffix(said.String(), " # while the command runs\n"), "export KUBECONFIG=")
		if !ok {
			t.Errorf("a command %s: printed %q", name, said.String())
		}
		if _, err := os.Stat(filepath.Dir(path)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("a command %s leaves %s: %v", name, filepath.Dir(path), err)
		}
	}
}

// TestCommandEndsWithItsContext starts a command that would wait for ten minutes.
func TestCommandEndsWithItsContext(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "started")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(file); err == nil {
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	}()
	err := runCommand(ctx, "/bin/sh", []string{"sh", "-c", "touch " + file + "; sleep 600"})
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || children.ExitStatus(exit) != 128+15 {
		t.Errorf("it ended with %v, want SIGTERM", err)
	}
	if err := Command(t.Context(), CommandOptions{Errs: &strings.Builder{}}, []string{"no-such-command"}); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("an absent command: %v", err)
	}
}
