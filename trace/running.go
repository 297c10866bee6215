// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"bytes"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// active are the records that are open, as a list: a reconcile that begins allocates nothing
// for it.
type active struct {
	mu    sync.Mutex
	first *Active
}

func (l *active) add(a *Active) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.next = l.first; a.next != nil {
		a.next.previous = a
	}
	l.first = a
}

func (l *active) remove(a *Active) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.next != nil {
		a.next.previous = a.previous
	}
	if a.previous != nil {
		a.previous.next = a.next
	} else {
		l.first = a.next
	}
	a.next, a.previous = nil, nil
}

// Goroutine is the number of the goroutine that calls it, as stacks have it, for
// [Start.Goroutine]. It costs about a microsecond: workers that live long ask once.
func Goroutine() uint64 {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	if len(fields) < 2 {
		return 0
	}
	n, _ := strconv.ParseUint(string(fields[1]), 10, 64) // else it is not known
	return n
}

// Running are the reconciles that have not ended, the oldest first: with what they have
// read and written so far, the outcome [Running], how long they run, and the stack of
// their goroutine where [Start.Goroutine] names it. It stops the program for a moment, to
// look at all goroutines.
func (r *Recorder) Running() []Record {
	if r == nil {
		return nil
	}
	var found []Record
	var goroutines []uint64
	r.active.mu.Lock()
	for a := r.active.first; a != nil; a = a.next {
		if record, ok := a.soFar(); ok {
			found, goroutines = append(found, record), append(goroutines, a.goroutine)
		}
	}
	r.active.mu.Unlock()
	if len(found) == 0 {
		return nil
	}
	all := stacks()
	for i := range found {
		found[i].Stack = stackOf(all, goroutines[i])
	}
	slices.SortFunc(found, func(a, b Record) int { return a.Began.Compare(b.Began) })
	return found
}

// soFar is an open record as if it ended now.
func (a *Active) soFar() (Record, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.buffer == nil {
		return Record{}, false
	}
	b := buffer{slices.Clone(a.buffer.b)}
	b.end(&End{Outcome: Running}, a.omitted, "")
	record, err := Decode(b.b)
	record.Took = time.Since(record.Began)
	return record, err == nil
}

// maxStacks bounds the stacks of all goroutines, in bytes; those beyond are not known.
const maxStacks = 16 << 20

func stacks() []byte {
	for size := 64 << 10; ; size *= 2 {
		text := make([]byte, size)
		if n := runtime.Stack(text, true); n < size || size >= maxStacks {
			return text[:n]
		}
	}
}

// stackOf is the stack of one goroutine among all; empty if it is not there.
func stackOf(all []byte, goroutine uint64) string {
	head := fmt.Appendf(nil, "goroutine %d [", goroutine)
	for stack := range bytes.SplitSeq(all, []byte("\n\n")) {
		if goroutine != 0 && bytes.HasPrefix(stack, head) {
			return string(bytes.TrimSpace(stack))
		}
	}
	return ""
}

// ours begins the names of functions that are no reconciler's.
const ours = "github.com/steer-dev/steer/"

// Where is the line of the reconciler in its Stack, as FILE:LINE: the innermost that is
// neither of the standard library nor of Steer, such as the call that it waits in; empty
// if there is none.
func (r *Record) Where() string {
	lines := strings.Split(r.Stack, "\n")
	outer := "" // the frame that the controller calls
	for i := 1; i+1 < len(lines); i += 2 {
		function, place := lines[i], strings.TrimSpace(lines[i+1])
		place, _, _ = strings.Cut(place, " +0x")
		root, _, deep := strings.Cut(function, "/")
		switch {
		case strings.HasPrefix(function, ours+"controller.(*controller["):
			return outer
		case strings.HasPrefix(function, ours) && !strings.HasPrefix(function, ours+"examples/") && !strings.Contains(function, "_test."):
		case deep && strings.Contains(root, "."): // paths of the standard library have no domain
			return place
		default:
			outer = place
		}
	}
	return ""
}
