// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

// Row is a subject in a list.
type Row struct {
	Problem
	Attempts int
	Outcome  trace.Outcome
	Ended    time.Time
}

// Rows are the subjects whose controller, kind or name has a text, the worst first; from
// is where the page begins, and total counts all of them.
func (m *Model) Rows(now Now, text string, from, most int) (rows []Row, total int) {
	text = strings.ToLower(text)
	for of, s := range m.subjects {
		if text != "" && !strings.Contains(strings.ToLower(of.Controller+" "+of.Name()), text) {
			continue
		}
		r, _ := m.last(s)
		rows = append(rows, Row{m.problem(of, s, now), len(m.kept(s.numbers)), r.Outcome, r.Began.Add(r.Took)})
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.State, a.State), cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Controller, b.Controller))
	})
	total = len(rows)
	from = min(max(from, 0), total)
	return rows[from:min(from+most, total)], total
}

// Link is the attempt that a cause leads to, or that a write caused.
type Link struct {
	Number int
	ID     trace.ID
	Subject
}

// Cause is one of an attempt, with the attempt that wrote what it is about.
type Cause struct {
	trace.Cause
	By *Link // nil: none of the records is of it
}

// Attempt is one of an object.
type Attempt struct {
	Number int
	trace.Record
	Why []Cause
	// Due is when it comes back by itself; zero if it does not.
	Due time.Time
}

// Object is what records say of one.
type Object struct {
	// Problems of it, by controller.
	Problems []Problem
	// Attempts are the newest before the number that was asked for; Total counts all.
	Attempts []Attempt
	Total    int
	// Older is the number for those before them, 0: there are none; Newest reports whether
	// they are the newest.
	Older  int
	Newest bool
	// Every is the time between two attempts on average, of those that are kept, and Often
	// are their most frequent causes. Both are of the newest page alone.
	Every time.Duration
	Often []Count
	// Foreign reports that no controller reconciles it: the attempts are those that it
	// caused, and those that wrote it.
	Foreign bool
}

// Count is a cause, without its revision, and in how many attempts it was one.
type Count struct {
	trace.Cause
	Attempts int
}

// mostCauses is how many causes are counted out.
const mostCauses = 4

// often counts the causes of attempts.
func (m *Model) often(numbers []int) (every time.Duration, out []Count) {
	counts := map[trace.Cause]int{}
	for _, number := range numbers {
		for _, c := range m.record(number).Causes {
			counts[trace.Cause{Type: c.Type, Object: c.Object, Changed: c.Changed}]++
		}
	}
	for c, n := range counts {
		out = append(out, Count{c, n})
	}
	slices.SortFunc(out, func(a, b Count) int {
		return cmp.Or(b.Attempts-a.Attempts, cmp.Compare(a.String(), b.String()))
	})
	if n := len(numbers); n > 1 {
		every = m.record(numbers[n-1]).Began.Sub(m.record(numbers[0]).Began) / time.Duration(n-1)
	}
	return every, out[:min(len(out), mostCauses)]
}

// Object is that of a subject: with an object, the attempts of all controllers. before is 0
// for the newest.
func (m *Model) Object(now Now, of Subject, before, most int) Object {
	var out Object
	var numbers []int
	for _, s := range m.of(of) {
		known := m.subjects[s]
		numbers = append(numbers, m.kept(known.numbers)...)
		if p := m.problem(s, known, now); p.State != Fine {
			out.Problems = append(out.Problems, p)
		}
	}
	for i := range now.Running {
		if p := stuck(&now.Running[i]); p.State != Fine && (p.Object == of.Object && p.Request == of.Request) {
			out.Problems = append(out.Problems, p)
		}
	}
	if len(numbers) == 0 && of.Object != (trace.Object{}) {
		out.Foreign = true
		for i := range m.records {
			if recording.About(&m.records[i], of.Object) {
				numbers = append(numbers, m.base+i)
			}
		}
	}
	slices.Sort(numbers)
	out.Total = len(numbers)
	end := len(numbers)
	if before > 0 {
		end, _ = slices.BinarySearch(numbers, before)
	}
	if out.Newest = end == len(numbers); out.Newest && !out.Foreign {
		out.Every, out.Often = m.often(numbers)
	}
	begin := max(end-most, 0)
	if begin > 0 {
		out.Older = numbers[begin]
	}
	for _, number := range slices.Backward(numbers[begin:end]) {
		out.Attempts = append(out.Attempts, m.attempt(number))
	}
	return out
}

// of are the subjects that a subject without a controller stands for.
func (m *Model) of(s Subject) []Subject {
	if s.Object != (trace.Object{}) {
		return m.about[s.Object]
	}
	if m.subjects[s] == nil {
		return nil
	}
	return []Subject{s}
}

