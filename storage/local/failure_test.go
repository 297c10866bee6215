// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/frame"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

func mustOpen(t testing.TB, dir *vfs.Crash) *Store {
	t.Helper()
	s, err := open(dir, Options{CheckpointBytes: -1})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t testing.TB, s storage.Store, name string) {
	t.Helper()
	if err := tryPut(s, name); err != nil {
		t.Fatal(err)
	}
}

func tryPut(s storage.Store, name string) error {
	_, err := s.Commit(context.Background(), storage.Write{
		Key: storage.Key{Bucket: "b", Name: name}, Value: []byte("value of " + name), Expect: storage.AnyRevision,
	})
	return err
}

// names lists the names in the test's bucket.
func names(t testing.TB, s storage.Store) []string {
	t.Helper()
	v, err := s.View(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rec := range v.Ascend("b", "", "") {
		out = append(out, rec.Key.Name)
	}
	return out
}

// logs lists the segments in a directory.
func logs(t testing.TB, dir vfs.Dir) []string {
	t.Helper()
	all, err := dir.List()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(n string) bool { return !strings.HasSuffix(n, logSuffix) })
}

// frameEnds returns the ends of the frames in the only segment.
func frameEnds(t testing.TB, dir *vfs.Crash) []int {
	t.Helper()
	data := dir.Contents(logs(t, dir)[0])
	r, err := frame.NewReader(strings.NewReader(string(data)), frame.Log)
	if err != nil {
		t.Fatal(err)
	}
	ends := []int{frame.HeaderSize}
	for {
		if _, _, err := r.Next(); err != nil {
			return ends
		}
		ends = append(ends, int(r.Offset))
	}
}

// three returns a directory with three writes, closed or killed.
func three(t testing.TB, closed bool) *vfs.Crash {
	t.Helper()
	dir := vfs.NewCrash()
	s := mustOpen(t, dir)
	for _, name := range []string{"a", "b", "c"} {
		put(t, s, name)
	}
	if closed {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return dir.Kill()
}

func TestDamageInTheMiddleIsRefused(t *testing.T) {
	t.Parallel()
	for _, closed := range []bool{false, true} {
		ends := frameEnds(t, three(t, closed))
		last := ends[2] // the third write is the last in a killed segment
		if closed {
			last = ends[3] // here the end mark follows it
		}
		for at := frame.HeaderSize; at < last; at++ {
			dir := three(t, closed)
			name := logs(t, dir)[0]
			dir.Corrupt(name, at, 0x40)
			_, err := open(dir, Options{})
			corrupt, ok := errors.AsType[*storage.CorruptError](err)
			i, exact := slices.BinarySearch(ends, at)
			if !exact {
				i--
			}
			if !ok || corrupt.File != name || corrupt.Offset != int64(ends[i]) {
				t.Fatalf("closed %v, damage at %d in the frame at %d: got error %v", closed, at, ends[i], err)
			}
		}
	}
}

func TestATornEndIsDropped(t *testing.T) {
	t.Parallel()
	whole := three(t, false)
	name, ends := logs(t, whole)[0], frameEnds(t, whole)
	for at := ends[2]; at < ends[3]; at++ {
		dir := three(t, false)
		dir.Corrupt(name, at, 0x40)
		s := mustOpen(t, dir)
		if got := names(t, s); !slices.Equal(got, []string{"a", "b"}) {
			t.Fatalf("torn at %d: found %v", at, got)
		}
		put(t, s, "d")
		s.Close()
		s = mustOpen(t, dir.PowerLoss(rand.New(rand.NewPCG(1, 1))))
		if got := names(t, s); !slices.Equal(got, []string{"a", "b", "d"}) {
			t.Fatalf("torn at %d, then written: found %v", at, got)
		}
		s.Close()
	}
}

func TestMissingSegmentsAreNoticed(t *testing.T) {
	t.Parallel()
	dir := vfs.NewCrash()
	for _, name := range []string{"a", "b", "c"} { // one segment each
		s := mustOpen(t, dir)
		put(t, s, name)
		s.Close()
	}
	segments := logs(t, dir)
	for i, gone := range segments[:2] {
		damaged := dir.Kill()
		damaged.Remove(gone)
		_, err := open(damaged, Options{})
		if corrupt, ok := errors.AsType[*storage.CorruptError](err); !ok || corrupt.File != segments[i+1] {
			t.Errorf("without %s: got error %v, want a CorruptError of %s", gone, err, segments[i+1])
		}
	}
}

func TestADamagedHeaderOrCheckpointIsRefused(t *testing.T) {
	t.Parallel()
	for at := range frame.HeaderSize {
		dir := three(t, true)
		dir.Corrupt(logs(t, dir)[0], at, 0x40)
		if _, err := open(dir, Options{}); err == nil {
			t.Errorf("a segment damaged at %d was accepted", at)
		}
		dir = vfs.NewCrash()
		s := mustOpen(t, dir)
		put(t, s, "a")
		if err := s.Checkpoint(context.Background()); err != nil {
			t.Fatal(err)
		}
		s.Close()
		dir.Corrupt(fileName(1, snapshotSuffix), at, 0x40)
		if _, err := open(dir, Options{}); err == nil {
			t.Errorf("a checkpoint damaged at %d was accepted", at)
		}
	}
}

// failing makes the n-th operation of a kind on a segment fail once.
func failing(op vfs.Op, n int, err error) func(vfs.Op, string) error {
	return func(got vfs.Op, name string) error {
		if got == op && strings.HasSuffix(name, logSuffix) {
			if n--; n == 0 {
				return err
			}
		}
		return nil
	}
}

func TestAFailedWriteOrSyncPoisonsUntilReopened(t *testing.T) {
	t.Parallel()
	for _, op := range []vfs.Op{vfs.OpWrite, vfs.OpSync} {
		dir := vfs.NewCrash()
		s := mustOpen(t, dir)
		put(t, s, "a")
		dir.Inject = failing(op, 1, syscall.EIO)
		if err := tryPut(s, "b"); !errors.Is(err, storage.ErrPoisoned) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("%s: got error %v, want ErrPoisoned", op, err)
		}
		if err := tryPut(s, "c"); !errors.Is(err, storage.ErrPoisoned) {
			t.Fatalf("%s: the next write: got error %v, want ErrPoisoned", op, err)
		}
		if err := s.Health(); !errors.Is(err, storage.ErrPoisoned) {
			t.Fatalf("%s: health: got error %v, want ErrPoisoned", op, err)
		}
		if got := names(t, s); !slices.Equal(got, []string{"a"}) {
			t.Fatalf("%s: the store shows %v", op, got)
		}
		s.Close()
		s = mustOpen(t, dir)
		found := names(t, s)
		if !slices.Contains(found, "a") || slices.Contains(found, "c") {
			t.Fatalf("%s: recovered %v", op, found)
		}
		// The write that was found must stay, although the disk never confirmed it.
		s = mustOpen(t, dir.PowerLoss(rand.New(rand.NewPCG(2, 2))))
		if got := names(t, s); !slices.Equal(got, found) {
			t.Fatalf("%s: after a loss of power %v, before %v", op, got, found)
		}
	}
}

