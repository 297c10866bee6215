// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package feed

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/trace"
)

func TestFeedCountsByController(t *testing.T) {
	t.Parallel()
	f := &Feed{changed: func() {}}
	demo := trace.Object{Kind: "Guestbook", Namespace: "default", Name: "demo"}
	for i, outcome := range []trace.Outcome{trace.Done, trace.Failed, trace.Requeued, trace.Conflicted} {
		r := trace.Record{Controller: "guestbook", Object: demo, Outcome: outcome, Took: time.Duration(i+1) * time.Millisecond}
		if outcome == trace.Failed {
			r.Error = "no such host"
			f.Add(r)
			if got := f.Failures(); len(got) != 1 || got[0] != "default/demo: no such host" {
				t.Errorf("failures: %q", got)
			}
			continue
		}
		r.Causes = []trace.Cause{{Type: trace.Updated, Object: demo, Changed: "spec.replicas"}}
		f.Add(r)
	}
	if got := f.Failures(); len(got) != 0 {
		t.Errorf("failures after a success: %q", got)
	}
	if err := f.readQueued(strings.NewReader(`{"controller":"guestbook","ready":[{"object":{"name":"demo"},"at":"2026-01-01T00:00:00Z"}],"allReady":5}` + "\n")); err != nil {
		t.Fatal(err)
	}
	author := func(c trace.Cause) string { return map[string]string{"spec.replicas": "kubectl"}[c.Changed] }
	if got, want := f.Rows(author), (screen.Row{Controller: "guestbook", Queue: 5, OK: 2, Errors: 1, Median: 3 * time.Millisecond, Cause: "spec.replicas by kubectl"}); len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	subjects, items, latest := f.Subjects()
	if len(subjects) != 1 || latest != subjects[0] || latest.String() != "Guestbook default/demo" || items[0].Count != 4 {
		t.Errorf("got %v, %+v, the latest %v", subjects, items, latest)
	}
	if lines := f.Reconciles(latest); len(lines) != 4 {
		t.Errorf("got %q", lines)
	}
}

func TestFeedShowsWhatRunsForLong(t *testing.T) {
	t.Parallel()
	changes := 0
	f := &Feed{changed: func() { changes++ }}
	for _, step := range []struct {
		took time.Duration
		want string
	}{{500 * time.Millisecond, ""}, {90 * time.Second, "Web default/a: running for 1m30s at /shop/web.go:9"}} {
		var body strings.Builder
		record := trace.Record{
			Controller: "webs", Object: trace.Object{Kind: "Web", Namespace: "default", Name: "a"}, Outcome: trace.Running, Took: step.took,
			Stack: "goroutine 4 [sleep]:\ntime.Sleep(1)\n\t/go/src/time/sleep.go:1\nexample.com/shop.(*R).Reconcile(...)\n\t/shop/web.go:9 +0x1",
		}
		if err := trace.WriteJSON(&body, slices.Values([]trace.Record{record})); err != nil {
			t.Fatal(err)
		}
		if err := f.readRunning(strings.NewReader(body.String())); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(f.Running(), "\n"); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
	if err := f.readRunning(strings.NewReader("")); err != nil || f.Running() != nil || changes != 3 {
		t.Errorf("after its end: %v, %q, %d changes", err, f.Running(), changes)
	}
}

func TestFeedListsWhatWasReconciled(t *testing.T) {
	t.Parallel()
	f := &Feed{changed: func() {}}
	began := time.Date(2026, 11, 27, 10, 0, 0, 0, time.Local)
	pod := trace.Object{Kind: "Pod", Namespace: "default", Name: "b"}
	for i, r := range []trace.Record{
		{Controller: "pods", Object: pod, Outcome: trace.Done},
		{Controller: "nightly", Request: "report", Outcome: trace.Done},
		{Controller: "names", Object: pod, Outcome: trace.Failed},
		{Controller: "pods", Object: trace.Object{Kind: "Pod", Namespace: "default", Name: "a"}, Outcome: trace.Done},
	} {
		r.Began = began.Add(time.Duration(i) * time.Second)
		f.Add(r)
	}
	subjects, items, latest := f.Subjects()
	want := []screen.Item{
		{Object: "Pod default/a", Count: 1, Last: "10:00:03", Outcome: "done"},
		{Object: "Pod default/b", Count: 2, Last: "10:00:02", Outcome: "failed"},
		{Object: "nightly report", Count: 1, Last: "10:00:01", Outcome: "done"},
	}
	if diff := cmp.Diff(want, items); diff != "" {
		t.Errorf("items (-want +got):\n%s", diff)
	}
	if latest != subjects[0] || subjects[1].Object != pod || subjects[2].Object != (trace.Object{}) {
		t.Errorf("subjects %v, the latest %v", subjects, latest)
	}
	if lines := f.Reconciles(subjects[1]); len(lines) != 2 || !strings.HasPrefix(lines[0], "10:00:00 pods ") || !strings.HasPrefix(lines[1], "10:00:02 names ") {
		t.Errorf("of Pod b: %q", lines)
	}
	if all := f.Records(); len(all) != 4 {
		t.Errorf("%d records", len(all))
	}
}

// TestFeedFollowsAnOperator that does not serve at first, that repeats in its stream what it
// has listed, and whose stream ends, so that it is asked for what it keeps once more.
func TestFeedFollowsAnOperator(t *testing.T) {
	t.Parallel()
	demo := trace.Object{Kind: "Guestbook", Namespace: "default", Name: "demo"}
	record := func(id uint64) trace.Record {
		return trace.Record{ID: trace.ID{Number: id}, Controller: "guestbook", Object: demo, Outcome: trace.Done, Took: time.Millisecond}
	}
	// What it keeps and what comes by the number of the connection; there is none at first.
	kept := [][]trace.Record{{}, {record(1), record(3)}, {record(1), record(3), record(2), record(4)}}
	coming := [][]trace.Record{{}, {record(3), record(2)}, {record(4), record(5)}}
	var connections atomic.Int32
	var operator http.ServeMux
	operator.HandleFunc("/debug/reconciles", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("queued") {
			fmt.Fprintln(w, `{"controller":"guestbook","allReady":7}`)
			return
		}
		records := kept[max(connections.Load()-1, 0)]
		if r.URL.Query().Has("follow") {
			n := connections.Add(1) - 1
			if n == 0 {
				http.Error(w, "it starts", http.StatusServiceUnavailable)
				return
			}
			records = coming[n]
			if n == 2 {
				defer func() { <-r.Context().Done() }()
			}
		}
		for _, r := range records {
			if err := json.NewEncoder(w).Encode(r); err != nil {
				t.Error(err)
			}
		}
		w.(http.Flusher).Flush()
	})
	server := httptest.NewServer(&operator)
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	changed := make(chan struct{}, 1)
	f := &Feed{debug: address, metrics: address, changed: func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}}
	f.Add(trace.Record{Controller: "of the operator before"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan struct{})
	go func() { defer close(ended); f.Follow(ctx) }()
	complete := func() bool { // the last record has come, and the depth of the queue
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.records) > 0 && f.records[len(f.records)-1].ID.Number == 5 && f.of("guestbook").queue > 0
	}
	for !complete() {
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatal("the last record has not come")
		}
	}
	want := []screen.Row{{Controller: "guestbook", Queue: 7, OK: 5, Median: time.Millisecond}}
	if got, _ := f.counts(); !cmp.Equal(want, got) {
		t.Errorf("rows (-want +got):\n%s", cmp.Diff(want, got))
	}
	cancel()
	<-ended
	wantFlags := []string{"--pprof-bind-address=" + address, "--metrics-bind-address=" + address, "--metrics-secure=false"}
	if diff := cmp.Diff(wantFlags, f.Arguments()); diff != "" {
		t.Errorf("flags of the operator (-want +got):\n%s", diff)
	}
}