// Known reports whether a controller reconciles the object.
func (m *Model) Known(o trace.Object) bool { return len(m.about[o]) > 0 }

func (m *Model) attempt(number int) Attempt {
	r := m.record(number)
	a := Attempt{Number: number, Record: *r}
	for i := range r.Causes {
		c := Cause{Cause: r.Causes[i]}
		if by := m.writer(&r.Causes[i]); by >= 0 {
			c.By = m.link(by)
		}
		a.Why = append(a.Why, c)
	}
	if r.After > 0 {
		a.Due = r.Began.Add(r.Took).Add(r.After)
	}
	return a
}

func (m *Model) link(number int) *Link {
	r := m.record(number)
	return &Link{number, r.ID, SubjectOf(r)}
}

// Attempt is the one of an id, with the attempts that its writes caused; false if it has
// gone, or was never there.
func (m *Model) Attempt(id trace.ID) (a Attempt, caused []Link, ok bool) {
	number, ok := m.ids[id]
	if !ok || m.record(number) == nil {
		return Attempt{}, nil, false
	}
	const most = 20
	for later := number; later < m.Added() && len(caused) < most; later++ {
		r := m.record(later)
		if slices.ContainsFunc(r.Causes, func(c trace.Cause) bool { return m.writer(&c) == number }) {
			caused = append(caused, *m.link(later))
		}
	}
	return m.attempt(number), caused, true
}

// Entry is a request that waits.
type Entry struct {
	Subject
	// At is since when it is ready, or when it is due.
	At time.Time
	// Attempt is the number of the next one, counted from the last success.
	Attempt int
	// Last is the last attempt, with its outcome and its error; zero if no record is of it.
	Last    trace.ID
	Outcome trace.Outcome
	Error   string
}

// Queue is what is to be reconciled.
type Queue struct {
	Running []trace.Record
	// Known reports that the queues were asked; else Ready is not known, and the others are
	// as the last attempts left them.
	Known bool
	// Ready wait for a worker, BackingOff failed or met a conflict, Due asked to come back;
	// each in the order of time, at most [MostEntries] of so many.
	Ready, BackingOff, Due          []Entry
	AllReady, AllBackingOff, AllDue int
}

// MostEntries is how many entries of a queue are shown, of each state.
const MostEntries = 60

// Queue is that of a moment.
func (m *Model) Queue(now Now) Queue {
	q := Queue{Running: now.Running, Known: now.Queued != nil}
	if q.Known {
		for i := range now.Queued {
			of := &now.Queued[i]
			q.Ready, q.AllReady = append(q.Ready, m.entries(of.Controller, of.Ready)...), q.AllReady+of.AllReady
			q.BackingOff, q.AllBackingOff = append(q.BackingOff, m.entries(of.Controller, of.BackingOff)...), q.AllBackingOff+of.AllBackingOff
			q.Due, q.AllDue = append(q.Due, m.entries(of.Controller, of.Due)...), q.AllDue+of.AllDue
		}
	} else {
		m.lastQueue(&q)
	}
	q.Ready, q.BackingOff, q.Due = first(q.Ready), first(q.BackingOff), first(q.Due)
	return q
}

// entries are requests of a controller with what is known of their last attempts.
func (m *Model) entries(controller string, waiting []trace.Waiting) (out []Entry) {
	for i := range waiting {
		w := &waiting[i]
		e := Entry{Subject: SubjectOf(&trace.Record{Controller: controller, Object: w.Object, Request: w.Request}), At: w.At, Attempt: w.Failures + 1}
		if s := m.subjects[e.Subject]; s != nil {
			r, _ := m.last(s)
			e.Last, e.Outcome, e.Error = r.ID, r.Outcome, r.Error
		}
		out = append(out, e)
	}
	return out
}

// lastQueue is what the last attempts asked for. What an event brings back sooner shows when it
// has run.
func (m *Model) lastQueue(q *Queue) {
	for of, s := range m.subjects {
		r, _ := m.last(s)
		if r.After <= 0 {
			continue
		}
		e := Entry{Subject: of, At: r.Began.Add(r.Took).Add(r.After), Attempt: 1, Outcome: r.Outcome, Error: r.Error, Last: r.ID}
		if r.Outcome == trace.Requeued {
			q.Due = append(q.Due, e)
			continue
		}
		e.Attempt = r.Retries + 2
		q.BackingOff = append(q.BackingOff, e)
	}
	q.AllDue, q.AllBackingOff = len(q.Due), len(q.BackingOff)
}

// first are the entries that come first.
func first(all []Entry) []Entry {
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Controller, b.Controller))
	})
	return all[:min(len(all), MostEntries)]
}
