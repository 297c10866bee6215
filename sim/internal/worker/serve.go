// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package worker runs the plans of a test in processes of their own: the same test binary,
// started for this one test, as Go's fuzzing does. A panic, a deadlock or os.Exit ends the
// process and is what is found about the plan; the test goes on with another process.
//
// Requests are lines of JSON on the standard input of a worker. Answers are lines of JSON
// on its standard output, after a mark; the lines between them are what the test logs.
package worker

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/steer-dev/steer/sim/internal/engine"
	"github.com/steer-dev/steer/sim/internal/plan"
)

// variable is the environment variable with the name of the test that a worker is for.
const variable = "STEER_SIM_WORKER"

// mark begins the line of an answer.
const mark = "\x02steer-sim "

// maxLine bounds a request.
const maxLine = 1 << 20

// Request is one run to make.
type Request struct {
	Plan   plan.Plan
	Limits engine.Limits
	// Stuck is how long, by the clock, nothing may go on until the run is ended and the
	// goroutine named that does not let it. Not 0.
	Stuck time.Duration
}

// Serves reports whether this process is a worker for a test.
func Serves(t testing.TB) bool { return os.Getenv(variable) == t.Name() }

// Serve runs f once for each request, and ends the process when there are no more: also
// within a run, since then no answer is waited for.
func Serve(t *testing.T, f func(t *testing.T)) {
	requests := make(chan []byte)
	go func() {
		in := bufio.NewScanner(os.Stdin)
		in.Buffer(nil, maxLine)
		for in.Scan() {
			requests <- bytes.Clone(in.Bytes())
		}
		os.Exit(0)
	}()
	for text := range requests {
		var r Request
		if err := json.Unmarshal(text, &r); err != nil {
			fmt.Fprintf(os.Stderr, "sim: a worker got no request: %v\n", err)
			os.Exit(exitBroken)
		}
		var passed atomic.Int64
		r.Limits.Passed = &passed
		done := make(chan struct{})
		go watch(&passed, r.Stuck, done)
		record := engine.Run(t, f, r.Plan, r.Limits)
		close(done)
		if record.Trouble != nil && record.Trouble.Type == engine.Left {
			record.Trouble.Message += "\n" + culprits(stacks(), true)
		}
		answer(record)
		if record.Trouble != nil && record.Trouble.Type == engine.Left {
			os.Exit(exitLeft) // its goroutines are in the way of the next run
		}
	}
}

// How a worker ends that cannot go on.
const (
	exitBroken = 3
	exitLeft   = 4
)

func answer(r engine.Record) {
	text, err := json.Marshal(r)
	if err != nil {
		text, _ = json.Marshal(engine.Record{Trouble: &engine.Trouble{Type: engine.Broken, Message: err.Error()}})
	}
	_, _ = io.WriteString(os.Stdout, "\n"+mark+string(text)+"\n")
}

// watch ends the process when nothing has gone on for a while: it stands outside of the
// bubble, where time is real.
func watch(passed *atomic.Int64, most time.Duration, done <-chan struct{}) {
	last := passed.Load()
	for {
		select {
		case <-done:
			return
		case <-time.After(most):
		}
		now := passed.Load()
		if now == last {
			answer(engine.Record{Trouble: &engine.Trouble{
				Type:    engine.Stuck,
				Message: fmt.Sprintf("nothing has gone on for %s of real time, because of:\n%s", most, culprits(stacks(), false)),
			}})
			os.Exit(exitLeft)
		}
		last = now
	}
}

func stacks() string {
	for size := 1 << 20; ; size *= 2 {
		b := make([]byte, size)
		if n := runtime.Stack(b, true); n < size {
			return string(b[:n])
		}
	}
}
