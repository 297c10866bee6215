// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/queue"
)

func TestPendingListsWhatWaitsInItsOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{})
		defer q.Close()
		begin := time.Now()
		q.Add("runs", queue.AddOptions{})
		get(t, q)
		time.Sleep(time.Second)
		q.Add("runs", queue.AddOptions{}) // once more
		q.Add("second", queue.AddOptions{})
		q.Add("first", queue.AddOptions{Priority: 20})
		q.Retry("failed", queue.AddOptions{})
		delay, _ := q.Retry("failed", queue.AddOptions{After: time.Minute})
		for i := range 3 {
			q.Add(fmt.Sprint("due-", 3-i), queue.AddOptions{After: time.Duration(3-i) * time.Hour})
		}
		q.Add("moved", queue.AddOptions{After: 4 * time.Hour})
		q.Add("moved", queue.AddOptions{After: 90 * time.Minute})
		at := begin.Add(time.Second)
		want := queue.Pending[string]{
			Ready:      []queue.Waiting[string]{{Key: "first", At: at}, {Key: "runs", At: at}, {Key: "second", At: at}},
			BackingOff: []queue.Waiting[string]{{Key: "failed", At: at.Add(5 * time.Millisecond), Failures: 2}},
			Delayed: []queue.Waiting[string]{
				{Key: "due-1", At: at.Add(time.Hour)}, {Key: "moved", At: at.Add(90 * time.Minute)}, {Key: "due-2", At: at.Add(2 * time.Hour)},
			},
			AllReady: 3, AllBackingOff: 1, AllDelayed: 4,
		}
		if diff := cmp.Diff(want, q.Pending(3)); diff != "" || delay != time.Minute {
			t.Errorf("a delay of %s, (-want +got):\n%s", delay, diff)
		}
		if got := q.Pending(0); len(got.Ready)+len(got.BackingOff)+len(got.Delayed) != 0 || got.AllDelayed != 4 {
			t.Errorf("none was asked for: %+v", got)
		}
		q.Done("runs")
	})
}
