// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"testing"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

func TestVerbsOfRecordsAreThoseOfClients(t *testing.T) {
	t.Parallel()
	for verb, want := range map[client.Verb]trace.Verb{
		client.VerbGet: trace.Get, client.VerbList: trace.List, client.VerbWatch: 0, client.VerbCreate: trace.Create, client.VerbUpdate: trace.Update,
		client.VerbPatch: trace.Patch, client.VerbApply: trace.Apply, client.VerbDelete: trace.Delete, client.VerbDeleteAll: trace.DeleteAllOf, "": 0,
	} {
		if got := trace.VerbOf(string(verb)); got != want {
			t.Errorf("%q is %v, want %v", verb, got, want)
		}
	}
}
