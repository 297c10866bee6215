// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

// meanwhile is a context that calls a function when Err is checked between the parts of
// a checkpoint.
type meanwhile struct {
	context.Context
	do func()
}

func (m *meanwhile) Err() error {
	if m.do != nil {
		m.do()
		m.do = nil
	}
	return nil
}

// fillAtNewSegment leaves space for a new segment, but not for the write that it is
// for.
func fillAtNewSegment(t *testing.T, s *Store, dir *vfs.Crash) {
	t.Helper()
	dir.SetDisk(vfs.Disk{Bounded: true, Free: minAhead})
	large := storage.Write{Key: storage.Key{Bucket: "b", Name: "large"}, Value: make([]byte, 4*minAhead)}
	if _, err := s.Commit(context.Background(), large); !errors.Is(err, storage.ErrFull) {
		t.Fatalf("got error %v, want ErrFull", err)
	}
	dir.SetDisk(vfs.Disk{})
}

// An empty segment is also the next one: it must not be counted twice, or the
// checkpoint removes it as replaced.
func TestACheckpointKeepsASegmentThatBeganOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, reopened := range []bool{false, true} {
		dir := vfs.NewCrash()
		s := mustOpen(t, dir)
		put(t, s, "a")
		if err := s.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
		fillAtNewSegment(t, s, dir)
		if reopened {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = mustOpen(t, dir)
		}
		if err := s.Checkpoint(&meanwhile{context.Background(), func() { put(t, s, "b") }}); err != nil {
			t.Fatal(err)
		}
		put(t, s, "c")
		s = mustOpen(t, dir.Kill())
		if got := names(t, s); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("reopened %v: found %v after a kill, want a, b and c", reopened, got)
		}
	}
}

// On such file systems a write may find no space where zeros were written before. The
// outcome of a started frame is then unknown, so the store acknowledges nothing until
// it is reopened.
func TestAFullDiskThatCopiesOnWriteIsSurvived(t *testing.T) {
	t.Parallel()
	for free := 0; free < 6*minAhead; free += 777 {
		dir := vfs.NewCrash()
		s := mustOpen(t, dir)
		put(t, s, "a")
		dir.SetDisk(vfs.Disk{Bounded: true, CopyOnWrite: true, Free: free})
		kept, refused := []string{"a"}, 0
		for i := range 40 {
			name := string(rune('b' + i))
			_, err := s.Commit(context.Background(), storage.Write{
				Key: storage.Key{Bucket: "b", Name: name}, Value: bytes.Repeat([]byte("v"), 4000), Expect: storage.AnyRevision,
			})
			switch {
			case err == nil:
				kept = append(kept, name)
			case errors.Is(err, storage.ErrFull) == errors.Is(err, storage.ErrPoisoned):
				t.Fatalf("%d bytes free: got error %v, want ErrFull or ErrPoisoned", free, err)
			default:
				refused++
			}
		}
		if refused == 0 || s.Health() == nil {
			t.Fatalf("%d bytes free: %d writes were refused, health %v", free, refused, s.Health())
		}
		if got := names(t, s); !slices.Equal(got, kept) {
			t.Fatalf("%d bytes free: reads show %v, want %v", free, got, kept)
		}
		s.Close()
		dir = dir.Kill()
		dir.SetDisk(vfs.Disk{})
		s = mustOpen(t, dir)
		put(t, s, "z")
		if got := names(t, s); !slices.Equal(got, append(kept, "z")) {
			t.Fatalf("%d bytes free: found %v after a restart, want %v and z", free, got, kept)
		}
	}
}
