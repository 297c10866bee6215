// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model works out what records of reconciles say: which objects fail, are stuck or
// keep themselves busy, what comes next, and which write caused which attempt. It does no
// I/O and reads no clock: records are added, and views are values for a moment.
package model

import (
	"slices"
	"time"

	"github.com/steer-dev/steer/trace"
)

// Bounds.
const (
	// turnsOfLoop is how many times in a row an attempt has to be caused by the same change,
	// which an attempt before it wrote, to be called a loop.
	turnsOfLoop = 5
	// mostSteps is how far the writes that caused an attempt are followed.
	mostSteps = 64
	// attemptsOfPerson is how many attempts fail in a row until a person has to look.
	attemptsOfPerson = 5
	// stuckAfter is how long an attempt runs until it is called stuck.
	stuckAfter = time.Minute
	// recently is how long ago the last attempt of a loop is at most.
	recently = time.Minute
)

// Now is what an operator does at a moment, beside its records.
type Now struct {
	// At is the moment.
	At time.Time
	// Running are the attempts that have not ended; nil: they are not known.
	Running []trace.Record
	// Queued is what waits in the queues of the controllers; nil: it is not known.
	Queued []trace.Queued
}

// Subject is what a controller reconciles.
type Subject struct {
	Controller string
	trace.Object
	// Request is that of controllers of other requests than objects, in words.
	Request string
}

// Name is the object or the request, in words.
func (s Subject) Name() string {
	if s.Object == (trace.Object{}) {
		return s.Request
	}
	return s.Object.String()
}

// SubjectOf is what a record is of.
func SubjectOf(r *trace.Record) Subject {
	s := Subject{Controller: r.Controller, Object: r.Object}
	if r.Object == (trace.Object{}) {
		s.Request = r.Request
	}
	return s
}

// Model has the newest records. It is not safe for concurrent use.
type Model struct {
	keep     int
	base     int // the number of records[0]; numbers count all records from 0
	records  []trace.Record
	origins  []origin // beside records
	subjects map[Subject]*subject
	about    map[trace.Object][]Subject // the subjects of an object
	ids      map[trace.ID]int
	writes   map[write]int      // numbers of the records that made a version
	series   map[string]*series // by controller
	missed   int
}

// origin is the write that caused an attempt.
type origin struct {
	number  int // of the record with the write; -1: none is known
	changed loop
	turns   int       // how often the same change, written by an attempt before, caused it in a row
	since   time.Time // when the first of these attempts began
}

// loop is a change that comes again and again.
type loop struct {
	trace.Object
	fields string
}

// write is a version that an attempt made.
type write struct {
	trace.Object
	revision string
}

// subject is what is known of one.
type subject struct {
	numbers []int     // of its records; some may have gone
	since   time.Time // of the first failure in a row; zero after a success
	row     int       // how many failed in a row
}

// New returns a model that keeps so many records, at least.
func New(keep int) *Model {
	return &Model{
		keep: keep, subjects: map[Subject]*subject{}, about: map[trace.Object][]Subject{},
		ids: map[trace.ID]int{}, writes: map[write]int{}, series: map[string]*series{},
	}
}

// Len is how many records it has, Added how many were added, and Missed how many their
// source could not give.
func (m *Model) Len() int    { return len(m.records) }
func (m *Model) Added() int  { return m.base + len(m.records) }
func (m *Model) Missed() int { return m.missed }

// Records are those that it has, the oldest first. They are not to be changed.
func (m *Model) Records() []trace.Record { return m.records }

