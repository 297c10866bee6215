// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"os"
	"path/filepath"
	"testing"
)

func TestDevTellsOfTheServerThatKubectlSpeaksTo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kubeconfig := func(name, server string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(`{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "`+server+`"}}]}`), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	own := kubeconfig("own", "https://127.0.0.1:1")
	if got := elsewhere(kubeconfig("same", "https://127.0.0.1:1"), own); got != "" {
		t.Errorf("it speaks to the same server: %q", got)
	}
	if got := elsewhere(filepath.Join(dir, "missing"), own); got != "" {
		t.Errorf("it speaks to none: %q", got)
	}
	const want = "\nsteer: without that line kubectl and make install speak to https://127.0.0.1:2, of which the operator sees nothing"
	if got := elsewhere(kubeconfig("other", "https://127.0.0.1:2"), own); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
