// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/controller/internal/children"
	"github.com/steer-dev/steer/trace"
)

// Terminal marks an error that no retry can mend: it is logged and counted, and
// the object is left alone until something changes. Terminal(nil) is nil.
func Terminal(err error) error {
	if err == nil {
		return nil
	}
	return &terminalError{err}
}

// IsTerminal reports whether err, or what it wraps, is marked by [Terminal].
func IsTerminal(err error) bool {
	var t *terminalError
	return errors.As(err, &t)
}

type terminalError struct{ err error }

func (e *terminalError) Error() string { return "terminal error: " + e.err.Error() }
func (e *terminalError) Unwrap() error { return e.err }

// PanicError is a panic of a reconciler, as an error.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	panicked := max(0, bytes.LastIndex(e.Stack, []byte("\npanic("))) // before it is what recovered
	stack := trace.Record{Stack: string(e.Stack[panicked:])}
	if at := stack.Where(); at != "" {
		return fmt.Sprintf("panic at %s: %v", at, e.Value)
	}
	return fmt.Sprintf("panic: %v", e.Value)
}

// Unwrap returns the value when it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// ChangedError reports that a reconciler changed more of its object than the
// status.
type ChangedError struct {
	// Object is the kind and the key.
	Object string
	// Fields are the paths, joined by commas.
	Fields string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s of %s was changed in place: only the status is written for a reconciler; write the rest with the client (Patch or Apply), or change a DeepCopy", e.Fields, e.Object)
}

// ChildError is the error of one child of [Children]: it names the child. What Apply
// and Delete return may join several.
type ChildError = children.Error

// isQuiet reports the errors that are part of normal operation: another write was
// faster.
func isQuiet(err error) bool {
	var waiting *children.WaitingError
	return apierrors.IsConflict(err) || errors.As(err, &waiting)
}
