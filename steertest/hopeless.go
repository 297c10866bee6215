// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/trace"
)

// alike is after how many equal errors in a row an error that the server gives for what was
// sent counts as one that no retry mends: until then another writer may have mended it.
const alike = 3

// hopeless ends waits for what cannot come, because the operator has met an error that no
// retry mends. It is safe for concurrent use.
type hopeless struct {
	mu sync.Mutex
	// last is the last error of each subject, such as "controller shop, Shop default/a", and
	// times how often it came in a row.
	last  map[string]string
	times map[string]int
	// terminal are the terminal errors of objects, until a wait has found that they have
	// passed.
	terminal map[string]error
	// waiting are the waits, and the objects that they are for.
	waiting map[*context.CancelCauseFunc]string
}

func newHopeless() *hopeless {
	return &hopeless{last: map[string]string{}, times: map[string]int{}, terminal: map[string]error{}, waiting: map[*context.CancelCauseFunc]string{}}
}

// look takes an error of the operator.
func (h *hopeless) look(err error) {
	refused := apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
	terminal := controller.IsTerminal(err)
	text := err.Error()
	subject, _, _ := strings.Cut(text, ": ")
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.last[subject] != text {
		h.last[subject], h.times[subject] = text, 0
	}
	h.times[subject]++
	if !terminal && (!refused || h.times[subject] < alike) {
		return
	}
	if _, object, ok := strings.Cut(subject, ", "); ok && terminal {
		h.terminal[object] = err
	}
	for end, object := range h.waiting {
		// What a user asks for may be impossible, and other objects go on; what the operator
		// sends never should be.
		if refused && !terminal || strings.HasSuffix(subject, ", "+object) {
			(*end)(&hopelessError{err})
		}
	}
}

// hopelessError is the end of a wait.
type hopelessError struct{ err error }

func (e *hopelessError) Error() string {
	return fmt.Sprintf("no retry mends the error of the operator (Options.Mistakes waits nevertheless): %v", e.err)
}

func (e *hopelessError) Unwrap() error { return e.err }

// wait is a context of a wait for an object, which ends when there is no hope for it.
func (h *hopeless) wait(ctx context.Context, object string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[&end] = object
	if err := h.terminal[object]; err != nil {
		delete(h.terminal, object)
		end(&hopelessError{err})
	}
	return ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, &end)
		end(nil)
	}
}

// isHopeless reports whether a wait has ended for lack of hope: not so while something else
// is still to be done for a terminal error, such as a change that the test has made.
func (e *Env) isHopeless(ctx context.Context, object string) bool {
	var end *hopelessError
	if !errors.As(context.Cause(ctx), &end) {
		return false
	}
	if !controller.IsTerminal(end.err) {
		return true
	}
	settling, cancel := e.bounded()
	defer cancel()
	if e.settle(settling) != nil {
		return false
	}
	last := trace.Record{}
	if m := e.Manager(); m != nil {
		for r := range m.Recorder().Records() {
			if r.Object.String() == object {
				last = r
			}
		}
	}
	return last.Outcome == trace.Terminal
}
