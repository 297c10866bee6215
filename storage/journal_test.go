// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest"
)

// gate is a journal whose appends block until the test releases them.
type gate struct {
	groups  chan []storage.Change
	outcome chan error
}

func (g *gate) Append(changes []storage.Change) error {
	g.groups <- changes
	return <-g.outcome
}

func (g *gate) Close() error { return nil }

func journaled(t testing.TB, j storage.Journal, past ...storage.Change) *storage.Memory {
	t.Helper()
	var seq iter.Seq2[storage.Change, error] = func(yield func(storage.Change, error) bool) {
		for _, c := range past {
			if !yield(c, nil) {
				return
			}
		}
	}
	s, err := storage.NewJournaled(j, seq, storage.MemoryOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// noJournal keeps nothing.
type noJournal struct{}

func (noJournal) Append([]storage.Change) error { return nil }
func (noJournal) Close() error                  { return nil }

func TestJournaledKeepsTheContract(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) storage.Store { return journaled(t, noJournal{}) }
	storagetest.Run(t, open)
	storagetest.Model(t, open, storagetest.ModelOptions{Runs: 3, Seed: 50})
	storagetest.Linearize(t, open)
}

// gated runs a test with a gated journal in a bubble.
func gated(t *testing.T, test func(t *testing.T, g *gate, s *storage.Memory)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := &gate{groups: make(chan []storage.Change), outcome: make(chan error)}
		test(t, g, journaled(t, g))
	})
}

// commitLater starts a write and returns a channel with its outcome.
func commitLater(ctx context.Context, s storage.Store, w storage.Write) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := s.Commit(ctx, w)
		done <- err
	}()
	synctest.Wait()
	return done
}

func create(name string) storage.Write {
	return storage.Write{Key: storage.Key{Bucket: "b", Name: name}, Value: []byte("v")}
}

func TestNothingShowsBeforeItIsDurable(t *testing.T) {
	gated(t, func(t *testing.T, g *gate, s *storage.Memory) {
		c := watch(t, s, storage.Range{}, 0)
		done := commitLater(context.Background(), s, create("a"))
		<-g.groups
		v, err := s.View(context.Background(), 0)
		if err != nil || v.Revision() != 0 || v.Count("b", "", "") != 0 {
			t.Fatalf("the view shows revision %d, %v", v.Revision(), err)
		}
		if b, err := c.Poll(); err != nil || len(b.Events) != 0 || b.Revision != 0 {
			t.Fatalf("the watch shows %v, %v", b, err)
		}
		select {
		case err := <-done:
			t.Fatalf("acknowledged: %v", err)
		default:
		}
		g.outcome <- nil
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if b, err := c.Poll(); err != nil || len(b.Events) != 1 {
			t.Fatalf("the watch shows %v, %v", b, err)
		}
	})
}

