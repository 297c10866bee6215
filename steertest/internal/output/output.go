// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package output is what a test shows of its operator.
package output

import (
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/steer-dev/steer/internal/driven"
	"github.com/steer-dev/steer/trace"
)

const (
	// mostReconciles and mostLines of the operator's log are shown when a test has failed,
	// below the assertion.
	mostReconciles, mostLines = 12, 8
	// keptLines of the log are kept until then.
	keptLines = 200
)

// Log is what the operator has logged, until it is known whether the test fails: what is
// shown then is behind the assertion. It is safe for concurrent use.
type Log struct {
	mu      sync.Mutex
	lines   []string
	dropped int
}

func (o *Log) add(line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lines = append(o.lines, line); len(o.lines) > keptLines {
		o.lines, o.dropped = o.lines[1:], o.dropped+1
	}
}

// varies is what differs in lines of a log that say the same.
var varies = regexp.MustCompile(`(time|reconcileID|retryIn)=\S+ ?`)

// folded are the lines, those that say the same as one: the last of them, with their number.
func folded(lines []string, same func(string) string) []string {
	times, last := map[string]int{}, map[string]int{}
	for i, line := range lines {
		times[same(line)]++
		last[same(line)] = i
	}
	var all []string
	for i, line := range lines {
		is := same(line)
		switch {
		case last[is] != i:
		case times[is] == 1:
			all = append(all, line)
		default:
			all = append(all, fmt.Sprintf("%s (%d times)", line, times[is]))
		}
	}
	return all
}

// Reconciles are what the flight recorder has, in words; those of an object that end in the
// same way, with the same writes, are one.
func Reconciles(recorder *trace.Recorder) (all []string, number int) {
	same := map[string]string{}
	var lines []string
	for r := range recorder.Records() {
		line := r.String()
		r.Causes, r.Took, r.After, r.Reads = nil, 0, 0, nil
		for i := range r.Writes {
			r.Writes[i].Revision = ""
		}
		same[line] = r.String()
		lines = append(lines, line)
	}
	return folded(lines, func(line string) string { return same[line] }), len(lines)
}

// Show logs what the operator did, since it was started last, for a test that failed.
func (o *Log) Show(t testing.TB, recorder *trace.Recorder) {
	t.Helper()
	last, number := Reconciles(recorder)
	switch {
	case number == 0:
		t.Log("the operator has reconciled nothing since its start")
	case len(last) > mostReconciles:
		t.Logf("the last of %d reconciles:", number)
		last = last[len(last)-mostReconciles:]
	default:
		t.Logf("all reconciles: %d", number)
	}
	for _, line := range last {
		t.Log(line)
	}
	o.mu.Lock()
	dropped := o.dropped + len(o.lines)
	lines := folded(o.lines, func(line string) string { return varies.ReplaceAllString(line, "") })
	o.mu.Unlock()
	if len(lines) > mostLines {
		lines = lines[len(lines)-mostLines:]
	}
	if len(lines) > 0 {
		t.Logf("the last of %d lines that the operator has logged; go test -v shows all:", dropped)
	}
	for _, line := range lines {
		t.Log(line)
	}
}

// Writer takes the lines of the log of an operator under test; see [testWriter].
func (o *Log) Writer(t testing.TB, engine driven.Engine) io.Writer { return testWriter{t, engine, o} }

// testWriter takes lines of the log: to the test at once where it is verbose, to the engine
// that drives it, or else until the test has failed. What comes after its end is dropped.
type testWriter struct {
	t      testing.TB
	engine driven.Engine
	output *Log
}

func (w testWriter) Write(line []byte) (int, error) {
	text := strings.TrimSuffix(string(line), "\n")
	switch {
	case w.engine != nil:
		w.engine.Log(text)
	case !testing.Verbose():
		w.output.add(text)
	case w.t.Context().Err() == nil:
		w.t.Log(text)
	}
	return len(line), nil
}
