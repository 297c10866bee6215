// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager/internal/metrics"
	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

// info is a controller whose queue is as it says.
type info struct {
	name  string
	stats queue.Stats
}

func (i info) Name() string            { return i.name }
func (i info) Example() client.Object  { return nil }
func (i info) Concurrency() int        { return 4 }
func (i info) Stats() queue.Stats      { return i.stats }
func (i info) Queued(int) trace.Queued { return trace.Queued{} }

func TestReconcilesAreCountedByOutcome(t *testing.T) {
	t.Parallel()
	const (
		total    = "controller_runtime_reconcile_total"
		failures = "controller_runtime_reconcile_errors_total"
	)
	for outcome, want := range map[trace.Outcome]map[string]string{
		trace.Done:       {total: "controller=web,result=success 1"},
		trace.Requeued:   {total: "controller=web,result=requeue_after 1"},
		trace.Again:      {total: "controller=web,result=requeue 1"},
		trace.Conflicted: {total: "controller=web,result=requeue 1"},
		trace.Stopped:    {},
		trace.Failed:     {total: "controller=web,result=error 1", failures: "controller=web 1"},
		trace.GaveUp:     {total: "controller=web,result=error 1", failures: "controller=web 1"},
		trace.Terminal: {
			total: "controller=web,result=error 1", failures: "controller=web 1",
			"controller_runtime_terminal_reconcile_errors_total": "controller=web 1",
		},
		trace.Panicked: {
			total: "controller=web,result=error 1", failures: "controller=web 1",
			"controller_runtime_reconcile_panics_total": "controller=web 1",
		},
		trace.TimedOut: {
			total: "controller=web,result=error 1", failures: "controller=web 1",
			"controller_runtime_reconcile_timeouts_total": "controller=web 1",
		},
	} {
		t.Run(outcome.String(), func(t *testing.T) {
			t.Parallel()
			m := metrics.New()
			instruments, err := m.Controller(info{name: "web"})
			if err != nil {
				t.Fatal(err)
			}
			instruments.Reconciled(outcome, 2*time.Second)
			for _, name := range []string{
				total, failures, "controller_runtime_terminal_reconcile_errors_total",
				"controller_runtime_reconcile_panics_total", "controller_runtime_reconcile_timeouts_total",
			} {
				if series := want[name]; series != "" {
					expect(t, m, name, series)
				} else {
					expect(t, m, name)
				}
			}
			expect(t, m, "controller_runtime_reconcile_time_seconds", "controller=web 1 2")
		})
	}
}

func TestSeriesOfAControllerExistFromTheStart(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	if _, err := m.Controller(info{name: "web"}); err != nil {
		t.Fatal(err)
	}
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, f := range families {
		got[f.GetName()] = len(f.GetMetric())
	}
	for name, series := range map[string]int{
		"controller_runtime_reconcile_total": 4, "controller_runtime_reconcile_errors_total": 1,
		"controller_runtime_terminal_reconcile_errors_total": 1, "controller_runtime_reconcile_panics_total": 1,
		"controller_runtime_reconcile_timeouts_total": 1, "controller_runtime_reconcile_time_seconds": 1,
		"workqueue_queue_duration_seconds": 1, "workqueue_work_duration_seconds": 1, "workqueue_depth": 1,
	} {
		if got[name] != series {
			t.Errorf("%s has %d series, want %d", name, got[name], series)
		}
	}
}

func TestQueueOfAControllerIsMeasured(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	instruments, err := m.Controller(info{"web", queue.Stats{
		Adds: 9, Retries: 3, Running: 2, Unfinished: 5 * time.Second, Longest: 4 * time.Second,
		Depth: []queue.Depth{{Priority: -100, Keys: 6}, {Priority: 0, Keys: 1}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	instruments.Waited(time.Second)
	instruments.Worked(2 * time.Second)
	for name, want := range map[string][]string{
		"workqueue_adds_total":                         {"controller=web,name=web 9"},
		"workqueue_retries_total":                      {"controller=web,name=web 3"},
		"workqueue_unfinished_work_seconds":            {"controller=web,name=web 5"},
		"workqueue_longest_running_processor_seconds":  {"controller=web,name=web 4"},
		"workqueue_depth":                              {"controller=web,name=web,priority=-100 6", "controller=web,name=web,priority=0 1"},
		"workqueue_queue_duration_seconds":             {"controller=web,name=web 1 1"},
		"workqueue_work_duration_seconds":              {"controller=web,name=web 1 2"},
		"controller_runtime_active_workers":            {"controller=web 2"},
		"controller_runtime_max_concurrent_reconciles": {"controller=web 4"},
	} {
		expect(t, m, name, want...)
	}
}

func TestPrioritiesBeyondTheLimitShareASeries(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	var stats queue.Stats
	var want []string
	for i := range 30 {
		stats.Depth = append(stats.Depth, queue.Depth{Priority: i, Keys: i + 1})
		if i < 25 {
			want = append(want, fmt.Sprintf("controller=web,name=web,priority=%d %d", i, i+1))
		}
	}
	if _, err := m.Controller(info{"web", stats}); err != nil {
		t.Fatal(err)
	}
	want = append(want, "controller=web,name=web,priority=exceeded_cardinality_limit 140") // 26 to 30
	slices.Sort(want)
	expect(t, m, "workqueue_depth", want...)
}

func TestControllersOfOneNameAreRefused(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	if _, err := m.Controller(info{name: "web"}); err != nil {
		t.Fatal(err)
	}
	_, err := m.Controller(info{name: "web"})
	if err == nil || !strings.Contains(err.Error(), `named "web"`) {
		t.Errorf("a second controller of the name: %v", err)
	}
	if _, err := m.Controller(info{name: "other"}); err != nil {
		t.Error(err)
	}
}
