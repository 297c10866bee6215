// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/leadership"
	"github.com/steer-dev/steer/storage"
)

// copyKeys copies files of a folder of keys to another one.
func copyKeys(t *testing.T, from, to string, names ...string) {
	t.Helper()
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// allKeys are the files of a folder, by what is swapped at once.
func allKeys() map[string][]string {
	return map[string][]string{
		"ca": {"ca.key", "ca.crt"}, "front-proxy-ca": {"front-proxy-ca.key", "front-proxy-ca.crt"},
		"peer-ca": {"peer-ca.key", "peer-ca.crt"}, "sa": {"sa.key"},
	}
}

// join starts a further server with a folder of keys.
func (c *cluster) join(dir string) error {
	c.Helper()
	store := c.db.OpenServer(storage.MemoryOptions{})
	defer func() { _ = store.Close() }()
	plane, err := controlplane.New(controlplane.Options{Store: store, Authentication: controlplane.Authentication{KeyDir: dir}})
	if err != nil {
		return err
	}
	return errors.Join(plane.Start(c.Context()), plane.Stop(context.Background()))
}

func TestServersWithAnotherKeyThanTheClusterAreRefused(t *testing.T) {
	t.Parallel()
	keys, others := t.TempDir(), t.TempDir()
	if _, err := controlplane.OpenKeys(others); err != nil {
		t.Fatal(err)
	}
	c := newClusterOf(t, 1, func(o *controlplane.Options) { o.Authentication = controlplane.Authentication{KeyDir: keys} })
	check := func(t *testing.T) {
		for swapped, files := range allKeys() {
			dir := t.TempDir()
			for _, all := range allKeys() {
				copyKeys(t, keys, dir, all...)
			}
			if err := c.join(dir); err != nil {
				t.Fatalf("with the keys of the cluster: %v", err)
			}
			copyKeys(t, others, dir, files...)
			if err := c.join(dir); !errors.Is(err, leadership.ErrOtherKeys) || !strings.Contains(err.Error(), ": "+swapped+": ") {
				t.Errorf("with another %s: got error %v, want ErrOtherKeys with its name", swapped, err)
			}
			for _, file := range files {
				if err := os.Remove(filepath.Join(dir, file)); err != nil {
					t.Fatal(err)
				}
			}
			missing := filepath.Join(dir, files[0])
			if err := c.join(dir); err == nil || !strings.Contains(err.Error(), missing) {
				t.Errorf("without %s: got error %v, want the name of the file", swapped, err)
			}
			if _, err := os.Stat(missing); err == nil {
				t.Errorf("%s was made for a cluster that has its keys", missing)
			}
		}
		if err := c.join(""); err == nil || !strings.Contains(err.Error(), "--cert-dir") {
			t.Errorf("without a folder: got error %v", err)
		}
	}
	check(t)
	// The leader cannot be reached any more.
	if err := c.servers[0].Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	check(t)
}
