// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"bufio"
	"context"
	"io"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

// checkpoints keeps the log short.
type checkpoints struct {
	// writing is held while a checkpoint is written.
	writing sync.Mutex

	mu      sync.Mutex
	files   files
	logged  int64 // bytes of log since the last checkpoint
	size    int64 // of the last checkpoint
	rotate  bool  // the next write begins a new segment
	running bool  // in the background
	stopped bool
	cancel  context.CancelFunc // of the one in the background
	done    sync.WaitGroup
}

// wantsRotation reports whether the next write begins a new segment.
func (c *checkpoints) wantsRotation() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rotate
}

// add records a new segment.
func (c *checkpoints) add(f file) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.files.segments = append(c.files.segments, f)
	c.rotate = false
}

// grow counts logged bytes and starts a checkpoint when it is due.
func (c *checkpoints) grow(l *log, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.logged += n
	if l.threshold < 0 || c.logged < max(l.threshold, c.size) || c.running || c.stopped {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.running, c.cancel = true, cancel
	c.done.Go(func() {
		defer cancel()
		_ = l.checkpoint(ctx) // the error is reported by OnCheckpoint
		c.mu.Lock()
		c.running = false
		c.mu.Unlock()
	})
}

// stop cancels the checkpoint in the background, waits for any other and prevents
// further ones.
func (c *checkpoints) stop() {
	c.mu.Lock()
	c.stopped = true
	if c.cancel != nil {
		c.cancel()
	}
	c.mu.Unlock()
	c.done.Wait()
	c.writing.Lock()
	defer c.writing.Unlock()
}

// checkpoint writes the newest state and removes the files that it replaces.
func (l *log) checkpoint(ctx context.Context) error {
	c := &l.checkpoints
	c.writing.Lock()
	defer c.writing.Unlock()
	began := time.Now()
	c.mu.Lock()
	stopped, logged := c.stopped, c.logged
	// Segments are removed as a whole, so the current one ends here.
	c.rotate = true
	c.mu.Unlock()
	if stopped {
		return storage.ErrClosed
	}

	v := l.memory.Latest()
	info := Checkpoint{Revision: v.Revision()}
	if info.Bytes, info.Err = writeCheckpoint(ctx, l.dir, v); info.Err == nil {
		info.Err = c.prune(l.dir, uint64(v.Revision()))
	}
	c.mu.Lock()
	c.logged -= logged // a failed one is retried after as many bytes
	if info.Err == nil {
		c.size = info.Bytes
	}
	c.mu.Unlock()
	info.Took = time.Since(began)
	if l.report != nil {
		l.report(info)
	}
	return info.Err
}

// prune removes the files that a snapshot of a revision replaces.
func (c *checkpoints) prune(dir vfs.Dir, revision uint64) error {
	c.mu.Lock()
	var gone []file
	for _, s := range c.files.snapshots {
		if s.revision < revision {
			gone = append(gone, s)
		}
	}
	c.files.snapshots = []file{{fileName(revision, snapshotSuffix), revision}}
	for len(c.files.segments) > 1 && c.files.segments[1].revision <= revision+1 {
		gone = append(gone, c.files.segments[0])
		c.files.segments = c.files.segments[1:]
	}
	c.mu.Unlock()
	for _, f := range gone {
		if err := dir.Remove(f.name); err != nil {
			return err
		}
	}
	return dir.Sync()
}

// writeCheckpoint writes the snapshot file of a view and returns its size.
func writeCheckpoint(ctx context.Context, dir vfs.Dir, v storage.View) (int64, error) {
	counter := &countingWriter{}
	err := replace(dir, fileName(uint64(v.Revision()), snapshotSuffix), func(w io.Writer) error {
		counter.w = w
		buffered := bufio.NewWriterSize(counter, 256<<10)
		if err := storage.Save(ctx, buffered, v); err != nil {
			return err
		}
		return buffered.Flush()
	})
	return counter.n, err
}

// countingWriter counts written bytes.
type countingWriter struct {
	w io.Writer
	n int64
}

func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}