// A kill during recovery leaves a segment whose name is not durable. A process that
// opens the store then and only reads must make it durable, or else shows data that a
// loss of power removes.
func TestRecoveredWritesSurviveAPowerLoss(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		dir := vfs.NewCrash()
		s := mustOpen(t, dir)
		put(t, s, "a")
		dir.Inject = failing(vfs.OpSync, 1, syscall.EIO)
		if err := tryPut(s, "b"); !errors.Is(err, storage.ErrPoisoned) {
			t.Fatalf("got error %v, want ErrPoisoned", err)
		}
		dir.Inject = func(op vfs.Op, _ string) error {
			if op == vfs.OpSyncDir {
				return errCrashed
			}
			return nil
		}
		if _, err := open(dir, Options{}); !errors.Is(err, errCrashed) {
			t.Fatalf("got error %v, want that of the directory", err)
		}
		dir = dir.Kill()
		shown := names(t, mustOpen(t, dir))
		if got := names(t, mustOpen(t, dir.PowerLoss(rand.New(rand.NewPCG(seed, 0))))); !slices.Equal(got, shown) {
			t.Fatalf("shown %v, after the loss of power %v", shown, got)
		}
	}
}

func TestAFullDiskRefusesWritesUntilThereIsSpace(t *testing.T) {
	t.Parallel()
	for _, fresh := range []bool{true, false} { // at a new segment, and within one
		dir := vfs.NewCrash()
		s := mustOpen(t, dir)
		var kept []string
		if !fresh {
			put(t, s, "a")
			kept = append(kept, "a")
		}
		full := false
		dir.Inject = func(op vfs.Op, name string) error {
			if full && op == vfs.OpWrite {
				return syscall.ENOSPC
			}
			return nil
		}
		full = true
		large := storage.Write{Key: storage.Key{Bucket: "b", Name: "large"}, Value: make([]byte, 4*minAhead)}
		for range 3 {
			if _, err := s.Commit(context.Background(), large); !errors.Is(err, storage.ErrFull) {
				t.Fatalf("got error %v, want ErrFull", err)
			}
		}
		if err := s.Health(); !errors.Is(err, storage.ErrFull) {
			t.Fatalf("health: got error %v, want ErrFull", err)
		}
		full = false
		if _, err := s.Commit(context.Background(), large); err != nil {
			t.Fatal(err)
		}
		put(t, s, "z")
		if err := errors.Join(s.Health(), s.Close()); err != nil {
			t.Fatal(err)
		}
		s = mustOpen(t, dir)
		if got, want := names(t, s), append(kept, "large", "z"); !slices.Equal(got, want) {
			t.Fatalf("recovered %v, want %v", got, want)
		}
	}
}

