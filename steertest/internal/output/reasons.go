// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

// Kept says what keeps an object from going; empty if it is not being deleted.
func Kept(obj client.Object) string {
	if obj.GetDeletionTimestamp() == nil {
		return ""
	}
	return fmt.Sprintf("\nit is being deleted, and stays until its finalizers are removed: %s; that of controller.Finalizer is once its function returns controller.Finalized(), nil",
		strings.Join(obj.GetFinalizers(), ", "))
}

// mostFrames is how many lines of a stack are shown: those where it waits.
const mostFrames = 11

// Running says which reconciles of the operator have not ended, and where they are.
func Running(recorder *trace.Recorder) string {
	var b strings.Builder
	for _, r := range recorder.Running() {
		if r.Took < time.Second {
			continue // they come and go
		}
		stack, _, _ := strings.Cut(r.Stack, "\ngithub.com/steer-dev/steer/controller.") // what called the reconciler
		frames := strings.Split(stack, "\n")
		fmt.Fprintf(&b, "\nthis has not ended: %s\n  %s", r, strings.Join(frames[:min(len(frames), mostFrames)], "\n  "))
	}
	return b.String()
}

// Busiest says which object was reconciled most often since then; empty if none was twice.
func Busiest(recorder *trace.Recorder, since time.Time) string {
	type subject struct {
		controller string
		object     trace.Object
		request    string
	}
	times, last := map[subject]int{}, map[subject]trace.Record{}
	var most subject
	for r := range recorder.Records() {
		s := subject{r.Controller, r.Object, r.Request}
		if r.Began.Before(since) {
			continue
		}
		times[s]++
		last[s] = r
		if times[s] > times[most] {
			most = s
		}
	}
	if times[most] < 2 {
		return ""
	}
	return fmt.Sprintf("\n%d reconciles of one object meanwhile, the last one:\n  %s", times[most], last[most])
}
