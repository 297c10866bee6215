// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/scaffold/project"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

func TestPageOfDevOutlivesTheOperator(t *testing.T) {
	t.Parallel()
	l := &loop{Options: Options{Dir: t.TempDir()}, project: &project.Project{Name: "guestbook"}}
	at, stop, err := l.servePage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	browser := &http.Client{Jar: jar, Transport: &http.Transport{}}
	get := func() string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := browser.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK {
			t.Fatalf("%d: %s: %v", answer.StatusCode, text, err)
		}
		return string(text)
	}
	defer browser.CloseIdleConnections()
	if got := get(); !strings.Contains(got, "guestbook") || !strings.Contains(got, "Nothing has been reconciled yet") {
		t.Errorf("before the operator runs the page says:\n%s", got)
	}
	for _, name := range []string{"first", "second"} { // operators, one after the other
		recorder := trace.NewRecorder(trace.Options{})
		writer := recording.NewWriter(recorder, recording.Options{Dir: filepath.Join(l.Dir, filepath.FromSlash(project.RecordsDir)), Log: slog.New(slog.DiscardHandler)})
		if err := writer.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		var a trace.Active
		recorder.Begin(&a, trace.Start{Controller: "guestbook", Object: trace.Object{Kind: "Guestbook", Name: name}, Began: time.Now()})
		a.End(trace.End{Outcome: trace.Terminal})
		if err := writer.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if got := get(); !strings.Contains(got, "2 things need you.") || !strings.Contains(got, "first") || !strings.Contains(got, "second") {
		t.Errorf("after two operators the page says:\n%s", got)
	}
}
