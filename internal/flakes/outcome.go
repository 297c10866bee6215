// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line of go test -json.
type event struct {
	Action, Test, Output string
}

// outcome is how the tests of one run ended. Passed and skipped are names of tests, without
// their parts.
type outcome struct {
	Passed  []string  `json:"passed,omitempty"`
	Skipped []string  `json:"skipped,omitempty"`
	Failed  []failure `json:"failed,omitempty"`
}

// failure is a test that failed. Test is empty for what no test is to blame for: a process that
// ended by itself, a goroutine that panicked after the test that had started it.
type failure struct {
	Test   string `json:"test,omitempty"`
	Output string `json:"output"`
}

// outputLimit is how many bytes of output a failure keeps, of the beginning and of the end each.
const outputLimit = 16 << 10

// progress reads the events of a run.
type progress struct {
	outcome
	running map[string]*strings.Builder // the output of tests that have not ended, by name
	rest    strings.Builder             // what was written by no test
	failed  bool                        // the binary itself says so
}

// readEvents reads until the run has closed its output.
func readEvents(r io.Reader) (*progress, error) {
	p := &progress{running: map[string]*strings.Builder{}}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.line(line)
		}
		if err == io.EOF {
			return p, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read the output of tests: %w", err)
		}
	}
}

// line takes a line: what is no event was written to standard error.
func (p *progress) line(line []byte) {
	var e event
	if line[0] != '{' || json.Unmarshal(line, &e) != nil {
		p.rest.Write(line)
		return
	}
	p.event(e)
}

func (p *progress) event(e event) {
	test, _, part := strings.Cut(e.Test, "/")
	if test == "" {
		p.rest.WriteString(e.Output)
		p.failed = p.failed || e.Action == "fail"
		return
	}
	output := p.running[test]
	if output == nil {
		output = &strings.Builder{}
		p.running[test] = output
	}
	output.WriteString(e.Output)
	if part {
		return
	}
	switch e.Action {
	case "pass":
		p.Passed = append(p.Passed, test)
	case "skip":
		p.Skipped = append(p.Skipped, test)
	case "fail":
		p.Failed = append(p.Failed, failure{Test: test, Output: shorten(output.String())})
	default:
		return
	}
	delete(p.running, test)
}

// end returns the outcome. Err is the error of the process: with it something has failed,
// whatever the tests say.
func (p *progress) end(err error) outcome {
	var left []string
	for test := range p.running {
		left = append(left, test)
	}
	slices.Sort(left)
	for _, test := range left {
		p.Failed = append(p.Failed, failure{Test: test, Output: shorten(p.running[test].String() + "the run ended before the test\n")})
	}
	if len(p.Failed) == 0 && (err != nil || p.failed) {
		text := p.rest.String()
		if err != nil {
			text += err.Error() + "\n"
		}
		p.Failed = append(p.Failed, failure{Output: shorten(text)})
	} else if len(left) > 0 {
		p.Failed[len(p.Failed)-1].Output = shorten(p.Failed[len(p.Failed)-1].Output + p.rest.String())
	}
	slices.Sort(p.Passed)
	slices.Sort(p.Skipped)
	return p.outcome
}

// shorten leaves the middle of long output out.
func shorten(output string) string {
	if len(output) <= 2*outputLimit {
		return output
	}
	return fmt.Sprintf("%s\n[... %d bytes left out ...]\n%s", output[:outputLimit], len(output)-2*outputLimit, output[len(output)-outputLimit:])
}
