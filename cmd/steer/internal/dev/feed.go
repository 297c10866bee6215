// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"regexp"
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
	// askAgain is the time between two looks at the metrics, and between attempts to
	// reach the operator.
	askAgain = 250 * time.Millisecond
)

// feed is what a running operator says about itself: the records of its flight recorder,
// and the depths of its queues. It is safe for concurrent use.
type feed struct {
	debug, metrics string // addresses that the operator serves
	changed        func()

	mu          sync.Mutex
	controllers []*tally
	records     []trace.Record // the newest last
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

// newFeed chooses addresses below the ports that systems give to clients, so that only
// another server can take them.
func newFeed(changed func()) (*feed, error) {
	f := &feed{changed: changed}
	for _, address := range []*string{&f.debug, &f.metrics} {
		for range 100 {
			candidate := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(10000)))
			if candidate != f.debug && isFree(candidate) {
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

// arguments are those with which the operator serves the feed.
func (f *feed) arguments() []string {
	return []string{"--pprof-bind-address=" + f.debug, "--metrics-bind-address=" + f.metrics, "--metrics-secure=false"}
}

// follow reads the feed of an operator that was just started until ctx ends.
func (f *feed) follow(ctx context.Context) {
	f.mu.Lock()
	f.controllers, f.records = nil, nil
	f.mu.Unlock()
	var both sync.WaitGroup
	defer both.Wait()
	both.Go(func() {
		for ctx.Err() == nil {
			_ = read(ctx, f.reconciles()+"?follow", func(body io.Reader) error { return f.followRecords(ctx, body) }) // it is not there yet
			pause(ctx)
		}
	})
	for ctx.Err() == nil {
		_ = read(ctx, "http://"+f.metrics+"/metrics", f.readQueues)
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

func (f *feed) reconciles() string { return "http://" + f.debug + "/debug/reconciles" }

// followRecords adds the records that the operator kept before, and those that come.
func (f *feed) followRecords(ctx context.Context, coming io.Reader) error {
	known := map[trace.ID]bool{}
	records := func(body io.Reader) error {
		decoder := json.NewDecoder(body)
		for {
			var record trace.Record
			if err := decoder.Decode(&record); err != nil {
				return err
			}
			if !known[record.ID] {
				f.add(record)
				f.changed()
			}
			known[record.ID] = true
		}
	}
	if err := read(ctx, f.reconciles(), records); !errors.Is(err, io.EOF) {
		return err
	}
	return records(coming)
}

// add counts a record.
func (f *feed) add(r trace.Record) {
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
func (f *feed) of(name string) *tally {
	i, found := slices.BinarySearchFunc(f.controllers, name, func(t *tally, name string) int { return strings.Compare(t.name, name) })
	if !found {
		f.controllers = slices.Insert(f.controllers, i, &tally{name: name})
	}
	return f.controllers[i]
}

// depth is a sample of the metric that has the depth of a queue.
var depth = regexp.MustCompile(`^workqueue_depth\{.*name="([^"]+)".*\} ([0-9.e+]+)$`)

// readQueues reads the depths of the queues.
func (f *feed) readQueues(body io.Reader) error {
	depths := map[string]int{}
	text := bufio.NewScanner(body)
	text.Buffer(nil, 1<<20)
	for text.Scan() {
		if sample := depth.FindStringSubmatch(text.Text()); sample != nil {
			value, err := strconv.ParseFloat(sample[2], 64)
			if err != nil {
				return err
			}
			depths[sample[1]] += int(value) // one sample for each priority
		}
	}
	f.mu.Lock()
	moved := false
	for name, value := range depths {
		t := f.of(name)
		moved = moved || t.queue != value
		t.queue = value
	}
	f.mu.Unlock()
	if moved {
		f.changed()
	}
	return text.Err()
}

// rows are the lines of the table, with who made the changes that were the last causes.
func (f *feed) rows(author func(trace.Cause) string) []screen.Row {
	rows, causes := f.counts()
	for i := range rows {
		if by := author(causes[i]); by != "" {
			rows[i].Cause += " by " + by
		}
	}
	return rows
}

func (f *feed) counts() (out []screen.Row, causes []trace.Cause) {
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

// latest are the last reconciles of the object that was reconciled last, and of no other.
func (f *feed) latest() (about string, lines []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.records) == 0 {
		return "", nil
	}
	last := f.records[len(f.records)-1]
	for _, r := range f.records {
		if r.Controller == last.Controller && r.Object == last.Object {
			lines = append(lines, r.Began.Format(time.TimeOnly)+" "+r.String())
		}
	}
	return last.Object.String(), lines
}

// failures are, by object, the errors with which the last attempts ended.
func (f *feed) failures() []string {
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
