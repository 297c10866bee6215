// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package feed reads what a running operator says about itself: the records of its flight
// recorder, and what waits in its queues.
package feed

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/trace"
)

const (
	// keptRecords is how many records of reconciles are kept to show.
	keptRecords = 200
	// keptTimes is how many attempts of a controller the median is of.
	keptTimes = 100
	// askAgain is the time between two looks at the queues, and between attempts to
	// reach the operator.
	askAgain = 250 * time.Millisecond
)

// Feed is what a running operator says about itself: the records of its flight recorder,
// and what waits in its queues. It is safe for concurrent use.
type Feed struct {
	debug, metrics string // addresses that the operator serves
	changed        func()
	last           trace.ID // of the records of this operator; of the goroutine that follows it

	mu          sync.Mutex
	controllers []*tally
	records     []trace.Record // the newest last
	running     []trace.Record // the oldest first
	queued      []trace.Queued // nil until the operator has answered
}

// tally is what one controller did since the operator was started.
type tally struct {
	name   string
	queue  int
	ok     int
	failed int
	times  []time.Duration
	cause  trace.Cause
}

// New chooses addresses below the ports that systems give to clients, so that only
// another server can take them.
func New(changed func()) (*Feed, error) {
	f := &Feed{changed: changed}
	for _, address := range []*string{&f.debug, &f.metrics} {
		for range 100 {
			candidate := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(10000)))
			if candidate != f.debug && IsFree(candidate) {
				*address = candidate
				break
			}
		}
		if *address == "" {
			return nil, fmt.Errorf("no port between 20000 and 30000 is free on 127.0.0.1")
		}
	}
	return f, nil
}

// IsFree reports whether an address of this machine can be listened on.
func IsFree(address string) bool {
	listener, err := net.Listen("tcp", address)
	return err == nil && listener.Close() == nil
}

// Arguments are those with which the operator serves the feed.
func (f *Feed) Arguments() []string {
	return []string{"--pprof-bind-address=" + f.debug, "--metrics-bind-address=" + f.metrics, "--metrics-secure=false"}
}

// Follow reads the feed of an operator that was just started until ctx ends.
func (f *Feed) Follow(ctx context.Context) {
	f.mu.Lock()
	f.controllers, f.records, f.running, f.queued = nil, nil, nil, nil
	f.mu.Unlock()
	f.last = trace.ID{}
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		for ctx.Err() == nil {
			_ = read(ctx, f.reconciles()+"?follow", func(body io.Reader) error { return f.followRecords(ctx, body) }) // it is not there yet
			pause(ctx)
		}
	})
	for ctx.Err() == nil {
		_ = read(ctx, f.reconciles()+"?queued", f.readQueued)
		_ = read(ctx, f.reconciles()+"?running", f.readRunning)
		pause(ctx)
	}
}

func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(askAgain):
	}
}

// read passes the body of the answer at a URL to body.
func read(ctx context.Context, url string, body func(io.Reader) error) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, response.Status)
	}
	return body(response.Body)
}

func (f *Feed) reconciles() string { return "http://" + f.debug + "/debug/reconciles" }

// followRecords adds the records that the operator kept before, and those that come. Both
// are in the order in which the reconciles ended: an earlier stream has had those up to
// the last one.
func (f *Feed) followRecords(ctx context.Context, coming io.Reader) error {
	var kept []trace.Record
	err := read(ctx, f.reconciles(), func(body io.Reader) error {
		return decode(body, func(r trace.Record) { kept = append(kept, r) })
	})
	if !errors.Is(err, io.EOF) {
		return err
	}
	listed := map[trace.ID]bool{} // what comes begins with some of them
	for _, r := range kept {
		listed[r.ID] = true
	}
	had := slices.IndexFunc(kept, func(r trace.Record) bool { return r.ID == f.last })
	for _, r := range kept[had+1:] {
		f.follows(r)
	}
	return decode(coming, func(r trace.Record) {
		if !listed[r.ID] {
			listed = nil
			f.follows(r)
		}
	})
}

// decode reads records until there are no more, which is an error.
func decode(from io.Reader, to func(trace.Record)) error {
	for decoder := json.NewDecoder(from); ; {
		var record trace.Record
		if err := decoder.Decode(&record); err != nil {
			return err
		}
		to(record)
	}
}

// follows adds a record that has not been there.
func (f *Feed) follows(r trace.Record) {
	f.last = r.ID
	f.Add(r)
	f.changed()
}

// Add counts a record.
func (f *Feed) Add(r trace.Record) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.records = append(f.records, r)
	if len(f.records) > keptRecords {
		f.records = slices.Delete(f.records, 0, len(f.records)-keptRecords)
	}
	t := f.of(r.Controller)
	switch r.Outcome {
	case trace.Failed, trace.Terminal, trace.Panicked, trace.TimedOut, trace.GaveUp:
		t.failed++
	case trace.Stopped, trace.Conflicted: // normal operation
	default:
		t.ok++
	}
	if t.times = append(t.times, r.Took); len(t.times) > keptTimes {
		t.times = t.times[1:]
	}
	if len(r.Causes) > 0 {
		t.cause = r.Causes[len(r.Causes)-1]
	}
}