func TestWritesThatWaitShareTheNextGroup(t *testing.T) {
	gated(t, func(t *testing.T, g *gate, s *storage.Memory) {
		outcomes := []<-chan error{commitLater(context.Background(), s, create("first"))}
		<-g.groups
		for i := range 5 {
			outcomes = append(outcomes, commitLater(context.Background(), s, create(fmt.Sprint(i))))
		}
		// Evaluated on the earlier writes of the group, not on the visible state.
		twice := commitLater(context.Background(), s, create("3"))
		g.outcome <- nil
		group := <-g.groups
		if len(group) != 5 || group[0].Revision != 2 || group[4].Revision != 6 {
			t.Fatalf("the second group has %d writes", len(group))
		}
		g.outcome <- nil
		for _, done := range outcomes {
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if err := <-twice; !errors.Is(err, storage.ErrConflict) {
			t.Fatalf("got error %v, want ErrConflict", err)
		}
	})
}

func TestConditionsSeeWhatTheGroupDoesBeforeThem(t *testing.T) {
	gated(t, func(t *testing.T, g *gate, s *storage.Memory) {
		first := commitLater(context.Background(), s, create("definition"))
		<-g.groups
		change, before, after := create("definition"), create("before"), create("after")
		change.Expect = 1
		before.While = storage.Condition{Key: change.Key, At: 1}
		after.While = storage.Condition{Key: change.Key, At: 2}
		changed := commitLater(context.Background(), s, change)
		late, fine := commitLater(context.Background(), s, before), commitLater(context.Background(), s, after)
		g.outcome <- nil
		if group := <-g.groups; len(group) != 2 || group[1].Key != after.Key {
			t.Fatalf("the second group is %v", group)
		}
		g.outcome <- nil
		if err := errors.Join(<-first, <-changed, <-fine); err != nil {
			t.Fatal(err)
		}
		if err := <-late; !errors.Is(err, storage.ErrUnmet) {
			t.Fatalf("got error %v, want ErrUnmet", err)
		}
	})
}

func TestAWriteThatWaitsCanBeWithdrawn(t *testing.T) {
	gated(t, func(t *testing.T, g *gate, s *storage.Memory) {
		first := commitLater(context.Background(), s, create("first"))
		<-g.groups
		ctx, cancel := context.WithCancel(context.Background())
		withdrawn := commitLater(ctx, s, create("withdrawn"))
		kept := commitLater(context.Background(), s, create("kept"))
		cancel()
		if err := <-withdrawn; !errors.Is(err, context.Canceled) {
			t.Fatalf("got error %v, want Canceled", err)
		}
		g.outcome <- nil
		if group := <-g.groups; len(group) != 1 || group[0].Key.Name != "kept" {
			t.Fatalf("the second group is %v", group)
		}
		g.outcome <- nil
		if err := errors.Join(<-first, <-kept); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAFollowerThatGivesUpDoesNotStopItsGroup(t *testing.T) {
	gated(t, func(t *testing.T, g *gate, s *storage.Memory) {
		first := commitLater(context.Background(), s, create("first"))
		<-g.groups
		leader := commitLater(context.Background(), s, create("leader"))
		ctx, cancel := context.WithCancel(context.Background())
		follower := commitLater(ctx, s, create("follower"))
		g.outcome <- nil
		if group := <-g.groups; len(group) != 2 {
			t.Fatalf("the second group has %d writes", len(group))
		}
		cancel()
		if err := <-follower; !errors.Is(err, context.Canceled) {
			t.Fatalf("got error %v, want Canceled", err)
		}
		g.outcome <- nil
		if err := errors.Join(<-first, <-leader); err != nil {
			t.Fatal(err)
		}
		v, _ := s.View(context.Background(), 0)
		if v.Get(create("follower").Key) == nil {
			t.Fatal("the write of the follower is lost")
		}
	})
}

func TestAFailedJournalPoisonsTheStore(t *testing.T) {
	gated(t, func(t *testing.T, g *gate, s *storage.Memory) {
		kept := commitLater(context.Background(), s, create("kept"))
		<-g.groups
		g.outcome <- nil
		if err := <-kept; err != nil {
			t.Fatal(err)
		}
		failed := commitLater(context.Background(), s, create("failed"))
		<-g.groups
		waiting := commitLater(context.Background(), s, create("waiting"))
		cause := errors.New("the disk is on fire")
		g.outcome <- cause
		for _, err := range []error{<-failed, <-waiting, <-commitLater(context.Background(), s, create("later")), s.Health()} {
			if !errors.Is(err, storage.ErrPoisoned) || !errors.Is(err, cause) {
				t.Errorf("got error %v, want ErrPoisoned", err)
			}
		}
		v, err := s.View(context.Background(), 0)
		if err != nil || v.Revision() != 1 || v.Count("b", "", "") != 1 {
			t.Fatalf("reads do not go on as before: revision %d, %v", v.Revision(), err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAFullJournalRefusesAndGoesOn(t *testing.T) {
	gated(t, func(t *testing.T, g *gate, s *storage.Memory) {
		refused := commitLater(context.Background(), s, create("a"))
		<-g.groups
		g.outcome <- fmt.Errorf("%w: quota", storage.ErrFull)
		if err := <-refused; !errors.Is(err, storage.ErrFull) || errors.Is(err, storage.ErrPoisoned) {
			t.Fatalf("got error %v, want ErrFull", err)
		}
		if err := s.Health(); !errors.Is(err, storage.ErrFull) {
			t.Fatalf("health: got error %v, want ErrFull", err)
		}
		again := commitLater(context.Background(), s, create("a"))
		if group := <-g.groups; group[0].Revision != 1 {
			t.Fatalf("the refused write took revision 1")
		}
		g.outcome <- nil
		if err := errors.Join(<-again, s.Health()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestCloseWaitsForTheWritesUnderWay(t *testing.T) {
	gated(t, func(t *testing.T, g *gate, s *storage.Memory) {
		first := commitLater(context.Background(), s, create("first"))
		<-g.groups
		second := commitLater(context.Background(), s, create("second"))
		var closing sync.WaitGroup
		closing.Go(func() { s.Close() })
		synctest.Wait()
		if err := <-commitLater(context.Background(), s, create("late")); !errors.Is(err, storage.ErrClosed) {
			t.Fatalf("got error %v, want ErrClosed", err)
		}
		g.outcome <- nil
		<-g.groups
		g.outcome <- nil
		closing.Wait()
		if err := errors.Join(<-first, <-second); err != nil {
			t.Fatal(err)
		}
	})
}

func TestJournalThatDoesNotFollowTheSnapshotIsRefused(t *testing.T) {
	t.Parallel()
	put := storage.Change{Revision: 1, Key: storage.Key{Bucket: "b", Name: "a"}, Value: []byte("v")}
	skips, orphan := put, storage.Change{Revision: 1, Key: put.Key}
	skips.Revision = 2
	for name, past := range map[string][]storage.Change{"gap": {skips}, "repeat": {put, put}, "deletion of nothing": {orphan}} {
		seq := func(yield func(storage.Change, error) bool) {
			for _, c := range past {
				if !yield(c, nil) {
					return
				}
			}
		}
		if _, err := storage.NewJournaled(noJournal{}, seq, storage.MemoryOptions{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
