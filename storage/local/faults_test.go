// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

// stepFaults are the faults at a step: an error from one operation on, and for how many
// operations it lasts.
var stepFaults = []struct {
	name  string
	err   error
	lasts int
}{
	{"EIO once", syscall.EIO, 1},
	{"EIO from then on", syscall.EIO, 1 << 30},
	{"ENOSPC once", syscall.ENOSPC, 1},
	{"ENOSPC for a while", syscall.ENOSPC, 7},
	{"ENOSPC from then on", syscall.ENOSPC, 1 << 30},
	{"crash", errCrashed, 1 << 30},
}

// One short life of a store, from the empty directory through checkpoints and restarts,
// with every fault at every file system operation, and every end after it. A write that
// fails leaves a torn frame: half of it is written, and a loss of power keeps any
// blocks of that.
func TestEveryFaultAtEveryStepIsSurvived(t *testing.T) {
	t.Parallel()
	steps := faultAt(t, 1<<30, 0, 0)
	if steps < 60 {
		t.Fatalf("a life without faults has %d operations: the script has become too short", steps)
	}
	for kind, fault := range stepFaults {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			for at := range steps {
				for end := range 5 {
					faultAt(t, at, kind, end)
				}
			}
		})
	}
}

// faultAt runs that life with a fault at an operation, and returns the number of
// operations. The end is a clean one, a kill, or a loss of power.
func faultAt(t *testing.T, at, kind, end int) int {
	t.Helper()
	fault := stepFaults[kind]
	l := &life{
		T: t, seed: at, session: end, rng: rand.New(rand.NewPCG(uint64(at), uint64(end))),
		dir: vfs.NewCrash(), acked: map[storage.Key]outcome{}, inFlight: map[storage.Key]string{},
	}
	ops := 0
	l.watchSyncs(func(op vfs.Op) error {
		ops++
		reads := op == vfs.OpRead || op == vfs.OpOpen || op == vfs.OpRemove
		if ops <= at || ops-at > fault.lasts || reads && errors.Is(fault.err, syscall.ENOSPC) {
			return nil
		}
		return fault.err
	})
	crashed := func() bool { return errors.Is(fault.err, errCrashed) && ops > at }
	for range 2 {
		if !l.script(crashed) {
			break
		}
	}
	l.dir.Inject = nil
	switch {
	case end == 0 && !crashed():
	case end == 1:
		l.dir = l.dir.Kill()
	default:
		l.dir = l.dir.PowerLoss(l.rng)
	}
	// The recovered state is complete and stays.
	for range 2 {
		s, err := open(l.dir, Options{CheckpointBytes: -1})
		if err != nil {
			l.failf("open after %s: %v", fault.name, err)
		}
		l.check(s)
		l.put(s, crashKey(0), "rv=;last")
		l.dir = l.dir.PowerLoss(l.rng)
	}
	return ops
}

// script is a session of writes and checkpoints. It reports whether another one may
// follow.
func (l *life) script(crashed func() bool) bool {
	s, err := open(l.dir, Options{CheckpointBytes: -1})
	if err != nil {
		if known := errors.Is(err, syscall.EIO) || errors.Is(err, storage.ErrFull) || crashed(); !known {
			l.failf("open: %v", err)
		}
		return !crashed()
	}
	l.check(s)
	l.put(s, crashKey(0), "rv=;1")
	_ = s.Checkpoint(context.Background()) // may fail
	// This one begins a segment and is larger than its first zeros.
	l.put(s, crashKey(1), "rv=;2"+strings.Repeat("x", 2*minAhead))
	_ = s.Checkpoint(&meanwhile{context.Background(), func() { l.put(s, crashKey(2), "rv=;3") }})
	l.put(s, crashKey(3), "rv=;4")
	l.put(s, crashKey(1), "")
	l.put(s, crashKey(4), "rv=;5")
	s.Close() // may fail
	return !crashed()
}

// put makes one write, a deletion if there is no value, and records its outcome.
func (l *life) put(s *Store, k storage.Key, value string) {
	w := storage.Write{Key: k, Expect: storage.AnyRevision}
	if value != "" {
		w.Value, w.Stamp = []byte(value), 3
	}
	before := s.Health()
	rec, err := s.Commit(context.Background(), w)
	switch {
	case err == nil:
		l.newest = max(l.newest, rec.Modified)
		l.acked[k] = outcome{rec.Modified, l.stamped(value, rec.Modified)}
	case errors.Is(err, storage.ErrConflict): // a deletion of a key whose creation failed earlier
	case errors.Is(err, storage.ErrFull):
	case errors.Is(err, storage.ErrPoisoned):
		if !errors.Is(before, storage.ErrPoisoned) { // further writes are not attempted
			l.inFlight[k] = value
		}
	default:
		l.failf("write %s: %v", k, err)
	}
	if err != nil && !errors.Is(err, storage.ErrConflict) && s.Health() == nil {
		l.failf("the store is healthy after %v", err)
	}
}

// A sync that fails is not retried, and nothing is acknowledged after it.
func TestFailedSyncsAreNotRetried(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{syscall.EIO, syscall.ENOSPC} {
		dir := vfs.NewCrash()
		s := mustOpen(t, dir)
		put(t, s, "a")
		var after []string
		failed := false
		dir.Inject = func(op vfs.Op, name string) error {
			switch {
			case failed:
				after = append(after, fmt.Sprint(op, " ", name))
			case op == vfs.OpSync:
				failed = true
				return cause
			}
			return nil
		}
		for range 3 {
			if err := tryPut(s, "b"); !errors.Is(err, storage.ErrPoisoned) || !errors.Is(err, cause) {
				t.Errorf("got error %v, want ErrPoisoned for %v", err, cause)
			}
		}
		s.Close()
		if len(after) > 0 {
			t.Errorf("after the failed flush: %v", after)
		}
	}
}
