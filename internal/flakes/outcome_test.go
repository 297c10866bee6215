// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Recorded output of one test binary, which fails as its name says.
func TestOutcomeOfRecordedRuns(t *testing.T) {
	t.Parallel()
	exit := errors.New("exit status 1")
	for _, c := range []struct {
		name   string
		err    error
		passed string
		failed string // the names of the tests that failed
		output string // something that the output of the first of them has
	}{
		{name: "pass", passed: "Example_hello TestCounts TestPanics TestRaces"},
		{name: "fail", err: exit, passed: "Example_hello TestPanics TestRaces", failed: "TestCounts", output: "got 1, want 2"},
		{name: "race", err: exit, passed: "Example_hello TestCounts TestPanics", failed: "TestRaces", output: "WARNING: DATA RACE"},
		{name: "panic", err: exit, passed: "TestCounts TestRaces", failed: "TestPanics", output: "panic: in a goroutine"},
		{name: "timeout", err: exit, passed: "TestCounts TestRaces", failed: "TestPanics", output: "panic: test timed out after 2s"},
		{name: "leak", err: exit, passed: "Example_hello TestCounts TestPanics TestRaces", failed: "", output: "1 goroutine is left"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			recorded, err := os.Open(filepath.Join("testdata", c.name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			defer recorded.Close()
			tests, err := readEvents(recorded)
			if err != nil {
				t.Fatal(err)
			}
			got := tests.end(c.err)
			if passed := strings.Join(got.Passed, " "); passed != c.passed {
				t.Errorf("passed: %s, want %s", passed, c.passed)
			}
			if skipped := strings.Join(got.Skipped, " "); skipped != "TestSkips" {
				t.Errorf("skipped: %s", skipped)
			}
			if c.err == nil {
				if len(got.Failed) > 0 {
					t.Errorf("failed: %v", got.Failed)
				}
				return
			}
			if len(got.Failed) != 1 || got.Failed[0].Test != c.failed || !strings.Contains(got.Failed[0].Output, c.output) {
				t.Errorf("failed: %v, want %q with %q in the output", got.Failed, c.failed, c.output)
			}
		})
	}
}

// Of parallel tests, the output names one when the process ends: the others have not passed.
func TestOutcomeHasTestsThatDidNotEnd(t *testing.T) {
	t.Parallel()
	tests, err := readEvents(strings.NewReader(`{"Action":"run","Test":"TestOne"}
{"Action":"run","Test":"TestTwo"}
{"Action":"output","Test":"TestTwo","Output":"two waits\n"}
{"Action":"fail","Test":"TestOne"}
`))
	if err != nil {
		t.Fatal(err)
	}
	got := tests.end(errors.New("exit status 2"))
	if len(got.Passed) != 0 || len(got.Failed) != 2 || got.Failed[1].Test != "TestTwo" ||
		!strings.HasPrefix(got.Failed[1].Output, "two waits\nthe run ended before the test\n") {
		t.Errorf("got %+v", got)
	}
}

// A process may end badly before any test has begun, and with nothing but its status.
func TestOutcomeOfAProcessThatSaysNothing(t *testing.T) {
	t.Parallel()
	tests, err := readEvents(strings.NewReader("fork/exec counter.test: exec format error\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := tests.end(errors.New("exit status 2"))
	if want := "fork/exec counter.test: exec format error\nexit status 2\n"; len(got.Failed) != 1 || got.Failed[0] != (failure{Output: want}) {
		t.Errorf("got %+v", got)
	}
}

func TestOutputKeepsItsBeginningAndItsEnd(t *testing.T) {
	t.Parallel()
	long := "begin" + strings.Repeat("x", 3*outputLimit) + "end"
	got := shorten(long)
	if !strings.HasPrefix(got, "begin") || !strings.HasSuffix(got, "end") || len(got) > 2*outputLimit+100 || !strings.Contains(got, "bytes left out") {
		t.Errorf("%d bytes of %d", len(got), len(long))
	}
	if short := string(bytes.Repeat([]byte("y"), 2*outputLimit)); shorten(short) != short {
		t.Error("output within the limit is shortened")
	}
}
