// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package vfs_test

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"github.com/steer-dev/steer/storage/internal/vfs"
)

func write(t *testing.T, d vfs.Dir, name, text string, sync bool) vfs.File {
	t.Helper()
	f, err := d.Open(name, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		t.Fatal(err)
	}
	if sync {
		if err := errors.Join(f.Sync(), d.Sync()); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// read returns the contents of a file, or "-" if it does not exist.
func read(t *testing.T, d vfs.Dir, name string) string {
	t.Helper()
	f, err := d.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return "-"
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Both directories behave the same while nothing fails.
func TestDirectoriesAgree(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]vfs.Dir{"os": vfs.OS(t.TempDir()), "crash": vfs.NewCrash()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := write(t, d, "a", "one", true)
			if _, err := f.WriteAt([]byte("XY"), 4); err != nil {
				t.Fatal(err)
			}
			if got := read(t, d, "a"); got != "one\x00XY" {
				t.Fatalf("read %q", got)
			}
			write(t, d, "b", "two", false).Close()
			if err := d.Rename("b", "a"); err != nil {
				t.Fatal(err)
			}
			if got := read(t, d, "a"); got != "two" {
				t.Fatalf("read %q", got)
			}
			write(t, d, "c", "long", false)
			write(t, d, "c", "s", false)
			names, err := d.List()
			slices.Sort(names)
			if err != nil || !slices.Equal(names, []string{"a", "c"}) || read(t, d, "c") != "s" {
				t.Fatalf("listed %v, %v", names, err)
			}
			if err := errors.Join(d.Remove("c"), d.Sync()); err != nil {
				t.Fatal(err)
			}
			for _, err := range []error{d.Remove("c"), d.Rename("c", "d")} {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Fatalf("got error %v", err)
				}
			}
		})
	}
}

func TestPowerLossKeepsWhatWasSyncedAndAnyPartOfTheRest(t *testing.T) {
	t.Parallel()
	d := vfs.NewCrash()
	f := write(t, d, "a", "aaaa", true)
	f.WriteAt([]byte("bbbb"), 2)
	write(t, d, "gone", "y", true)
	write(t, d, "unnamed", "x", false).Sync()
	d.Remove("gone")
	found := map[string]map[string]bool{}
	for seed := range uint64(300) {
		after := d.PowerLoss(rand.New(rand.NewPCG(seed, 0)))
		for _, name := range []string{"a", "unnamed", "gone"} {
			if found[name] == nil {
				found[name] = map[string]bool{}
			}
			found[name][read(t, after, name)] = true
		}
	}
	for name, wants := range map[string][]string{"a": {"aaaa", "aabbbb", "aaba"}, "unnamed": {"x", "-"}, "gone": {"y", "-"}} {
		for _, want := range wants {
			if !found[name][want] {
				t.Errorf("%s was never %q", name, want)
			}
		}
	}
	for got := range found["a"] {
		if got[:2] != "aa" {
			t.Errorf("a synced byte was lost: %q", got)
		}
	}
}

func TestAKillKeepsEverythingButNotDurably(t *testing.T) {
	t.Parallel()
	d := vfs.NewCrash()
	write(t, d, "a", "x", false)
	killed := d.Kill()
	if got := read(t, killed, "a"); got != "x" {
		t.Fatalf("read %q", got)
	}
	lost := 0
	for seed := range uint64(50) {
		if read(t, killed.PowerLoss(rand.New(rand.NewPCG(seed, 0))), "a") != "x" {
			lost++
		}
	}
	if lost == 0 {
		t.Fatal("a kill made the file durable")
	}
}

func TestCrashShowsButNeverWritesWhatAFailedSyncDropped(t *testing.T) {
	t.Parallel()
	d := vfs.NewCrash()
	f := write(t, d, "a", "old", true)
	f.WriteAt([]byte("new"), 0)
	failure := errors.New("disk")
	d.Inject = func(op vfs.Op, _ string) error {
		if op == vfs.OpSync {
			return failure
		}
		return nil
	}
	if err := f.Sync(); !errors.Is(err, failure) {
		t.Fatalf("got error %v", err)
	}
	d.Inject = nil
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := read(t, d, "a"); got != "new" {
		t.Fatalf("the cache shows %q", got)
	}
	if got := read(t, d.PowerLoss(rand.New(rand.NewPCG(1, 0))), "a"); got != "old" {
		t.Fatalf("the disk has %q", got)
	}
}

func TestALockHasOneHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "LOCK")
	l, err := vfs.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vfs.Lock(path); !errors.Is(err, vfs.ErrLocked) {
		t.Fatalf("got error %v, want ErrLocked", err)
	}
	l.Close()
	l, err = vfs.Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}
