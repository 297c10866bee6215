// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

// attempts notes one that fails for each of the names.
func attempts(recorder *trace.Recorder, names ...string) {
	for _, name := range names {
		var a trace.Active
		recorder.Begin(&a, trace.Start{Controller: "shop", Object: trace.Object{Group: "example.com", Kind: "Shop", Namespace: "default", Name: name}, Began: time.Now(), Retries: 9})
		a.End(trace.End{Outcome: trace.Failed, Err: os.ErrNotExist})
	}
}

// says is what a page of places says in a view.
func says(t *testing.T, page http.Handler, at string) string {
	t.Helper()
	answer := httptest.NewRecorder()
	page.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("%s: %d", at, answer.Code)
	}
	return answer.Body.String()
}

func TestPageShowsWhatAnOperatorHasLeft(t *testing.T) {
	t.Parallel()
	recorder := trace.NewRecorder(trace.Options{})
	attempts(recorder, "bakery")
	records := slices.Collect(recorder.Records())
	write := func(name string, to func(*os.File) error) string {
		file, err := os.Create(filepath.Join(t.TempDir(), name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if err := to(file); err != nil {
			t.Fatal(err)
		}
		return file.Name()
	}
	dir := t.TempDir()
	writer := recording.NewWriter(recorder, recording.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err := writer.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := writer.Stop(); err != nil {
		t.Fatal(err)
	}
	for name, place := range map[string]string{
		"a failed test": write("test.jsonl", func(f *os.File) error { return (&versions.File{Records: records}).Write(f) }),
		"a page":        write("records.jsonl", func(f *os.File) error { return trace.WriteJSON(f, slices.Values(records)) }),
		"a directory":   dir,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page, err := (&options{}).page(t.Context(), []string{place})
			if err != nil {
				t.Fatal(err)
			}
			if got := says(t, page, "/"); !strings.Contains(got, "1 thing needs you.") || !strings.Contains(got, "bakery") {
				t.Errorf("the page says:\n%s", got)
			}
			history := says(t, page, "/object?group=example.com&kind=Shop&namespace=default&name=bakery&view=history")
			if known := strings.Contains(history, "nothing is known of a former one"); known != (name == "a failed test") {
				t.Errorf("the history says:\n%s", history)
			}
		})
	}
}

func TestPageOfAProjectBeginsBeforeThereAreRecords(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "records")
	s := ProjectSource(dir, nil)
	count := func() (n int) {
		for range s.New() {
			n++
		}
		return n
	}
	if n := count(); n != 0 {
		t.Errorf("without a directory there are %d records", n)
	}
	for start := range 2 { // of an operator
		recorder := trace.NewRecorder(trace.Options{})
		writer := recording.NewWriter(recorder, recording.Options{Dir: dir, Log: slog.New(slog.DiscardHandler)})
		if err := writer.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		attempts(recorder, "a", "b")
		if err := writer.Stop(); err != nil {
			t.Fatal(err)
		}
		if n, again := count(), count(); n != 2 || again != 0 {
			t.Errorf("start %d of the operator gives %d records, and %d again", start, n, again)
		}
	}
	if trouble := s.Now().Trouble; trouble != "" {
		t.Errorf("it could not read: %s", trouble)
	}
}

func TestWhatCannotBeReadIsSaidOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "records")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := ProjectSource(dir, nil)
	looks := func() {
		for range s.New() {
			t.Error("there is a record")
		}
	}
	looks()
	if err := errors.Join(os.Remove(dir), os.WriteFile(dir, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	looks()
	first := s.Now().Trouble
	looks() // a page looks again and again
	if again := s.Now().Trouble; first == "" || again != first {
		t.Errorf("it says %q, and then %q", first, again)
	}
}

// crowd is a source of objects alone.
type crowd struct {
	versions.Source
	objects []versions.Object
	asked   int
}

func (c *crowd) All(context.Context, string) ([]versions.Object, []string) {
	c.asked++
	return c.objects, []string{"secrets"}
}

func TestObjectsThatAreNotReadyAreListedFirst(t *testing.T) {
	t.Parallel()
	c := &crowd{}
	for i, status := range []string{"True", "False", "", "True"} {
		o := versions.Object{Object: trace.Object{Kind: "Shop", Name: strconv.Itoa(i)}, Content: map[string]any{"metadata": map[string]any{"creationTimestamp": fmt.Sprintf("2026-01-0%dT00:00:00Z", i+1)}}}
		if status != "" {
			o.Content["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status}}}
		}
		c.objects = append(c.objects, o)
	}
	p := &Plane{Connect: func(context.Context) (versions.Source, error) { return c, nil }}
	for range 2 { // at once, so that the list serves again
		list, err := p.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		names := ""
		for i := range list.Nodes {
			names += list.Nodes[i].Object.Name
		}
		if names != "1320" || !list.Nodes[0].NotReady || list.Nodes[1].State != "Ready=True" || len(list.Missing) != 1 || c.asked != 1 {
			t.Errorf("listed are %s, asked %d times: %+v", names, c.asked, list)
		}
	}
}

func TestPageSaysWhatItCannotOpen(t *testing.T) {
	t.Parallel()
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("a text\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cut := filepath.Join(t.TempDir(), "cut")
	if err := os.WriteFile(cut, []byte(`{"format":"steer.dev/versions","version":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{other: "is no record", cut: "it was cut", filepath.Join(t.TempDir(), "none"): "no such file"} {
		if _, err := (&options{}).page(t.Context(), []string{place}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", place, err, want)
		}
	}
}