// of is the tally of a controller, which is made if it is new.
func (f *Feed) of(name string) *tally {
	i, found := slices.BinarySearchFunc(f.controllers, name, func(t *tally, name string) int { return strings.Compare(t.name, name) })
	if !found {
		f.controllers = slices.Insert(f.controllers, i, &tally{name: name})
	}
	return f.controllers[i]
}

// readQueued reads what waits in the queues.
func (f *Feed) readQueued(body io.Reader) error {
	var queued []trace.Queued
	for decoder := json.NewDecoder(body); ; {
		var q trace.Queued
		err := decoder.Decode(&q)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		queued = append(queued, q)
	}
	f.mu.Lock()
	f.queued = queued
	moved := false
	for i := range queued {
		t := f.of(queued[i].Controller)
		moved = moved || t.queue != queued[i].AllReady
		t.queue = queued[i].AllReady
	}
	f.mu.Unlock()
	if moved {
		f.changed()
	}
	return nil
}

// Rows are the lines of the table, with who made the changes that were the last causes.
func (f *Feed) Rows(author func(trace.Cause) string) []screen.Row {
	rows, causes := f.counts()
	for i := range rows {
		if by := author(causes[i]); by != "" {
			rows[i].Cause += " by " + by
		}
	}
	return rows
}

func (f *Feed) counts() (out []screen.Row, causes []trace.Cause) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, t := range f.controllers {
		r := screen.Row{Controller: t.name, Queue: t.queue, OK: t.ok, Errors: t.failed, Cause: causeOf(t.cause)}
		if len(t.times) > 0 {
			times := slices.Sorted(slices.Values(t.times))
			r.Median = times[len(times)/2]
		}
		out, causes = append(out, r), append(causes, t.cause)
	}
	return out, causes
}

// causeOf is a cause in a few words.
func causeOf(c trace.Cause) string {
	switch {
	case c == (trace.Cause{}):
		return ""
	case c.Changed != "":
		return c.Changed
	case c.Object == (trace.Object{}):
		return c.Type.String()
	}
	return c.Type.String() + " " + c.Object.String()
}

// Subject is what was reconciled.
type Subject struct {
	Object trace.Object
	// Request is that of controllers of other requests than objects, in words.
	Request string
}

func (s Subject) String() string {
	if s.Object == (trace.Object{}) {
		return s.Request
	}
	return s.Object.String()
}

// of is what a record is of.
func of(r *trace.Record) Subject {
	if r.Object == (trace.Object{}) {
		return Subject{Request: r.Controller + " " + r.Request}
	}
	return Subject{Object: r.Object}
}

// Subjects are what was reconciled lately, by their names, with a line for each, and the one
// that was reconciled last.
func (f *Feed) Subjects() (subjects []Subject, items []screen.Item, latest Subject) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known := map[Subject]*screen.Item{}
	for i := range f.records {
		r := &f.records[i]
		latest = of(r)
		if known[latest] == nil {
			known[latest] = &screen.Item{Object: latest.String()}
			subjects = append(subjects, latest)
		}
		item := known[latest]
		item.Count++
		item.Last, item.Outcome = r.Began.Local().Format(time.TimeOnly), r.Outcome.String()
	}
	slices.SortFunc(subjects, func(a, b Subject) int {
		return cmp.Or(cmp.Compare(a.String(), b.String()), cmp.Compare(a.Object.Group, b.Object.Group))
	})
	for _, s := range subjects {
		items = append(items, *known[s])
	}
	return subjects, items, latest
}

// Reconciles are the last ones of a subject, the newest last.
func (f *Feed) Reconciles(s Subject) (lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.records {
		if r := &f.records[i]; of(r) == s {
			lines = append(lines, r.Began.Local().Format(time.TimeOnly)+" "+r.String())
		}
	}
	return lines
}

// Records are the last ones, the newest last.
func (f *Feed) Records() []trace.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.records)
}

// Failures are, by object, the errors with which the last attempts ended.
func (f *Feed) Failures() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	type subject struct {
		controller string
		object     trace.Object
	}
	last := map[subject]string{}
	var order []subject
	for _, r := range f.records {
		at := subject{r.Controller, r.Object}
		if _, ok := last[at]; !ok {
			order = append(order, at)
		}
		last[at] = r.Error
	}
	var out []string
	for _, at := range order {
		if last[at] == "" {
			continue
		}
		name := at.object.Name
		if at.object.Namespace != "" {
			name = at.object.Namespace + "/" + name
		}
		out = append(out, name+": "+last[at])
	}
	return out
}
