// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// sweeper asks for the deletion of everything that is stored in a bucket.
type sweeper struct {
	bucket   string
	resets   int
	due      step.KeySet
	reported []error
}

func (s *sweeper) Name() string { return "sweeper" }

func (s *sweeper) Reset(view storage.View) {
	s.resets++
	s.due = step.KeySet{}
	for rec := range view.Ascend(s.bucket, "", "") {
		s.due.Add(rec.Key)
	}
}

func (s *sweeper) Filter(e storage.Event) bool { return e.Record.Key.Bucket == s.bucket }

func (s *sweeper) Handle(e storage.Event) {
	if e.Deleted {
		delete(s.due, e.Record.Key)
	} else {
		s.due.Add(e.Record.Key)
	}
}

func (s *sweeper) Sync(storage.View, time.Time) []step.Request {
	var out []step.Request
	for _, key := range s.due.Sorted() {
		out = append(out, step.Delete("me", key.Name, nil, step.Subject{Key: key}))
	}
	clear(s.due)
	return out
}

func (s *sweeper) Done(r step.Request, err error) {
	s.reported = append(s.reported, err)
	if err != nil {
		s.due.Add(r.Subject.Key)
	}
}

// bench is a store, a sweeper, and a sender that does what it is asked, unless
// it is told to fail.
type bench struct {
	store   *storage.Memory
	sweeper *sweeper
	runner  *step.Runner
	sent    []string
	failing int
}

var errRefused = errors.New("refused")

func newBench(o storage.MemoryOptions) *bench {
	b := &bench{store: storage.NewMemory(o), sweeper: &sweeper{bucket: "b"}}
	b.runner = step.NewRunner(b.store, b.send, slog.New(slog.DiscardHandler), b.sweeper)
	return b
}

func (b *bench) send(ctx context.Context, r step.Request) error {
	b.sent = append(b.sent, r.Path)
	if b.failing > 0 {
		b.failing--
		return errRefused
	}
	_, err := b.store.Commit(ctx, storage.Write{Key: r.Subject.Key, Expect: storage.AnyRevision})
	return err
}

func (b *bench) put(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		steptest.Put(t, b.store, storage.Key{Bucket: "b", Name: name}, name)
	}
}

func TestRunnerSettlesStoredAndNewObjects(t *testing.T) {
	t.Parallel()
	b := newBench(storage.MemoryOptions{})
	b.put(t, "y", "x")
	for range 2 {
		if _, err := b.runner.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	b.put(t, "z")
	if n, err := b.runner.Settle(t.Context()); n != 1 || err != nil {
		t.Fatalf("settle: %d, %v", n, err)
	}
	if diff := cmp.Diff([]string{"x", "y", "z"}, b.sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
	if b.sweeper.resets != 1 {
		t.Errorf("%d resets, want one", b.sweeper.resets)
	}
}

func TestRunnerRetriesALimitedNumberOfTimes(t *testing.T) {
	t.Parallel()
	b := newBench(storage.MemoryOptions{})
	b.put(t, "x")
	b.failing = 3
	if n, err := b.runner.Settle(t.Context()); n != 4 || err != nil {
		t.Fatalf("settle: %d, %v", n, err)
	}
	if !errors.Is(b.sweeper.reported[0], errRefused) || b.sweeper.reported[3] != nil {
		t.Errorf("reported %v", b.sweeper.reported)
	}
	b.put(t, "y")
	b.failing = 1000
	if _, err := b.runner.Settle(t.Context()); err == nil {
		t.Error("settle never gave up")
	}
}

// slow finds out in one step what is due, and asks for it in the next.
type slow struct {
	*sweeper
	found step.KeySet
}

func (s *slow) Sync(view storage.View, now time.Time) []step.Request {
	if len(s.found) > 0 {
		clear(s.found)
		return s.sweeper.Sync(view, now)
	}
	maps.Copy(s.found, s.due)
	return nil
}

func (s *slow) Wake() (at time.Time) {
	if len(s.found) > 0 {
		at = time.Unix(1, 0)
	}
	return at
}

func TestRunnerSettlesWhatAStepWithoutRequestsMadeDue(t *testing.T) {
	t.Parallel()
	b := newBench(storage.MemoryOptions{})
	runner := step.NewRunner(b.store, b.send, slog.New(slog.DiscardHandler), &slow{b.sweeper, step.KeySet{}})
	b.put(t, "x")
	if n, err := runner.Settle(t.Context()); n != 1 || err != nil {
		t.Errorf("settle: %d, %v", n, err)
	}
}

func TestRunnerResetsAfterCompaction(t *testing.T) {
	t.Parallel()
	b := newBench(storage.MemoryOptions{HistoryBytes: 1 << 10})
	if _, err := b.runner.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 500 {
		b.put(t, "much to forget")
	}
	b.put(t, "x")
	if _, err := b.runner.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if b.sweeper.resets < 2 || !slices.Contains(b.sent, "x") {
		t.Errorf("%d resets, sent %v", b.sweeper.resets, b.sent)
	}
}

func TestRunnerWaitsBetweenFailuresAndWakesForChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(storage.MemoryOptions{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.runner.Run(ctx) }()
		synctest.Wait()
		b.failing = 5
		start := time.Now()
		b.put(t, "x")
		time.Sleep(time.Second)
		synctest.Wait()
		if view := b.store.Latest(); view.Count("b", "", "") != 0 {
			t.Errorf("not done after %v; sent %v", time.Since(start), b.sent)
		}
		if len(b.sent) != 6 {
			t.Errorf("%d requests, want 6: one per wait", len(b.sent))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.runner.Close()
	})
}

// pacer tells when the runner opens a view, which it does when it is awake.
type pacer struct {
	*storage.Memory
	views atomic.Int64
}

func (p *pacer) Latest() storage.View {
	p.views.Add(1)
	return p.Memory.Latest()
}

func TestRunnerIgnoresWritesThatConcernNoController(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &pacer{Memory: storage.NewMemory(storage.MemoryOptions{})}
		b := &bench{store: store.Memory, sweeper: &sweeper{bucket: "b"}}
		b.runner = step.NewRunner(store, b.send, slog.New(slog.DiscardHandler), b.sweeper)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.runner.Run(ctx) }()
		synctest.Wait()
		awake := store.views.Load()
		for range 1000 {
			steptest.Put(t, store, storage.Key{Bucket: "other", Name: "x"}, "x")
		}
		synctest.Wait()
		if n := store.views.Load(); n != awake {
			t.Errorf("woke %d times", n-awake)
		}
		if err := b.runner.Idle(ctx, 1000); err != nil {
			t.Errorf("idle: %v", err)
		}
		b.put(t, "x")
		if err := b.runner.Idle(ctx, 1001); err != nil {
			t.Errorf("idle: %v", err)
		}
		if diff := cmp.Diff([]string{"x"}, b.sent); diff != "" || b.sweeper.resets != 1 {
			t.Errorf("%d resets; sent (-want +got):\n%s", b.sweeper.resets, diff)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		b.runner.Close()
	})
}
