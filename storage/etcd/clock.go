// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"encoding/json"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// clock relates revisions to time, which etcd does not: the leader writes a key from
// time to time. It says when writes happened that a store reads when it is opened, and
// which revisions are old enough to be compacted. Store.mu guards it.
type clock struct {
	ticks   []arrived        // of the last HistoryAge, and one before, oldest first
	last    storage.Revision // the newest tick
	written time.Time        // its time, as its writer has it; not in the future
	from    storage.Revision // see tick.From
}

// tick is the value of the key.
type tick struct {
	Time time.Time `json:"time"`
	// From is the revision with which the history begins.
	From storage.Revision `json:"from"`
}

// arrived is a tick that this store has seen happen, by its own clock.
type arrived struct {
	revision storage.Revision
	at       time.Time
}

// parseTick returns the zero value for what is none.
func parseTick(value []byte) (t tick) {
	if json.Unmarshal(value, &t) != nil {
		return tick{}
	}
	return t
}

// tick notes a tick; s.mu is held.
func (s *Store) tick(rev storage.Revision, value []byte) {
	t, now, c := parseTick(value), time.Now(), &s.clock
	c.last, c.from = rev, max(c.from, t.From)
	if c.written = t.Time; c.written.After(now) {
		c.written = now
	}
	if rev <= s.past {
		return
	}
	c.ticks = append(c.ticks, arrived{rev, now})
	for len(c.ticks) > 1 && now.Sub(c.ticks[1].at) > s.options.HistoryAge {
		c.ticks = c.ticks[1:]
	}
}

// at returns when a revision was made: now, or as the clock says if that was before the
// store was opened.
func (s *Store) at(rev storage.Revision) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if rev > s.past || s.clock.written.IsZero() {
		return time.Now()
	}
	return s.clock.written
}

// keepTime writes a tick when it is due, and compacts what is older than the history. It
// returns the revision of the tick, or 0.
func (s *Store) keepTime(of *term) storage.Revision {
	s.mu.Lock()
	now, c := time.Now(), &s.clock
	due := now.Sub(c.written) >= s.options.HistoryAge/10 || c.written.IsZero()
	compact := storage.Revision(0)
	if len(c.ticks) > 0 && now.Sub(c.ticks[0].at) > s.options.HistoryAge && c.ticks[0].revision > c.from {
		compact = c.ticks[0].revision
	}
	value := tick{Time: now, From: max(c.from, compact)}
	s.mu.Unlock()
	if !due {
		return 0
	}
	text, err := json.Marshal(value)
	if err != nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(s.ctx, min(requestTime, of.life/5))
	defer cancel()
	resp, err := s.client.Txn(ctx).
		If(clientv3.Compare(clientv3.CreateRevision(s.layout.leader()), "=", int64(of.revision))).
		Then(clientv3.OpPut(s.layout.clock(), string(text))).Commit()
	if err != nil || !resp.Succeeded {
		return 0 // the next one is due at once
	}
	if compact > 0 && !s.options.NoCompaction {
		// A later one compacts this as well.
		_, _ = s.client.Compact(ctx, int64(compact))
	}
	return storage.Revision(resp.Header.Revision)
}
