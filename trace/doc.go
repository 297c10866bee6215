// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package trace is the flight recorder of an operator: every reconcile leaves
// one record that tells what caused it, how long it waited, what it read and
// wrote at which revision, and how it ended.
//
// A [Recorder] keeps the newest records within a fixed byte budget. A controller
// opens a record with [Recorder.Begin] and closes it with [Active.End]; in
// between, a client that talks to the API server on behalf of the reconcile finds the
// open record in the context ([FromContext]) and notes its accesses on it. Read
// what is kept with [Recorder.Records], follow it live with [Recorder.Follow],
// or write it as JSON lines with [WriteJSON]:
//
//	for r := range recorder.Follow(ctx) {
//		fmt.Println(r) // replicas default/web: updated Pod default/web-1 (status.phase) -> get Replicas@41 list Pod@44[2] -> create Pod@45 -> done in 3ms
//	}
//
// Records hold names, revisions and field paths, and no values of objects but those that
// the text of an error quotes: API servers quote a value that they refuse, and reconcilers
// write what they like. Who may read records may read that. Of Secrets they hold less:
// paths end at the first field, and the text of an error that concerns one is replaced.
package trace
