// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"

	"github.com/steer-dev/steer/controller/internal/status"
)

// FailedReason is the reason of the conditions that [FailureConditions] sets.
const FailedReason = status.FailedReason

// FailureConditions tells users in the status why Reconcile, or the function of a
// finalizer, failed: with the reason [FailedReason] and the error as message. For an error
// that is retried Reconciling is True, for a [Terminal] one Stalled; Ready is False. What
// the reconciler says itself goes before: a Ready that is not True keeps its reason, and
// an object that it has called stalled stays as it is. The next attempt that does not fail
// takes these conditions away. Conflicts, and waiting for children, are no failures. The
// Go type of the kind needs Status.Conditions, a []metav1.Condition.
//
// An error that has another text each time is written each time: leave times and counts
// out of errors.
func FailureConditions() Option {
	return objectOption(func(s *settings[Request]) { s.failures = true })
}

// failureOf is what the conditions say of an attempt.
func failureOf(err error) status.Failure {
	var terminal *terminalError
	if errors.As(err, &terminal) {
		return status.Failure{Err: terminal.err, Terminal: true}
	}
	return status.Failure{Err: err}
}
