// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/trace"
)

// TestFeedFollowsAnOperator that does not serve at first, and that repeats in its stream
// what it has listed.
func TestFeedFollowsAnOperator(t *testing.T) {
	t.Parallel()
	demo := trace.Object{Kind: "Guestbook", Namespace: "default", Name: "demo"}
	record := func(id trace.ID) trace.Record {
		return trace.Record{ID: id, Controller: "guestbook", Object: demo, Outcome: trace.Done, Took: time.Millisecond}
	}
	var requests atomic.Int32
	var operator http.ServeMux
	operator.HandleFunc("/debug/reconciles", func(w http.ResponseWriter, r *http.Request) {
		records := []trace.Record{record(1), record(2)}
		if follow := r.URL.Query().Has("follow"); follow {
			if requests.Add(1) == 1 {
				http.Error(w, "it starts", http.StatusServiceUnavailable)
				return
			}
			records = []trace.Record{record(2), record(3)}
			defer func() { <-r.Context().Done() }()
		}
		for _, r := range records {
			if err := json.NewEncoder(w).Encode(r); err != nil {
				t.Error(err)
			}
		}
		w.(http.Flusher).Flush()
	})
	operator.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `workqueue_depth{controller="guestbook",name="guestbook",priority="0"} 7`)
	})
	server := httptest.NewServer(&operator)
	t.Cleanup(server.Close)
	address := strings.TrimPrefix(server.URL, "http://")
	changed := make(chan struct{}, 1)
	f := &feed{debug: address, metrics: address, changed: func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}}
	f.add(trace.Record{Controller: "of the operator before"})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan struct{})
	go func() { defer close(ended); f.follow(ctx) }()
	want := []screen.Row{{Controller: "guestbook", Queue: 7, OK: 3, Median: time.Millisecond}}
	for got := []screen.Row(nil); !cmp.Equal(want, got); got, _ = f.counts() {
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("rows (-want +got):\n%s", cmp.Diff(want, got))
		}
	}
	cancel()
	<-ended
	wantFlags := []string{"--pprof-bind-address=" + address, "--metrics-bind-address=" + address, "--metrics-secure=false"}
	if diff := cmp.Diff(wantFlags, f.arguments()); diff != "" {
		t.Errorf("flags of the operator (-want +got):\n%s", diff)
	}
}

func TestFeedKeepsTheLatestRecords(t *testing.T) {
	t.Parallel()
	f := &feed{changed: func() {}}
	for i := range keptRecords + 5 {
		f.add(trace.Record{Controller: "a", Object: trace.Object{Name: fmt.Sprint(i)}, Outcome: trace.Failed, Error: "broken", Took: time.Duration(i)})
	}
	failures := f.failures()
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

func TestAuthorIsReadFromTheObjectOnce(t *testing.T) {
	t.Parallel()
	plane, stop, err := StartPlane(t.Context(), controlplane.Options{Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	scheme, err := client.NewScheme(corev1.AddToScheme)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(plane.RESTConfig(), client.Options{Scheme: scheme, FieldOwner: "jane"})
	if err != nil {
		t.Fatal(err)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "demo"}, Data: map[string]string{"colour": "red"}}
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	demo := trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "demo"}
	a := &authors{client: c}
	for name, c := range map[string]struct {
		cause trace.Cause
		want  string
	}{
		"of a field":                  {trace.Cause{Object: demo, Changed: "data.colour,data.size"}, "jane"},
		"of a field without a writer": {trace.Cause{Object: demo, Changed: "data.size"}, ""},
		"of no field":                 {trace.Cause{Object: demo}, ""},
		"of no object":                {trace.Cause{Object: trace.Object{Kind: "ConfigMap"}, Changed: "data.colour"}, ""},
		"of an absent object":         {trace.Cause{Object: trace.Object{Kind: "ConfigMap", Namespace: "default", Name: "absent"}, Changed: "data.colour"}, ""},
		"of an unknown kind":          {trace.Cause{Object: trace.Object{Kind: "Absent", Namespace: "default", Name: "demo"}, Changed: "data.colour"}, ""},
	} {
		if got := a.of(t.Context(), c.cause); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if err := c.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if got := a.of(t.Context(), trace.Cause{Object: demo, Changed: "data.colour,data.size", Count: 3}); got != "jane" {
		t.Errorf("once the object is deleted: %q, want jane as before", got)
	}
}

func TestLiveDrawsWhatTheOperatorPrints(t *testing.T) {
	t.Parallel()
	v, err := newLive(screen.Screen{Project: "guestbook", View: screen.Log})
	if err != nil {
		t.Fatal(err)
	}
	log := v.log()
	for i := range keptLines + 3 {
		fmt.Fprintf(log, "line %d\n", i)
	}
	fmt.Fprint(log, "not complete")
	if got := v.snapshot().Log; len(got) != keptLines || got[0] != "line 3" || got[keptLines-1] != fmt.Sprintf("line %d", keptLines+2) {
		t.Errorf("%d lines from %q to %q are kept", len(got), got[0], got[len(got)-1])
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "terminal"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = out.Close() })
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	terminal := &Terminal{In: out, Out: out, NoColor: true}
	v.draw(ended, terminal)
	drawn, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	// A file has no size: it is drawn as a terminal of 80 by 24.
	shown := v.snapshot()
	want := "\x1b[H" + strings.Join(shown.Render(80, 24, false), "\x1b[K\r\n") + "\x1b[K\x1b[J"
	if diff := cmp.Diff(want, string(drawn)); diff != "" {
		t.Errorf("drawn (-want +got):\n%s", diff)
	}
	if !strings.Contains(want, "guestbook") || !strings.Contains(want, fmt.Sprintf("line %d", keptLines+2)) {
		t.Errorf("drawn: %q", want)
	}
	if _, err := v.show(t.Context(), terminal, nil, nil); err == nil || !strings.Contains(err.Error(), "set the terminal up") {
		t.Errorf("a file as the terminal: %v", err)
	}
}

func TestWebhooksOfAnOperatorAtABreakpointGetTheLongestTime(t *testing.T) {
	t.Parallel()
	hooks := map[string]any{"webhooks": []any{map[string]any{"name": "a", "timeoutSeconds": int64(5)}, map[string]any{"name": "b"}}}
	service := map[string]any{"kind": "Service"}
	bePatient([]manifest.Object{{Unstructured: &unstructured.Unstructured{Object: hooks}}, {Unstructured: &unstructured.Unstructured{Object: service}}})
	want := map[string]any{"webhooks": []any{
		map[string]any{"name": "a", "timeoutSeconds": int64(30)}, map[string]any{"name": "b", "timeoutSeconds": int64(30)},
	}}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"kind": "Service"}, service); diff != "" {
		t.Errorf("another object (-want +got):\n%s", diff)
	}
}
