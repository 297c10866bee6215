// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/cmd/steer/internal/dev/webhooks"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/scaffold/project"
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

// A repository has a folder .steer, with keys that its author has, too, and a kubeconfig of a
// server that all machines reach.
func TestDevTakesNoKeysAndNoAddressOfARepository(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state := filepath.Join(dir, project.StateDir)
	data := filepath.Join(state, "data")
	theirs, err := controlplane.OpenKeys(filepath.Join(data, "pki"))
	if err != nil {
		t.Fatal(err)
	}
	begin := func(keys string) []byte {
		t.Helper()
		for _, address := range []string{"0.0.0.0:0", "[::]:0", "localhost:0", ":0"} {
			text := `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a}}], clusters: [{name: a, cluster: {server: "https://` + address + `"}}]}`
			if err := os.WriteFile(filepath.Join(state, "kubeconfig"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			o := options(t, dir, io.Discard)
			o.Keys = keys
			if got := (&own{loop: &loop{Options: o}, kubeconfig: filepath.Join(state, "kubeconfig")}).address(); got != "127.0.0.1:0" {
				t.Errorf("it listens on %s, as a kubeconfig with %s says", got, address)
			}
		}
		o := options(t, dir, io.Discard)
		o.Keys = keys
		plane, stop, err := (&own{loop: &loop{Options: o}, webhooks: webhooks.New("127.0.0.1:1")}).plane(t.Context(), data)
		if err != nil {
			t.Fatal(err)
		}
		written := filepath.Join(t.TempDir(), "kubeconfig")
		if err := errors.Join(plane.WriteKubeconfig(written), stop()); err != nil {
			t.Fatal(err)
		}
		config, err := clientcmd.BuildConfigFromFlags("", written)
		if err != nil || len(config.CAData) == 0 {
			t.Fatalf("the kubeconfig has no authority: %v", err)
		}
		return config.CAData
	}
	keys := t.TempDir()
	first, again, none := begin(keys), begin(keys), begin("")
	if bytes.Equal(first, theirs.CertificatePEM()) || bytes.Equal(none, theirs.CertificatePEM()) {
		t.Error("the control plane has the keys of the repository")
	}
	if !bytes.Equal(first, again) {
		t.Error("the control plane has other keys after a start")
	}
	if bytes.Equal(first, none) {
		t.Error("without a folder for keys they are those of another run")
	}
}
