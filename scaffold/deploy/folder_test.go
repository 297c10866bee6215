// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/steer-dev/steer/scaffold/internal/transaction"
)

// TestPackagesThatAreKilledAreAsTheyWere kills the command that writes a chart, a bundle or
// kustomizations at each of its changes of the disk.
func TestPackagesThatAreKilledAreAsTheyWere(t *testing.T) {
	t.Parallel()
	type kill struct{}
	dir := t.TempDir()
	files := func() map[string]string {
		out := map[string]string{}
		err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if name := strings.TrimPrefix(path, dir); !strings.HasPrefix(name, string(filepath.Separator)+".steer"+string(filepath.Separator)) {
				out[name] = string(text)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	writes := func(version string, step func()) (killed bool) {
		defer func() {
			if r := recover(); r != nil {
				if _, killed = r.(kill); !killed {
					panic(r)
				}
			}
		}()
		f := Folder{Project: dir, Output: "dist/chart", step: step, Files: map[string][]byte{
			"a.yaml": []byte("a: " + version), "b/c.yaml": []byte("c: " + version), version + ".yaml": []byte("new"),
		}}
		if _, err := f.Write(); err != nil {
			t.Fatal(err)
		}
		return false
	}
	writes("v1", nil)
	before := files()
	kills := 0
	for killed := true; killed; kills++ {
		n := kills
		killed = writes("v2", func() {
			if n--; n < 0 {
				panic(kill{})
			}
		})
		if !killed {
			break
		}
		if _, err := transaction.Run(dir, nil, func(*transaction.Transaction) error { return nil }); err != nil {
			t.Fatalf("killed at change %d: %v", kills, err)
		}
		now := files()
		if now[filepath.FromSlash("/dist/chart/v2.yaml")] != "" { // all was done, but for the removal of what is kept
			writes("v1", nil)
			continue
		}
		if !maps.Equal(now, before) {
			t.Fatalf("killed at change %d: %v, want %v", kills, now, before)
		}
	}
	if kills < 10 {
		t.Errorf("%d changes only", kills)
	}
}
