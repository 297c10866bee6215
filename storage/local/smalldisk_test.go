// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
)

// On a real disk that runs full. .ci/disks names a small one in STEER_SMALL_DISK.
func TestASmallDiskIsSurvived(t *testing.T) {
	disk := os.Getenv("STEER_SMALL_DISK")
	if disk == "" {
		t.Skip("STEER_SMALL_DISK names no directory on a small disk: see .ci/disks")
	}
	dir, err := os.MkdirTemp(disk, "small") //nolint:usetesting // t.TempDir is on another disk
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	data, filler := filepath.Join(dir, "data"), filepath.Join(dir, "filler")
	s := openIn(t, data)
	fillDisk(t, filler)
	value := bytes.Repeat([]byte("0123456789abcdef"), 4<<10)
	write := func(s storage.Store, i int) error {
		_, err := s.Commit(context.Background(), storage.Write{Key: storage.Key{Bucket: "b", Name: fmt.Sprint(i)}, Value: value})
		return err
	}
	kept := 0
	for err == nil {
		if err = write(s, kept); err == nil {
			kept++
		}
	}
	t.Logf("%d writes, then: %v", kept, err)
	if !errors.Is(err, storage.ErrFull) && !errors.Is(err, storage.ErrPoisoned) || s.Health() == nil {
		t.Fatalf("got error %v, health %v", err, s.Health())
	}
	_ = s.Checkpoint(context.Background()) // there is no space for it either
	checkSmall(t, s, kept)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if errors.Is(err, storage.ErrPoisoned) {
		s.Close()
		s = openIn(t, data)
		v, err := s.View(context.Background(), 0)
		if err != nil {
			t.Fatal(err)
		}
		kept = max(kept, min(kept+1, v.Count("b", "", ""))) // its outcome is unknown
	}
	for range 10 {
		if err := write(s, kept); err != nil {
			t.Fatalf("there is space again: %v", err)
		}
		kept++
	}
	if err := errors.Join(s.Checkpoint(context.Background()), s.Close()); err != nil {
		t.Fatal(err)
	}
	checkSmall(t, openIn(t, data), kept)
}

// fillDisk leaves less than 1 MiB.
func fillDisk(t *testing.T, file string) {
	t.Helper()
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	chunk := bytes.Repeat([]byte("filler"), 1<<16)
	for {
		if _, err := f.Write(chunk); err != nil {
			break
		}
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(info.Size()-800<<10), f.Sync()); err != nil {
		t.Fatal(err)
	}
}

func checkSmall(t *testing.T, s *local.Store, want int) {
	t.Helper()
	v, err := s.View(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := v.Count("b", "", ""); got != want {
		t.Fatalf("found %d values, want %d", got, want)
	}
}
