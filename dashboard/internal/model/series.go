// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"time"

	"github.com/steer-dev/steer/trace"
)

const (
	// slotTime is one step of the window of an operator that runs, and slots how many are kept.
	slotTime = window / Steps
	slots    = 64
	// mostSeries bounds the controllers that are counted as their records come; those beyond
	// are counted by the records that are kept.
	mostSeries = 1000
)

// series counts the attempts of a controller by the time at which they ended, so that the
// counts of a busy one reach further back than its records.
type series struct {
	of       [slots]int64 // which slot of time an entry has
	attempts [slots]int
	failures [slots]int
	took     [slots]time.Duration // the slowest
}

func slotOf(t time.Time) int64 { return t.UnixNano() / int64(slotTime) }

// count adds a record to the series of its controller.
func (m *Model) count(r *trace.Record) {
	s := m.series[r.Controller]
	if s == nil {
		if len(m.series) >= mostSeries {
			return
		}
		s = &series{}
		m.series[r.Controller] = s
	}
	slot := slotOf(r.Began.Add(r.Took))
	at := int(uint64(slot) % slots)
	switch {
	case slot < s.of[at]:
		return // it is older than the window
	case slot > s.of[at]:
		s.of[at], s.attempts[at], s.failures[at], s.took[at] = slot, 0, 0, 0
	}
	s.attempts[at]++
	s.took[at] = max(s.took[at], r.Took)
	if Failure(r.Outcome) {
		s.failures[at]++
	}
}

// fill gives a controller the counts of a window that begins with a slot.
func (s *series) fill(c *Controller, first int64) {
	for step := range Steps {
		slot := first + int64(step)
		at := int(uint64(slot) % slots)
		if s.of[at] != slot {
			continue
		}
		c.Attempts += s.attempts[at]
		c.Failures += s.failures[at]
		c.Slowest = max(c.Slowest, s.took[at])
		c.Rate[step], c.Failed[step], c.Took[step] = float64(s.attempts[at]), float64(s.failures[at]), s.took[at].Seconds()
	}
}
