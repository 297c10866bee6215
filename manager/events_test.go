// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/controller"
)

// TestEventsDelayNothingWhileTheServerTakesNone records more events than may wait while
// the API server does not answer.
func TestEventsDelayNothingWhileTheServerTakesNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		answers, sent := make(chan struct{}), 0
		slow := interceptor.New(nil, interceptor.Funcs{
			Create: func(ctx context.Context, _ client.Client, _ client.Object, _ ...client.WriteOption) error {
				select {
				case <-answers:
					sent++
				case <-ctx.Done():
				}
				return ctx.Err()
			},
		})
		var log bytes.Buffer // written by Record alone
		r := newRecorder(slow, scheme, "operator", "one", slog.New(slog.NewTextHandler(&log, nil)))
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { r.run(ctx) })
		record := func(i int) {
			r.Record(controller.UserEvent{
				Regarding: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("pod-", i)}}, Reason: "Seen",
			})
		}
		record(0)
		time.Sleep(2 * gathering) // the sender waits for the answer to it
		const more = 100
		for i := range eventBacklog + more {
			record(1 + i)
		}
		if n := r.dropped.Load(); n != more {
			t.Errorf("%d were dropped, want %d", n, more)
		}
		if n := strings.Count(log.String(), "events are dropped"); n == 0 || n > 8 || !strings.Contains(log.String(), "emit events on transitions") {
			t.Errorf("%d lines about it, want a few with advice: %s", n, log.String())
		}
		close(answers)
		if err := r.Idle(t.Context()); err != nil {
			t.Fatal(err)
		}
		if sent != 1+eventBacklog {
			t.Errorf("%d were sent, want the %d that were not dropped", sent, 1+eventBacklog)
		}
		stop()
		running.Wait()
	})
}

// eventServer takes events and notes what is written of them.
type eventServer struct {
	mu      sync.Mutex
	created []string
	counts  []string
}

// RoundTrip implements http.RoundTripper.
func (s *eventServer) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	answer := `{"kind":"APIResourceList","groupVersion":"events.k8s.io/v1","resources":[{"name":"events","kind":"Event","namespaced":true,"verbs":["create"]}]}`
	switch r.URL.Path {
	case "/api":
		answer = `{"kind":"APIVersions","versions":["v1"]}`
	case "/apis":
		answer = `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"events.k8s.io","versions":[{"groupVersion":"events.k8s.io/v1","version":"v1"}]}]}`
	}
	form := "application/json"
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodPost:
		s.created = append(s.created, string(body))
		answer, form = string(body), r.Header.Get("Content-Type")
	case http.MethodPatch:
		s.counts = append(s.counts, string(body))
		answer = `{"kind":"Event","apiVersion":"events.k8s.io/v1"}`
	}
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {form}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r,
	}, nil
}

// TestWhatIsToldWhileStoppingIsSent has a part that is told to stop, takes its time
// and has something to tell then; and a series that ended between two counts that
// are written.
func TestWhatIsToldWhileStoppingIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		server := &eventServer{}
		m, err := New(&rest.Config{Host: "http://server", Transport: server}, Options{Name: "operator", Scheme: scheme, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		tell := func(reason string) {
			m.events.Record(controller.UserEvent{
				Regarding: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}, Reason: reason,
			})
		}
		err = m.Add(RunnableFunc(func(ctx context.Context) error {
			for range 7 {
				tell("Repeated")
			}
			<-ctx.Done()
			time.Sleep(time.Second)
			tell("Stopped")
			return nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		if err := m.Start(ctx); err != nil {
			t.Fatal(err)
		}
		if n := len(server.created); n != 2 || !strings.Contains(server.created[1], "Stopped") {
			t.Errorf("%d events, want those of both reasons: %q", n, server.created)
		}
		var counts []string
		for _, c := range server.counts {
			var patch struct{ Series struct{ Count int } }
			if err := json.Unmarshal([]byte(c), &patch); err != nil {
				t.Fatal(err)
			}
			counts = append(counts, fmt.Sprint(patch.Series.Count))
		}
		if got := strings.Join(counts, " "); got != "2 4 7" {
			t.Errorf("the counts that were written are %s, want 2 4 7", got)
		}
	})
}

// TestEventsOfTwoRecordersHaveNamesOfTheirOwnWhereTheClockStands runs recorders one
// after the other at one moment, as a test under testing/synctest does.
func TestEventsOfTwoRecordersHaveNamesOfTheirOwnWhereTheClockStands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		scheme, err := client.NewScheme(corev1.AddToScheme)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		server := interceptor.New(nil, interceptor.Funcs{
			Create: func(_ context.Context, _ client.Client, obj client.Object, _ ...client.WriteOption) error {
				if names[obj.GetName()] {
					return apierrors.NewAlreadyExists(schema.GroupResource{Group: "events.k8s.io", Resource: "events"}, obj.GetName())
				}
				names[obj.GetName()] = true
				return nil
			},
		})
		var log bytes.Buffer
		at := time.Now()
		const recorders, notes = 3, 20
		for range recorders {
			r := newRecorder(server, scheme, "operator", "one", slog.New(slog.NewTextHandler(&log, nil)))
			for i := range notes {
				r.send(t.Context(), &note{at: at, key: seriesKey{reason: fmt.Sprint("Reason", i), regarding: corev1.ObjectReference{Name: "pod"}}})
			}
		}
		if len(names) != recorders*notes || log.Len() > 0 {
			t.Errorf("%d events of %d, and the log says %s", len(names), recorders*notes, log.String())
		}
	})
}

func TestOnlyMissingRightsAreToldAsSuch(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := newRecorder(nil, nil, "operator", "one", slog.New(slog.NewTextHandler(&log, nil)))
	r.report(apierrors.NewAlreadyExists(schema.GroupResource{Resource: "events"}, "x"))
	if text := log.String(); text == "" || strings.Contains(text, "service account") {
		t.Error(text)
	}
	r.report(apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", nil))
	if text := log.String(); !strings.Contains(text, "needs create and patch") {
		t.Error(text)
	}
}
