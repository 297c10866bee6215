// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/steer-dev/steer/bench/browser"
	"github.com/steer-dev/steer/dashboard"
	"github.com/steer-dev/steer/trace"
)

// fleet is an object of the measurements.
func fleet(number int) trace.Object {
	return trace.Object{Group: "example.com", Kind: "Fleet", Namespace: "default", Name: fmt.Sprint("a-fleet-with-a-name-of-usual-length-", number)}
}

// record is an attempt: every 50th fails.
func record(number int, of trace.Object) trace.Record {
	r := trace.Record{
		ID: trace.ID{Recorder: 7, Number: uint64(number + 1)}, Controller: fmt.Sprint("controller-", number%5), Object: of,
		Began: time.Now().Add(time.Duration(number)*3*time.Millisecond - 5*time.Minute), Waited: time.Millisecond, Took: 3 * time.Millisecond,
		Outcome: trace.Requeued, After: time.Duration(number%600) * time.Second,
		Causes: []trace.Cause{{Type: trace.Updated, Object: of, Revision: fmt.Sprint(number), Changed: "spec.replicas"}},
		Reads:  []trace.Access{{Verb: trace.Get, Object: of, Revision: fmt.Sprint(number), Cached: true}},
		Writes: []trace.Access{{Verb: trace.Patch, Object: of, Subresource: "status", Revision: fmt.Sprint(number + 1<<30), Changed: "status.ready"}},
	}
	if number%50 == 0 {
		r.Outcome, r.Error, r.Retries, r.After = trace.Failed, "the registry refused the image: it has no manifest for linux/arm64", 7, time.Minute
	}
	return r
}

