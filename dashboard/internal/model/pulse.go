// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/trace"
)

// State says whether a person has to look.
type State int

// The states, the worst last.
const (
	// Fine: nothing to do.
	Fine State = iota
	// Retried: it failed, and is tried again.
	Retried
	// NeedsPerson: it will not mend itself.
	NeedsPerson
)

// Problem is what does not go on by itself, or has failed.
type Problem struct {
	Subject
	State State
	// What is the matter, in words, with the message of the last error.
	What, Error string
	// Since is when it began.
	Since time.Time
	// Last is the attempt that shows it.
	Last trace.ID
}

// Controller is one, or a webhook, in the window of a [Pulse].
type Controller struct {
	Name string
	// Attempts and Failures in the window, with the Slowest; Median is of those whose records
	// are kept.
	Attempts, Failures int
	Median, Slowest    time.Duration
	// Rate, Failed and Took are per step of the window: attempts, failures, and the slowest
	// in seconds.
	Rate, Failed, Took []float64
	// Objects that it has reconciled; of those NeedPerson need a person, and Retried fail.
	Objects, NeedPerson, Retried int
	// Waiting requests; -1: not known.
	Waiting int
}

// Pulse is how an operator does.
type Pulse struct {
	// From and To are the window, which has [Steps] steps, each of the time Step.
	From, To time.Time
	Step     time.Duration
	// Problems are the worst, at most [MostProblems]; More counts the others. NeedPerson and
	// AreRetried count all.
	Problems               []Problem
	More                   int
	NeedPerson, AreRetried int
	Controllers            []Controller
	Objects                int
}

// Bounds of a [Pulse].
const (
	// Steps is how many a window has.
	Steps = 60
	// MostProblems is how many are told.
	MostProblems = 20
	// window is that of an operator that runs.
	window = 5 * time.Minute
)

// Pulse is how it is at a moment. A recording, which gets no more records, is shown as a
// whole, at the moment of its last record.
func (m *Model) Pulse(now Now, recording bool) Pulse {
	p := Pulse{To: now.At, From: now.At.Add(-window), Objects: len(m.subjects)}
	if recording && len(m.records) > 0 {
		p.From, p.To = m.span()
		now.At = p.To
	}
	first := int64(-1)
	if !recording {
		first = slotOf(now.At) - (Steps - 1)
		p.From, p.Step = time.Unix(0, first*int64(slotTime)), slotTime
	} else {
		p.Step = max(p.To.Sub(p.From)/Steps, 1)
	}
	all := m.Problems(now)
	for i := range all {
		if all[i].State == NeedsPerson {
			p.NeedPerson++
		}
	}
	p.AreRetried = len(all) - p.NeedPerson
	p.More = max(len(all)-MostProblems, 0)
	p.Problems = all[:len(all)-p.More]
	p.Controllers = m.controllers(&p, now, all, first)
	return p
}

// span is from the begin of the first record to the end of the last.
func (m *Model) span() (from, to time.Time) {
	from = m.records[0].Began
	for i := range m.records {
		r := &m.records[i]
		if r.Began.Before(from) {
			from = r.Began
		}
		if end := r.Began.Add(r.Took); end.After(to) {
			to = end
		}
	}
	return from, to
}

