// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"sync"

	"github.com/steer-dev/steer/cmd/steer/internal/rights"
)

// advice reads what the operator prints, and says for each right that it lacks which
// marker gives it. It is safe for concurrent use.
type advice struct {
	// place is where a marker for the reconciler of a kind belongs; empty if it is not known.
	place func(kind string) string
	// say prints what to do for the lack of a right.
	say func(lacks rights.Right, text string)

	mu   sync.Mutex
	said map[rights.Right]bool
}

// begin forgets what was said: another operator runs.
func (a *advice) begin() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = map[rights.Right]bool{}
}

// writer is for one stream of what the operator prints.
func (a *advice) writer() io.Writer { return &lines{to: a.line} }

// reconciled is the kind in a line of a controller's log.
var reconciled = regexp.MustCompile(`"?controllerKind"?[=:]"?(\w+)`)

// line looks at a line.
func (a *advice) line(text string) {
	right, ok := rights.Refused(text)
	if !ok {
		return
	}
	a.mu.Lock()
	again := a.said[right]
	a.said[right] = true
	a.mu.Unlock()
	if again {
		return
	}
	kind := ""
	if in := reconciled.FindStringSubmatch(text); in != nil {
		kind = in[1]
	}
	where := ""
	if place := a.place(kind); place != "" {
		where = " at " + place
	}
	a.say(right, fmt.Sprintf("may not %s; add the marker%s: // %s", right, where, right.Marker()))
}

// longLine is where a line is cut.
const longLine = 64 << 10

// lines gives complete lines, without their ends, to a function, one at a time. It is safe
// for concurrent use.
type lines struct {
	to func(line string)

	mu   sync.Mutex
	rest []byte
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			break
		}
		l.to(string(line))
		l.rest = rest
	}
	if len(l.rest) > longLine {
		l.to(string(l.rest))
		l.rest = nil
	}
	return len(p), nil
}
