// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local is the durable store for one machine: the memory store of package
// storage with a log on disk. [Open] returns a storage.Store whose acknowledged writes
// survive the end of the process and the loss of power, and whose readers never see a
// write that would not.
//
// # The data directory
//
//	FORMAT                    the version of this layout
//	LOCK                      held by the process that has the store open
//	<revision>.snapshot       a checkpoint: the whole state at that revision
//	<revision>.log            the log segment that begins with that revision
//	*.tmp                     being written; worth nothing after a crash
//
// A write is one change in a frame of the newest segment; all writes that arrive while
// a frame is being made durable share the next one, so that they share one sync (see
// storage.Journal). When the log is larger than the last checkpoint, a goroutine writes
// the next one from a view while writes continue, and removes the files that it
// replaces. There is no other goroutine.
//
// # Recovery
//
// Opening reads the newest checkpoint and the segments after it; their changes become
// the history again, so that watches resume. Every frame has a checksum, every segment
// names its first revision, and a clean [Store.Close] ends it with a mark. So a torn
// end, which a crash leaves and which was never acknowledged, is distinguished from
// damage in the middle: the former is dropped, the latter refused with an error that
// names the file and the offset. The newest segment after a crash is rewritten before
// it is served, because after a failed fsync the page cache may show data that the disk
// does not have.
//
// # Failure
//
// A write to the log or an fsync that fails poisons the store: it acknowledges no
// further writes, Health returns the cause, reads and watches continue. Reopening
// recovers all acknowledged writes. A full disk is no such failure: space is reserved
// before it is needed, so the write is refused as a whole with storage.ErrFull, and the
// next one succeeds once there is space. On a file system that copies on write,
// reserving has no effect, and a started frame may find the disk full: that poisons the
// store; free space and reopen it.
package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/durable"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

// Options configures a [Store]. The zero value is the default.
type Options struct {
	// HistoryAge and HistoryBytes are those of storage.MemoryOptions.
	HistoryAge   time.Duration
	HistoryBytes int
	// CheckpointBytes is the size of the log at which a checkpoint is written, unless
	// the last checkpoint was larger. 0 means 16 MiB, -1 only [Store.Checkpoint].
	CheckpointBytes int64
	// OnCheckpoint, if set, is called after every checkpoint, also after one that
	// failed: the log is then kept, and the next one tries again.
	OnCheckpoint func(Checkpoint)
}

// Checkpoint describes a finished checkpoint.
type Checkpoint struct {
	Revision storage.Revision
	Bytes    int64
	Took     time.Duration
	Err      error
}

// Store is a durable storage.Store. Its Fork is a memory store.
type Store struct {
	*storage.Memory
	log     *log
	release io.Closer // of the lock

	released sync.Once
}

// Open opens the store in a directory, which is created with mode 0700 if it does not
// exist. It fails with an [*InUseError] if another process has it open, a
// [*FormatError] if a newer program wrote it, and a *storage.CorruptError if it is
// damaged.
func Open(dir string, o Options) (*Store, error) {
	lock, err := claim(dir)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(vfs.OS(dir), o)
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("open store in %s: %w", dir, err)
	}
	s.release = lock
	return s, nil
}

// claim creates and locks the directory.
func claim(dir string) (io.Closer, error) {
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("%w: choose a directory that this user can write to", err)
	}
	lock, err := vfs.Lock(filepath.Join(dir, "LOCK"))
	switch {
	case errors.Is(err, vfs.ErrLocked):
		return nil, &InUseError{Dir: dir}
	case err != nil:
		return nil, fmt.Errorf("%w: the directory must be writable for this user", err)
	}
	return lock, nil
}

// open opens the store in a locked directory.
func open(dir vfs.Dir, o Options) (*Store, error) {
	if err := checkFormat(dir); err != nil {
		return nil, full(err)
	}
	found, err := survey(dir)
	if err != nil {
		return nil, err
	}
	from, err := found.load(dir)
	if err != nil {
		return nil, err
	}
	r := &recovery{dir: dir, found: found, last: uint64(from.Revision())}
	l := &log{
		dir:       dir,
		threshold: cmp.Or(o.CheckpointBytes, 16<<20),
		report:    o.OnCheckpoint,
	}
	memory, err := storage.NewJournaled(l, r.changes(), storage.MemoryOptions{
		From: from, HistoryAge: o.HistoryAge, HistoryBytes: o.HistoryBytes,
	})
	if err != nil {
		return nil, err
	}
	if err := r.finish(); err != nil {
		return nil, full(err)
	}
	l.begin(memory, found, r)
	return &Store{Memory: memory, log: l}, nil
}

// Checkpoint writes a checkpoint of the newest state and removes the files that it
// replaces. It waits for one that is in progress first.
func (s *Store) Checkpoint(ctx context.Context) error { return s.log.checkpoint(ctx) }

// Close waits for the writes and the checkpoint in progress, ends the log and releases
// the directory. It is idempotent.
func (s *Store) Close() error {
	err := s.Memory.Close()
	if s.release != nil {
		s.released.Do(func() { s.release.Close() }) // once: the descriptor of the lock may be another file's by now
	}
	return err
}

// Restore creates a data directory from a snapshot that storage.Save wrote. It refuses
// a directory that has a store, and leaves nothing that Open accepts if it fails.
func Restore(dir string, r io.Reader) error {
	lock, err := claim(dir)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	defer lock.Close()
	v, err := storage.Load(r)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	if err := restore(vfs.OS(dir), v); err != nil {
		return fmt.Errorf("restore into %s: %w", dir, err)
	}
	return nil
}

func restore(dir vfs.Dir, v storage.View) error {
	found, err := survey(dir)
	if err != nil {
		return err
	}
	if !found.empty() {
		return ErrNotEmpty
	}
	// The format is written last: without it, the directory is not a store.
	if _, err := writeCheckpoint(context.Background(), dir, v); err != nil {
		return full(err)
	}
	return full(writeFormat(dir))
}
