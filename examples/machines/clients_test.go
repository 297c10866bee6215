// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"
)

// TestExecutorsOfClientGoRunCommands: SPDY is what clients before Kubernetes 1.31 speak.
func TestExecutorsOfClientGoRunCommands(t *testing.T) {
	t.Parallel()
	r := start(t, t.TempDir())
	r.machine("web", "exec sleep 600")
	at := func(script string) *url.URL {
		u, err := url.Parse(r.config.Host + "/apis/example.com/v1/namespaces/default/machines/web/exec")
		if err != nil {
			t.Fatal(err)
		}
		u.RawQuery = url.Values{"command": {"sh", "-c", script}, "stdin": {"true"}, "stdout": {"true"}, "stderr": {"true"}}.Encode()
		return u
	}
	for name, connect := range map[string]func(u *url.URL) (remotecommand.Executor, error){
		"SPDY": func(u *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewSPDYExecutor(r.config, http.MethodPost, u)
		},
		"WebSocket": func(u *url.URL) (remotecommand.Executor, error) {
			return remotecommand.NewWebSocketExecutor(r.config, http.MethodGet, u.String())
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			executor, err := connect(at("cat; echo done for $MACHINE >&2; exit 3"))
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Repeat("0123456789abcdef", 16<<10)
			var out, failures strings.Builder
			err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: strings.NewReader(text), Stdout: &out, Stderr: &failures})
			var exit utilexec.CodeExitError
			if !errors.As(err, &exit) || exit.Code != 3 {
				t.Errorf("the end is %v, want the exit code 3", err)
			}
			if out.String() != text || failures.String() != "done for web\n" {
				t.Errorf("%d bytes, and %q", out.Len(), failures.String())
			}
		})
	}
}