func TestAFailedCheckpointKeepsTheLog(t *testing.T) {
	t.Parallel()
	dir := vfs.NewCrash()
	var told []Checkpoint
	s, err := open(dir, Options{CheckpointBytes: -1, OnCheckpoint: func(c Checkpoint) { told = append(told, c) }})
	if err != nil {
		t.Fatal(err)
	}
	put(t, s, "a")
	dir.Inject = func(op vfs.Op, name string) error {
		if strings.HasSuffix(name, snapshotSuffix+tmpSuffix) && op == vfs.OpWrite {
			return syscall.ENOSPC
		}
		return nil
	}
	if err := s.Checkpoint(context.Background()); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("got error %v, want ENOSPC", err)
	}
	dir.Inject = nil
	put(t, s, "b")
	if err := s.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	if len(told) != 2 || told[0].Err == nil || told[1].Err != nil || told[1].Revision != 2 || told[1].Bytes == 0 {
		t.Fatalf("told %+v", told)
	}
	s.Close()
	if got := names(t, mustOpen(t, dir)); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("recovered %v", got)
	}
}

func TestCheckpointsKeepTheDirectorySmallWhileServing(t *testing.T) {
	t.Parallel()
	dir := vfs.NewCrash()
	done := make(chan Checkpoint, 1000)
	s, err := open(dir, Options{CheckpointBytes: 8 << 10, OnCheckpoint: func(c Checkpoint) { done <- c }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		put(t, s, fmt.Sprint(i%50))
	}
	if c := <-done; c.Err != nil {
		t.Fatal(c.Err)
	}
	want := names(t, s)
	if err := s.Checkpoint(context.Background()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if all, _ := dir.List(); len(all) > 3 {
		t.Fatalf("left %v", all)
	}
	s = mustOpen(t, dir)
	if v, _ := s.View(context.Background(), 0); v.Revision() != 3000 || !slices.Equal(names(t, s), want) {
		t.Fatalf("recovered revision %d", v.Revision())
	}
	put(t, s, "next")
	if v, _ := s.View(context.Background(), 0); v.Revision() != 3001 {
		t.Fatalf("went on with revision %d", v.Revision())
	}
}

func TestWatchesResumeAfterARestart(t *testing.T) {
	t.Parallel()
	dir := three(t, false)
	s := mustOpen(t, dir)
	c, err := s.Watch(storage.Range{Bucket: "b"}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := c.Poll(); err != nil || len(b.Events) != 2 || b.Events[0].Record.Key.Name != "b" {
		t.Fatalf("got %v, %v", b, err)
	}
}

func FuzzOpen(f *testing.F) {
	dir := three(f, true)
	f.Add(dir.Contents(logs(f, dir)[0]))
	dir = three(f, false)
	f.Add(dir.Contents(logs(f, dir)[0])[:200])
	f.Fuzz(func(t *testing.T, segment []byte) {
		dir := vfs.NewCrash()
		if err := writeFormat(dir); err != nil {
			t.Fatal(err)
		}
		file, _ := dir.Open(fileName(1, logSuffix), true)
		file.WriteAt(segment, 0)
		s, err := open(dir, Options{CheckpointBytes: -1})
		if err != nil {
			return
		}
		found := names(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		// What was accepted once is accepted again, with the same contents.
		s = mustOpen(t, dir)
		if again := names(t, s); !slices.Equal(found, again) {
			t.Fatalf("found %v, then %v", found, again)
		}
	})
}

func FuzzDecode(f *testing.F) {
	f.Add(encode(nil, []storage.Change{{Revision: 8, Key: storage.Key{Bucket: "b", Name: "n"}, Value: []byte("v7"), Stamp: 1}}), uint64(7), uint64(8))
	f.Fuzz(func(t *testing.T, payload []byte, after, last uint64) {
		changes, err := decode(payload, after, last)
		if err == nil && uint64(len(changes)) != last-after {
			t.Fatalf("%d changes from %d to %d", len(changes), after, last)
		}
	})
}
