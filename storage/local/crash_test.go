// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/internal/vfs"
)

// crashRounds returns the number of rounds: 600, or STEER_CRASH_ROUNDS.
func crashRounds(t *testing.T) int {
	if s := os.Getenv("STEER_CRASH_ROUNDS"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	return 600
}

// Every round opens a store in several sessions on a hostile file system: with a disk
// error at a random operation, without space for a while, or on a full disk that copies
// on write. Each session ends at a random operation: in a crash of the machine, in a
// crash of the process, or cleanly. The state that the next session finds is compared
// with what was acknowledged and read.
func TestNothingAcknowledgedIsLostInCrashes(t *testing.T) {
	t.Parallel()
	const parallel = 4
	rounds := crashRounds(t)
	for p := range parallel {
		t.Run(fmt.Sprint("part ", p), func(t *testing.T) {
			t.Parallel()
			for seed := p; seed < rounds; seed += parallel {
				l := &life{T: t, seed: seed, rng: rand.New(rand.NewPCG(uint64(seed), 7)), dir: vfs.NewCrash(), acked: map[storage.Key]outcome{}}
				for l.session = range 4 {
					l.live()
				}
			}
		})
	}
}

// life is the test's knowledge of a store.
type life struct {
	*testing.T
	seed, session int
	rng           *rand.Rand
	dir           *vfs.Crash

	mu       sync.Mutex
	acked    map[storage.Key]outcome // the newest acknowledged write of each key
	inFlight map[storage.Key]string  // writes with an unknown outcome
	newest   storage.Revision        // the newest revision that a reader has seen
	writes   atomic.Int64
}

type outcome struct {
	revision storage.Revision
	value    string // empty for a deletion
}

func (l *life) failf(format string, args ...any) {
	l.Helper()
	l.Fatalf("seed %d, session %d: %s", l.seed, l.session, fmt.Sprintf(format, args...))
}

var errCrashed = errors.New("the machine has crashed")

// live opens the store, checks it, writes until the session ends, and leaves the
// directory in that state.
func (l *life) live() {
	ops, at, end := 0, l.rng.IntN(120), 20+l.rng.IntN(200)
	fault, ending := diskFault(l.rng.IntN(6)), sessionEnd(min(l.rng.IntN(4), int(endPowerLoss)))
	l.dir.SetDisk(vfs.Disk{})
	if fault == smallDisk || fault == smallDiskCopies {
		l.dir.SetDisk(vfs.Disk{Bounded: true, CopyOnWrite: fault == smallDiskCopies, Free: l.rng.IntN(16 * minAhead)})
	}
	l.watchSyncs(func(op vfs.Op) error {
		switch ops++; {
		case ending != endClean && ops > end:
			return errCrashed
		case fault == errorOnce && ops == at:
			return syscall.EIO
		case fault == fullForWrites && ops > at && ops < at+5 && op == vfs.OpWrite:
			return syscall.ENOSPC
		case fault == fullForAll && ops > at && ops < at+5 && op != vfs.OpRead && op != vfs.OpOpen:
			return syscall.ENOSPC
		}
		return nil
	})
	s, err := open(l.dir, Options{CheckpointBytes: []int64{-1, 4 << 10}[l.rng.IntN(2)]})
	if err == nil {
		l.check(s)
		l.work(s)
		s.Close() // may fail after a crash of the machine
	} else if !errors.Is(err, errCrashed) && !errors.Is(err, syscall.EIO) && !errors.Is(err, syscall.ENOSPC) {
		l.failf("open: %v", err)
	}
	l.dir.Inject = nil
	switch ending {
	case endKilled:
		l.dir = l.dir.Kill()
	case endPowerLoss:
		l.dir = l.dir.PowerLoss(l.rng)
	}
}

// diskFault is the fault of a session.
type diskFault int

const (
	noFault diskFault = iota
	errorOnce
	fullForWrites
	fullForAll
	smallDisk
	smallDiskCopies
)

// sessionEnd is how a session ends.
type sessionEnd int

const (
	endClean sessionEnd = iota
	endKilled
	endPowerLoss
)

// watchSyncs injects faults, and fails the test if a file whose sync failed is written
// or synced again.
func (l *life) watchSyncs(fault func(vfs.Op) error) {
	lost := map[string]bool{}
	l.dir.Inject = func(op vfs.Op, name string) error {
		err := fault(op)
		switch op {
		case vfs.OpCreate:
			delete(lost, name)
		case vfs.OpWrite, vfs.OpSync:
			if lost[name] {
				l.Errorf("seed %d, session %d: %s of %s after a failed flush", l.seed, l.session, op, name)
			}
			lost[name] = op == vfs.OpSync && err != nil && !errors.Is(err, errCrashed)
		}
		return err
	}
}

// check compares the recovered state with the known one, and makes it the new one.
func (l *life) check(s *Store) {
	v, err := s.View(context.Background(), 0)
	if err != nil {
		l.failf("view: %v", err)
	}
	if v.Revision() < l.newest {
		l.failf("recovered revision %d, but %d was shown", v.Revision(), l.newest)
	}
	for i := range crashKeys {
		k := crashKey(i)
		rec, want := v.Get(k), l.acked[k]
		unknown, isUnknown := l.inFlight[k]
		got := outcome{}
		if rec != nil {
			got = outcome{rec.Modified, string(rec.Value)}
		}
		switch {
		case rec == nil && want.value == "", got == want:
		case isUnknown && got.value == l.stamped(unknown, got.revision) && (rec == nil || got.revision > want.revision):
		default:
			l.failf("%s: found %+v, acknowledged %+v, in flight %q", k, got, want, unknown)
		}
		l.acked[k] = got
	}
	l.checkHistory(s, v)
	l.inFlight = map[storage.Key]string{}
	l.newest = v.Revision()
}

// checkHistory checks that the recovered history leads to the state.
func (l *life) checkHistory(s *Store, v storage.View) {
	for after := v.Revision(); after >= 0; after-- {
		c, err := s.Watch(storage.Range{}, after)
		if err != nil {
			return // compacted: the kept part was checked
		}
		b, err := c.Poll()
		c.Close()
		if err != nil || b.Revision != v.Revision() || len(b.Events) != int(v.Revision()-after) {
			l.failf("history after %d: %d events up to %d, %v", after, len(b.Events), b.Revision, err)
		}
	}
}

const crashKeys = 12

func crashKey(i int) storage.Key {
	return storage.Key{Bucket: fmt.Sprint("b", i%2), Name: fmt.Sprint("ns/", i)}
}

// stamped returns a value as it is stored.
func (l *life) stamped(value string, rev storage.Revision) string {
	return strings.Replace(value, "rv=", fmt.Sprintf("rv=%d", rev), 1)
}

// work writes with several writers, a watcher and checkpoints until it fails.
func (l *life) work(s *Store) {
	writers := 1 + l.rng.IntN(4)
	var wg sync.WaitGroup
	for w := range writers {
		rng := rand.New(rand.NewPCG(l.rng.Uint64(), 0))
		wg.Go(func() {
			for range 5 + rng.IntN(20) {
				i := rng.IntN(crashKeys/writers)*writers + w // every key has one writer
				if !l.write(s, rng, crashKey(i)) {
					return
				}
				if rng.IntN(25) == 0 {
					s.Checkpoint(context.Background()) // may fail
				}
			}
		})
	}
	wg.Wait()
	c, err := s.Watch(storage.Range{}, l.newest)
	if err == nil {
		b, _ := c.Poll()
		l.newest = max(l.newest, b.Revision)
		c.Close()
	}
	if v, err := s.View(context.Background(), 0); err == nil {
		l.newest = max(l.newest, v.Revision())
	}
}

// write makes one write and reports whether another may follow.
func (l *life) write(s *Store, rng *rand.Rand, k storage.Key) bool {
	w := storage.Write{Key: k, Expect: storage.AnyRevision}
	value := ""
	l.mu.Lock()
	exists := l.acked[k].value != ""
	l.mu.Unlock()
	if !exists || rng.IntN(4) > 0 {
		value = fmt.Sprintf("rv=;%d;%s", l.writes.Add(1), strings.Repeat("x", rng.IntN(200)))
		if rng.IntN(20) == 0 {
			value += strings.Repeat("y", 2*minAhead)
		}
		w.Value, w.Stamp = []byte(value), 3
	}
	rec, err := s.Commit(context.Background(), w)
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		l.newest = max(l.newest, rec.Modified)
		l.acked[k] = outcome{rec.Modified, l.stamped(value, rec.Modified)}
		return true
	case errors.Is(err, storage.ErrFull):
		if rng.IntN(3) == 0 {
			l.dir.SetDisk(vfs.Disk{}) // space is freed
		}
		return true // nothing was kept
	case errors.Is(err, storage.ErrPoisoned):
		l.inFlight[k] = value
		if s.Health() == nil {
			l.Errorf("seed %d: a poisoned store is healthy", l.seed)
		}
		return false
	}
	l.Errorf("seed %d, session %d: write %s: %v", l.seed, l.session, k, err)
	return false
}
