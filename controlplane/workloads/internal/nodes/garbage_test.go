// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

// TestCollectDeletesTheOldestTerminatedPods: those that were evicted go first, at most every
// 20 seconds.
func TestCollectDeletesTheOldestTerminatedPods(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	memory, c := cluster.NewMemory(), New()
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	write := func(name string, age int, status string) {
		t.Helper()
		key := storage.Key{Bucket: cluster.Pods, Name: "default/" + name}
		steptest.Put(t, store, key, map[string]any{
			"metadata": map[string]any{"name": name, "namespace": "default", "uid": name, "creationTimestamp": start.Add(-time.Duration(age) * time.Second)},
			"status":   map[string]any{"phase": strings.Split(status, " ")[0], "reason": strings.TrimSpace(strings.TrimPrefix(status, strings.Split(status, " ")[0]))},
		})
		memory.Index.Put(store.Latest().Get(key))
	}
	sweep := func(after time.Duration) (out []string) {
		turn := memory.Begin(store.Latest(), start.Add(after))
		c.Sweep(turn)
		for _, r := range turn.Requests {
			out = append(out, r.Method+" "+r.Path[strings.LastIndex(r.Path, "/")+1:])
		}
		return out
	}
	for i := range mostEnded {
		write(fmt.Sprintf("p%05d", i), i, "Succeeded")
	}
	write("running", 100_000, "Running")
	if got := sweep(0); got != nil {
		t.Errorf("of %d: %v", mostEnded, got)
	}
	write("new", 0, "Failed")
	write("evicted", 0, "Failed Evicted")
	want := fmt.Sprint([]string{"DELETE evicted", fmt.Sprintf("DELETE p%05d", mostEnded-1)})
	if got := sweep(0); fmt.Sprint(got) != want {
		t.Errorf("of two too many: %v, want %v", got, want)
	}
	if got := sweep(19 * time.Second); got != nil || memory.Timers[Ended()] != start.Add(20*time.Second) {
		t.Errorf("19 s later: %v, and looks again at %v", got, memory.Timers[Ended()])
	}
	if got := sweep(20 * time.Second); fmt.Sprint(got) != want {
		t.Errorf("20 s later: %v, want %v", got, want)
	}
}