// Add adds a record. One that is there already is not added again.
func (m *Model) Add(r *trace.Record) {
	if _, known := m.ids[r.ID]; known && !r.ID.IsZero() {
		return
	}
	if len(m.records) >= m.keep+m.keep/4+1 {
		m.forget(len(m.records) - m.keep)
	}
	number := m.Added()
	m.missed += r.Missed
	m.count(r)
	m.records = append(m.records, *r)
	m.origins = append(m.origins, origin{number: -1})
	m.origins[number-m.base] = m.originOf(number)
	if !r.ID.IsZero() {
		m.ids[r.ID] = number
	}
	for i := range r.Writes {
		if w := &r.Writes[i]; w.Error == "" && w.Revision != "" {
			m.writes[write{w.Object, w.Revision}] = number
		}
	}
	of := SubjectOf(r)
	s := m.subjects[of]
	if s == nil {
		s = &subject{}
		m.subjects[of] = s
		if of.Object != (trace.Object{}) {
			m.about[of.Object] = append(m.about[of.Object], of)
		}
	}
	s.numbers = append(s.numbers, number)
	switch {
	case !Failure(r.Outcome):
		if r.Outcome != trace.Stopped && r.Outcome != trace.Conflicted {
			s.since, s.row = time.Time{}, 0
		}
	case s.row == 0:
		s.since, s.row = r.Began, r.Retries+1
	default:
		s.row = max(s.row+1, r.Retries+1)
	}
}

// forget drops the oldest records.
func (m *Model) forget(n int) {
	for i := range m.records[:n] {
		r := &m.records[i]
		if m.ids[r.ID] == m.base+i {
			delete(m.ids, r.ID)
		}
		for j := range r.Writes {
			w := write{r.Writes[j].Object, r.Writes[j].Revision}
			if at, ok := m.writes[w]; ok && at == m.base+i {
				delete(m.writes, w)
			}
		}
	}
	m.base += n
	m.records, m.origins = slices.Clone(m.records[n:]), slices.Clone(m.origins[n:])
	for of, s := range m.subjects {
		if s.numbers = slices.Clone(m.kept(s.numbers)); len(s.numbers) > 0 {
			continue
		}
		delete(m.subjects, of)
		others := slices.DeleteFunc(m.about[of.Object], func(o Subject) bool { return o == of })
		if m.about[of.Object] = others; len(others) == 0 {
			delete(m.about, of.Object)
		}
	}
}

// kept are those of the numbers, which are in order, whose records are still there.
func (m *Model) kept(numbers []int) []int {
	at, _ := slices.BinarySearch(numbers, m.base)
	return numbers[at:]
}

// record is the one with a number; nil if it has gone.
func (m *Model) record(number int) *trace.Record {
	if number < m.base || number >= m.Added() {
		return nil
	}
	return &m.records[number-m.base]
}

// last is the newest record of a subject.
func (m *Model) last(s *subject) (*trace.Record, origin) {
	number := s.numbers[len(s.numbers)-1]
	return m.record(number), m.origins[number-m.base]
}

// writer is the number of the record that made what a cause is about; -1 if none is known.
func (m *Model) writer(c *trace.Cause) int {
	for _, revision := range [...]string{c.Revision, c.First} {
		if revision == "" || c.Object == (trace.Object{}) {
			continue
		}
		if number, ok := m.writes[write{c.Object, revision}]; ok && number >= m.base {
			return number
		}
	}
	return -1
}

// originOf finds the write that caused an attempt, and how often it was the same one: it
// follows the writes back, past those of other controllers, until an attempt was caused
// from outside.
func (m *Model) originOf(number int) origin {
	r := m.record(number)
	best := origin{number: -1}
	for i := range r.Causes {
		c := &r.Causes[i]
		by := m.writer(c)
		if by < 0 {
			continue
		}
		found := origin{number: by}
		if c.Type == trace.Updated && c.Changed != "" {
			found.changed, found.turns, found.since = loop{c.Object, c.Changed}, 1, r.Began
			for at, steps := by, 0; at >= m.base && steps < mostSteps; steps++ {
				before := m.origins[at-m.base]
				if SubjectOf(m.record(at)) == SubjectOf(r) && before.changed == found.changed {
					found.turns, found.since = before.turns+1, before.since
					break
				}
				at = before.number
			}
		}
		if best.number < 0 || found.turns > best.turns {
			best = found
		}
	}
	return best
}

// Failure reports whether an outcome is a failure: conflicts, ends of the process and what
// a webhook denies are normal operation.
func Failure(o trace.Outcome) bool {
	switch o {
	case trace.Failed, trace.Terminal, trace.Panicked, trace.TimedOut, trace.GaveUp:
		return true
	}
	return false
}