// listen serves a page of records, until the returned function is called.
func listen(ctx context.Context, o dashboard.Options) (url string, stop func() error, err error) {
	local, err := dashboard.New(o).Listen("127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	serving, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- local.Run(serving) }()
	return local.URL(), func() error { cancel(); return <-ended }, nil
}

// origin is the address of a page without its token.
func origin(url string) string {
	at, _, _ := strings.Cut(url, "/?token=")
	return at
}

// Paint measures the first view, and others, of 10,000 objects and 100,000 records: the time
// from the request to the first paint of content, and what was transferred.
func Paint(ctx context.Context, b *browser.Browser, out io.Writer) (err error) {
	var records []trace.Record
	for i := range 100_000 {
		records = append(records, record(i, fleet(i%10_000)))
	}
	url, stop, err := listen(ctx, dashboard.Options{Title: "measured", Source: dashboard.Recording(records, "A recording")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	const rounds = 15
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "view\tfirst paint, median\tat most\treceived")
	first := true
	for _, view := range []string{"/", "/objects", "/queue", "/object?group=example.com&kind=Fleet&namespace=default&name=" + fleet(50).Name} {
		var paints []float64
		received := 0
		for range rounds {
			tab, err := b.Tab(ctx, true)
			if err != nil {
				return err
			}
			if err := tab.Go(ctx, url); err != nil { // it gives the cookie
				return err
			}
			if first { // the model was filled by the request
				first = false
				continue
			}
			if err := tab.Go(ctx, "about:blank"); err != nil {
				return err
			}
			tab.Received()
			var paint float64
			if err := errors.Join(tab.Go(ctx, origin(url)+view), tab.Until(ctx, painted), tab.Eval(ctx, `performance.getEntriesByName("first-contentful-paint")[0].startTime`, &paint)); err != nil {
				return err
			}
			paints, received = append(paints, paint), max(received, tab.Received())
			if err := tab.Close(ctx); err != nil {
				return err
			}
		}
		slices.Sort(paints)
		fmt.Fprintf(table, "%.20s\t%.0f ms\t%.0f ms\t%.1f KiB\n", view, paints[len(paints)/2], paints[len(paints)-1], float64(received)/1024)
	}
	return table.Flush()
}

const painted = `performance.getEntriesByName("first-contentful-paint").length > 0`

// Scroll turns the wheel through the 40,000 records of an object, and reports what the document
// has meanwhile, and the longest frame.
func Scroll(ctx context.Context, b *browser.Browser, out io.Writer) (err error) {
	var records []trace.Record
	for i := range 40_000 {
		records = append(records, record(i, fleet(1)))
	}
	url, stop, err := listen(ctx, dashboard.Options{Title: "measured", Source: dashboard.Recording(records, "")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	tab, err := b.Tab(ctx, true)
	if err != nil {
		return err
	}
	if err := errors.Join(tab.Go(ctx, url),
		tab.Go(ctx, origin(url)+"/object?group=example.com&kind=Fleet&namespace=default&name="+fleet(1).Name),
		tab.Eval(ctx, `window.frames_ = []; { let at = performance.now(); const frame = (now) => { frames_.push(now - at); at = now; requestAnimationFrame(frame); }; requestAnimationFrame(frame); } 0`, nil)); err != nil {
		return err
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "attempts passed\trows in the document\tDOM nodes\tJS heap\tframe, 99 % within\tlongest")
	began := time.Now()
	for next := 60; next <= 40_000; next = next*5/2 + 60 {
		var at struct{ Passed, Rows int }
		for at.Passed < next && time.Since(began) < 5*time.Minute {
			if err := errors.Join(tab.Scroll(ctx, 2400), tab.Eval(ctx, `new Promise((yes) => requestAnimationFrame(() => yes({
				Passed: 60 * document.querySelector("#attempts table").tBodies.length, Rows: document.querySelectorAll("#attempts tbody tr").length})))`, &at)); err != nil {
				return err
			}
		}
		figures, err := tab.Metrics(ctx)
		if err != nil {
			return err
		}
		var frames struct{ Most, Usual float64 }
		if err := tab.Eval(ctx, `(() => { const all = frames_.splice(0).sort((a, b) => a - b); return {Most: all.at(-1), Usual: all[Math.floor(all.length * 0.99)]}; })()`, &frames); err != nil {
			return err
		}
		fmt.Fprintf(table, "%d\t%d\t%.0f\t%.1f MiB\t%.0f ms\t%.0f ms\n", at.Passed, at.Rows, figures["Nodes"], figures["JSHeapUsedSize"]/(1<<20), frames.Usual, frames.Most)
	}
	return table.Flush()
}

// Memory watches the memory of three views while an operator reconciles at a rate.
func Memory(ctx context.Context, b *browser.Browser, out io.Writer, period time.Duration, rate int) (err error) {
	recorder := trace.NewRecorder(trace.Options{})
	running, cancel := context.WithCancel(ctx)
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		work(running, recorder, rate)
	}()
	defer func() { cancel(); <-worked }()
	url, stop, err := listen(ctx, dashboard.Options{Title: "measured", Source: dashboard.Live(recorder, nil)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	views := []string{"/", "/queue", "/object?group=example.com&kind=Fleet&namespace=default&name=" + fleet(1).Name}
	var tabs []*browser.Tab
	for _, view := range views {
		tab, err := b.Tab(ctx, true)
		if err != nil {
			return err
		}
		if err := errors.Join(tab.Go(ctx, url), tab.Go(ctx, origin(url)+view), tab.Eval(ctx, "performance.setResourceTimingBufferSize(1e5)", nil)); err != nil {
			return err
		}
		tabs = append(tabs, tab)
	}
	table := tabwriter.NewWriter(out, 10, 0, 2, ' ', 0)
	fmt.Fprintln(table, "after\tview\tJS heap\tDOM nodes\tupdates of the view")
	every := time.NewTicker(max(period/10, time.Second))
	defer every.Stop()
	for began := time.Now(); time.Since(began) < period; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-every.C:
		}
		for i, tab := range tabs {
			figures, err := tab.Metrics(ctx)
			if err != nil {
				return err
			}
			var updates int
			if err := tab.Eval(ctx, `performance.getEntriesByType("resource").filter((e) => e.initiatorType === "fetch").length`, &updates); err != nil {
				return err
			}
			if err := tab.Eval(ctx, `performance.clearResourceTimings()`, nil); err != nil {
				return err
			}
			fmt.Fprintf(table, "%s\t%.10s\t%.2f MiB\t%.0f\t%d\n", time.Since(began).Round(time.Second), views[i], figures["JSHeapUsedSize"]/(1<<20), figures["Nodes"], updates)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// work notes attempts of 1,000 objects at a rate until ctx ends.
func work(ctx context.Context, recorder *trace.Recorder, rate int) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for number := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for range rate / 100 {
			number++
			of := fleet(number % 1000)
			var causes trace.Causes
			causes.Add(trace.Cause{Type: trace.Updated, Object: of, Revision: fmt.Sprint(number), Changed: "spec.replicas"})
			var a trace.Active
			recorder.Begin(&a, trace.Start{Controller: fmt.Sprint("controller-", number%5), Object: of, Began: time.Now(), Causes: &causes})
			a.Note(trace.Access{Verb: trace.Patch, Object: of, Subresource: "status", Revision: fmt.Sprint(number + 1<<30), Changed: "status.ready"})
			end := trace.End{Outcome: trace.Requeued, After: time.Minute}
			if number%50 == 0 {
				end = trace.End{Outcome: trace.Failed, Err: errors.New("the registry refused the image"), After: time.Minute}
			}
			a.End(end)
		}
	}
}