// controllers counts the attempts of the window: of a recording, with first -1, its records,
// and otherwise the slots from the first on.
func (m *Model) controllers(p *Pulse, now Now, problems []Problem, first int64) []Controller {
	byName := map[string]*Controller{}
	of := func(name string) *Controller {
		c := byName[name]
		if c == nil {
			c = &Controller{Name: name, Waiting: -1, Rate: make([]float64, Steps), Failed: make([]float64, Steps), Took: make([]float64, Steps)}
			for i := range now.Queued {
				if now.Queued[i].Controller == name {
					c.Waiting = now.Queued[i].AllReady
				}
			}
			byName[name] = c
		}
		return c
	}
	took := map[string][]time.Duration{}
	for i := range m.records {
		r := &m.records[i]
		end := r.Began.Add(r.Took)
		if end.Before(p.From) || end.After(p.To) {
			continue
		}
		took[r.Controller] = append(took[r.Controller], r.Took)
		c, at := of(r.Controller), min(int(end.Sub(p.From)/p.Step), Steps-1)
		if first >= 0 && m.series[r.Controller] != nil {
			continue
		}
		c.Attempts++
		c.Slowest = max(c.Slowest, r.Took)
		c.Rate[at]++
		c.Took[at] = max(c.Took[at], r.Took.Seconds())
		if Failure(r.Outcome) {
			c.Failures++
			c.Failed[at]++
		}
	}
	for s := range m.subjects {
		of(s.Controller).Objects++
	}
	for i := range problems {
		if c := of(problems[i].Controller); problems[i].State == NeedsPerson {
			c.NeedPerson++
		} else {
			c.Retried++
		}
	}
	out := make([]Controller, 0, len(byName))
	for name, c := range byName {
		if all := took[name]; len(all) > 0 {
			slices.Sort(all)
			c.Median = all[len(all)/2]
		}
		if s := m.series[name]; s != nil && first >= 0 {
			s.fill(c, first)
		}
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Controller) int {
		return cmp.Or(cmp.Compare(b.NeedPerson, a.NeedPerson), cmp.Compare(b.Retried, a.Retried), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// Problems are all of a moment, the worst first, and of equal ones those that last longest.
func (m *Model) Problems(now Now) (all []Problem) {
	for i := range now.Running {
		if p := stuck(&now.Running[i]); p.State != Fine {
			all = append(all, p)
		}
	}
	for of, s := range m.subjects {
		if p := m.problem(of, s, now); p.State != Fine {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(b.State, a.State), a.Since.Compare(b.Since), cmp.Compare(a.Name(), b.Name()), cmp.Compare(a.Controller, b.Controller))
	})
	return all
}

// stuck tells an attempt that runs for long.
func stuck(r *trace.Record) Problem {
	p := Problem{Subject: SubjectOf(r), Since: r.Began, Last: r.ID}
	if r.Took < stuckAfter {
		return p
	}
	p.State, p.What = NeedsPerson, "it has been running for "+Brief(r.Took)
	if where := r.Where(); where != "" {
		p.What += " at " + where
	}
	return p
}

// problem is that of a subject by its last attempt.
func (m *Model) problem(of Subject, s *subject, now Now) Problem {
	r, origin := m.last(s)
	p := Problem{Subject: of, Since: r.Began, Last: r.ID, Error: r.Error}
	switch {
	case r.Outcome == trace.Terminal:
		p.State, p.What = NeedsPerson, "it failed, and the reconciler says that no retry can mend it"
	case r.Outcome == trace.GaveUp:
		p.State, p.What = NeedsPerson, "it failed too often and is dropped until something changes"
	case s.row >= attemptsOfPerson:
		p.State, p.What, p.Since = NeedsPerson, fmt.Sprintf("it has failed %d times in a row", s.row), s.since
	case origin.turns >= turnsOfLoop && now.At.Sub(r.Began) < recently:
		p.State, p.What, p.Error = NeedsPerson, fmt.Sprintf("it keeps itself busy: %d attempts in a row were caused by changes of %s that attempts before them wrote to %s", origin.turns, fields(origin.changed.fields), origin.changed.Object), ""
		p.Since = origin.since
	case s.row > 0:
		p.State, p.What, p.Since = Retried, "it failed and is tried again", s.since
		if s.row > 1 {
			p.What = fmt.Sprintf("it has failed %d times in a row and is tried again", s.row)
		}
	}
	if Failure(r.Outcome) && p.Error == "" {
		p.Error = r.Outcome.String()
	}
	return p
}

func fields(list string) string { return strings.ReplaceAll(list, ",", ", ") }

// Brief is a duration in a few characters.
func Brief(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(100 * time.Microsecond).String()
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(time.Second).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd", d/(24*time.Hour))
}
