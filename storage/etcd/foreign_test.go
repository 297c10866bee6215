// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/steer-dev/steer/storage/etcd"
)

// foreignKeys returns what there is, with its revisions.
func foreignKeys(t *testing.T, f etcd.Foreign) []string {
	t.Helper()
	all := []string{fmt.Sprint(f.Revision)}
	for kv, err := range f.Keys {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s=%s %d %d", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision))
	}
	return all
}

func TestKeysOfOtherProgramsAreReadFromEtcdAndFromBackups(t *testing.T) {
	t.Parallel()
	m := ownMember(t, "--unsafe-no-fsync")
	client := open(t, m.options()).Client()
	o := m.options()
	o.Prefix = "/registry"
	if err := etcd.ReadForeign(t.Context(), o, nil); !errors.Is(err, etcd.ErrNoKeys) {
		t.Errorf("without keys: %v", err)
	}
	for i := range 2500 { // more than a page
		if _, err := client.Put(t.Context(), fmt.Sprintf("/registry/a/%d", i%1500), fmt.Sprint(i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 10 {
		if _, err := client.Delete(t.Context(), fmt.Sprintf("/registry/a/%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"/registry/a/3", "/registryother/b", "/other"} {
		if _, err := client.Put(t.Context(), key, "again"); err != nil {
			t.Fatal(err)
		}
	}
	var live, saved []string
	if err := etcd.ReadForeign(t.Context(), o, func(f etcd.Foreign) error { live = foreignKeys(t, f); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(live) != 1+1500-9 {
		t.Errorf("%d keys", len(live)-1)
	}
	file := filepath.Join(t.TempDir(), "backup")
	stream, err := client.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	contents, err := io.ReadAll(stream)
	if err == nil {
		err = os.WriteFile(file, contents, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := etcd.ReadBackup(file, "/registry", func(f etcd.Foreign) error { saved = foreignKeys(t, f); return nil }); err != nil {
		t.Fatal(err)
	}
	// The revision of the backup is at least that of the keys; a store writes a clock.
	if !slices.Equal(live[1:], saved[1:]) {
		t.Errorf("etcd has %.200v, its backup %.200v", live, saved)
	}
	contents[len(contents)/2]++
	if err := os.WriteFile(file, contents, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, damaged := range [][]byte{contents, contents[:len(contents)-512], []byte("text")} {
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := etcd.ReadBackup(file, "/registry", nil); err == nil {
			t.Errorf("a damaged backup of %d bytes was read", len(damaged))
		}
	}
}
