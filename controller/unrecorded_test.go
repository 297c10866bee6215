// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// told counts how often it was asked for its text.
type told int

func (e *told) Error() string { *e++; return "refused" }

// TestNothingIsFoundOutWithoutARecord about a call of a reconcile.
func TestNothingIsFoundOutWithoutARecord(t *testing.T) {
	t.Parallel()
	ctx, err := controller.NewAttempt(t.Context(), controller.Deps{Client: newServer(addWeb)}, "webs", web("a"))
	if err != nil {
		t.Fatal(err)
	}
	var refused told
	controller.Observe(ctx, &client.Call{Verb: client.VerbUpdate, Err: &refused})
	if refused != 0 {
		t.Errorf("the text of its error was asked for %d times", refused)
	}
}
