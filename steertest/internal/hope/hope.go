// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hope ends the waits of a test for what cannot come, because the operator has met an
// error that no retry mends.
package hope

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controller"
)

// alike is after how many equal errors in a row an error that the server gives for what was
// sent counts as one that no retry mends: until then another writer may have mended it.
const alike = 3

// Waits are those of a test. They are safe for concurrent use.
type Waits struct {
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

// NewWaits returns none.
func NewWaits() *Waits {
	return &Waits{last: map[string]string{}, times: map[string]int{}, terminal: map[string]error{}, waiting: map[*context.CancelCauseFunc]string{}}
}

// Look takes an error of the operator.
func (h *Waits) Look(err error) {
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
			(*end)(&LostError{err})
		}
	}
}

// LostError is the end of a wait, with the error of the operator.
type LostError struct{ Err error }

func (e *LostError) Error() string {
	return fmt.Sprintf("no retry mends the error of the operator (Options.Mistakes waits nevertheless): %v", e.Err)
}

func (e *LostError) Unwrap() error { return e.Err }

// Wait is a context of a wait for an object, which ends when there is no hope for it.
func (h *Waits) Wait(ctx context.Context, object string) (context.Context, func()) {
	ctx, end := context.WithCancelCause(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiting[&end] = object
	if err := h.terminal[object]; err != nil {
		delete(h.terminal, object)
		end(&LostError{err})
	}
	return ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting, &end)
		end(nil)
	}
}
