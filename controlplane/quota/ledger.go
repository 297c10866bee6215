// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// patience is how long a charge waits for the object of a write whose outcome is not
// known: longer than any request takes.
const patience = time.Minute

// Ledger holds what was charged for objects that are not stored yet. The zero
// value is empty; it is safe for concurrent use.
type Ledger struct {
	// signal has the controller look at the charges. It is set before the first one; nil
	// is not called.
	signal func()
	// pending is the number of charges and attempts, so that the lock is not taken for none.
	pending atomic.Int64

	mu       sync.Mutex
	charges  map[storage.Key]*charge // by object
	attempts map[*attempt]struct{}
	// awaited: the controller has left a quota as it is because of an attempt.
	awaited bool
	// full is the number of charges at which those that expired are dropped, for
	// where no controller settles them.
	full int
}

// firstFull is the first such number.
const firstFull = 1024

// charge is what an object is going to take up of quotas, by their key.
type charge struct {
	amounts map[storage.Key]corev1.ResourceList
	at      storage.Revision // of the store when it was made: the object comes later
	made    time.Time
	// writes is the number of writes that rely on it.
	writes int
}

// attempt is a write of the status of a quota whose outcome is not known yet.
type attempt struct {
	quota storage.Key
	// replaces is the revision of the quota without the charge.
	replaces storage.Revision
}

// attempt is called before a charge is written, and the attempt is ended, in any case,
// after a charge that may have been written was noted.
func (l *Ledger) attempt(quota storage.Key, replaces storage.Revision) *attempt {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.attempts == nil {
		l.attempts = map[*attempt]struct{}{}
	}
	a := &attempt{quota: quota, replaces: replaces}
	l.attempts[a] = struct{}{}
	l.count()
	return a
}

func (l *Ledger) end(a *attempt) {
	l.mu.Lock()
	delete(l.attempts, a)
	l.count()
	awaited := l.awaited
	l.awaited = false
	l.mu.Unlock()
	if awaited && l.signal != nil {
		l.signal()
	}
}

// count is called with the lock held.
func (l *Ledger) count() { l.pending.Store(int64(len(l.charges) + len(l.attempts))) }

// open reports whether anything is charged that is not settled.
func (l *Ledger) open() bool { return l.pending.Load() > 0 }

// begin is called before the first note of a write. What it returns is called with the
// outcome of the write.
func (l *Ledger) begin(object storage.Key, now time.Time) func(resource.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.of(object, now)
	c.writes++
	return func(o resource.Outcome) { l.finish(c, o) }
}

// finish takes back what was charged for a write that has not happened, unless another
// write of the object relies on it.
func (l *Ledger) finish(c *charge, o resource.Outcome) {
	if o != resource.NotStored {
		return // it is settled with the object, or ends with patience
	}
	l.mu.Lock()
	c.writes--
	last := c.writes == 0
	if last {
		c.made = time.Time{}
	}
	l.mu.Unlock()
	if last && l.signal != nil {
		l.signal()
	}
}

// of returns the charge of an object, a new one if there is none. The lock is held.
func (l *Ledger) of(object storage.Key, now time.Time) *charge {
	if l.charges == nil {
		l.charges, l.full = map[storage.Key]*charge{}, firstFull
	}
	c := l.charges[object]
	if c == nil {
		if len(l.charges) >= l.full {
			l.drop(now)
			l.full = max(firstFull, 2*len(l.charges))
		}
		c = &charge{amounts: map[storage.Key]corev1.ResourceList{}, made: now}
		l.charges[object] = c
		l.count()
	}
	return c
}

// note remembers a charge. What was charged before for an object of the same key
// can no longer be for an object of its own; of both, the larger amounts count.
func (l *Ledger) note(object, quota storage.Key, amounts corev1.ResourceList, at storage.Revision, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.of(object, now)
	c.at, c.made = at, now
	has := c.amounts[quota].DeepCopy()
	if has == nil {
		has = corev1.ResourceList{}
	}
	for name, amount := range amounts {
		if before, ok := has[name]; !ok || amount.Cmp(before) > 0 {
			has[name] = amount.DeepCopy()
		}
	}
	c.amounts[quota] = has
}

// settle forgets the charge for an object that was written at a revision.
func (l *Ledger) settle(object storage.Key, written storage.Revision) {
	if !l.open() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.charges[object]; c != nil && written > c.at {
		delete(l.charges, object)
		l.count()
	}
}

// expire forgets the charges whose objects never came and returns their
// namespaces.
func (l *Ledger) expire(now time.Time) []string {
	if !l.open() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	out := l.drop(now)
	l.count()
	return out
}

func (l *Ledger) drop(now time.Time) (namespaces []string) {
	for object, c := range l.charges {
		if now.Sub(c.made) < patience {
			continue
		}
		delete(l.charges, object)
		namespace, _ := step.SplitName(object.Name)
		namespaces = append(namespaces, namespace)
	}
	return namespaces
}

// forget ends all charges: the server begins to execute requests, and none of its earlier
// ones is under way. What they have stored is in the store, and what others have charged
// since is not in the ledger. The controller counts again.
func (l *Ledger) forget() {
	l.mu.Lock()
	for _, c := range l.charges {
		clear(c.amounts)
		c.made = time.Time{}
	}
	l.mu.Unlock()
	if l.open() && l.signal != nil {
		l.signal()
	}
}

// next returns when the first charge expires, the zero time if there is none.
func (l *Ledger) next() time.Time {
	var first time.Time
	if !l.open() {
		return first
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.charges {
		if at := c.made.Add(patience); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// addTo adds what is charged to a quota, as it is at a revision, and not yet stored. It
// reports false while that is not known: an attempt may be what was written then, or may
// have lost against it. The controller is signalled once it is known.
func (l *Ledger) addTo(used corev1.ResourceList, quota storage.Key, at storage.Revision) bool {
	if !l.open() {
		return true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for a := range l.attempts {
		// An attempt to replace what is there has not been made, and fails if the controller
		// replaces it first.
		if a.quota == quota && a.replaces < at {
			l.awaited = true
			return false
		}
	}
	for _, c := range l.charges {
		admission.Add(used, only(c.amounts[quota], used))
	}
	return true
}