func TestFeedKeepsTheLatestRecords(t *testing.T) {
	t.Parallel()
	f := &Feed{changed: func() {}}
	for i := range keptRecords + 5 {
		f.Add(trace.Record{Controller: "a", Object: trace.Object{Name: fmt.Sprint(i)}, Outcome: trace.Failed, Error: "broken", Took: time.Duration(i)})
	}
	failures := f.Failures()
	if len(failures) != keptRecords || failures[0] != "5: broken" {
		t.Errorf("%d failures from %q, want %d from the sixth", len(failures), failures[0], keptRecords)
	}
	const all = keptRecords + 5
	rows, _ := f.counts()
	if want := (screen.Row{Controller: "a", Errors: all, Median: all - keptTimes/2}); rows[0] != want {
		t.Errorf("row %+v, want %+v: the median is of the last %d", rows[0], want, keptTimes)
	}
}

func TestCauseOfAReconcileInWords(t *testing.T) {
	t.Parallel()
	pod := trace.Object{Kind: "Pod", Namespace: "default", Name: "a"}
	for want, cause := range map[string]trace.Cause{
		"":                     {},
		"spec.replicas":        {Type: trace.Updated, Object: pod, Changed: "spec.replicas"},
		trace.Created.String(): {Type: trace.Created},
		trace.Deleted.String() + " Pod default/a": {Type: trace.Deleted, Object: pod},
	} {
		if got := causeOf(cause); got != want {
			t.Errorf("%+v: %q, want %q", cause, got, want)
		}
	}
}

func TestAuthorIsTheLastManagerOfTheField(t *testing.T) {
	t.Parallel()
	entry := func(manager, fields string, second int) metav1.ManagedFieldsEntry {
		at := metav1.NewTime(time.Unix(int64(second), 0))
		return metav1.ManagedFieldsEntry{Manager: manager, Time: &at, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	entries := []metav1.ManagedFieldsEntry{
		entry("kubectl", `{"f:spec":{"f:replicas":{},"f:items":{"k:{\"name\":\"a\"}":{"f:port":{}}}}}`, 2),
		entry("first", `{"f:spec":{"f:replicas":{},"f:size":{}}}`, 1),
		entry("operator", `{"f:status":{"f:replicas":{}}}`, 3),
	}
	for field, want := range map[string]string{
		"spec.replicas": "kubectl", "spec.size": "first", "spec.items[0].port": "kubectl", "status.replicas": "operator", "spec.other": "",
	} {
		if got := managerOf(entries, field); got != want {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
}
