// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"bufio"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/trace"
	"github.com/steer-dev/steer/trace/recording"
)

var web = trace.Object{Group: "example.com", Kind: "Web", Namespace: "shop", Name: "a"}

// reconcile records reconciles of an object that began at a second.
func reconcile(r *trace.Recorder, at int64, object trace.Object, times int) {
	for range times {
		var a trace.Active
		r.Begin(&a, trace.Start{Controller: "web", Object: object, Began: time.Unix(at, 0), Causes: &trace.Causes{}})
		a.End(trace.End{Outcome: trace.Done})
	}
}

// keep writes the records of a recorder to a directory, which it returns.
func keep(t *testing.T, r *trace.Recorder, dir string) {
	t.Helper()
	w := recording.NewWriter(r, recording.Options{Dir: dir})
	if err := w.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
}

// ask returns the numbers of the records in an answer.
func ask(t *testing.T, records Records, query string) (numbers []uint64, answer *httptest.ResponseRecorder) {
	t.Helper()
	answer = httptest.NewRecorder()
	Handler(t.Context(), records, nil).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/debug/reconciles"+query, nil))
	if answer.Code != http.StatusOK {
		return nil, answer
	}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		var record trace.Record
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, record.ID.Number)
	}
	return numbers, answer
}

// TestRecordsAboutAnObjectAreOfFilesAndMemory: those of a former process come first, and what
// is in both is there once.
func TestRecordsAboutAnObjectAreOfFilesAndMemory(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	former, recorder := trace.NewRecorder(trace.Options{}), trace.NewRecorder(trace.Options{})
	other := web
	other.Name = "b"
	reconcile(former, 1, web, 2)
	reconcile(former, 1, other, 1)
	keep(t, former, dir)
	reconcile(recorder, 2, other, 3)
	reconcile(recorder, 2, web, 1)
	keep(t, recorder, dir)
	reconcile(recorder, 2, web, 1)

	const object = "?kind=Web&group=example.com&namespace=shop&name=a"
	var log strings.Builder
	kept := Records{Recorder: recorder, Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))}
	for _, c := range []struct {
		records Records
		query   string
		want    []uint64
		places  string
		left    string
	}{
		{kept, object, []uint64{1, 2, 4, 5}, "memory, files", "0"},
		{Records{Recorder: recorder}, object, []uint64{4, 5}, "memory", "0"},
		{kept, "", []uint64{1, 2, 3, 4, 5}, "memory, files", ""}, // of this process
		{kept, "?kind=Web&name=a", nil, "memory, files", "0"},    // in another group
		{kept, object + "&name=b&name=none", []uint64{1, 2, 4, 5, 3, 1, 2, 3}, "memory, files", "0"},
		{Records{Recorder: recorder, Dir: dir, Log: kept.Log, most: 4}, object + "&name=b", []uint64{4, 5, 2, 3}, "memory, files", "4"},
		{Records{Recorder: recorder, Dir: dir, Log: kept.Log, most: 3}, object, []uint64{2, 4, 5}, "memory, files", "1"},
	} {
		got, answer := ask(t, c.records, c.query)
		if !slices.Equal(got, c.want) || answer.Header().Get("Steer-Records") != c.places || answer.Header().Get("Steer-Left-Out") != c.left {
			t.Errorf("%q: records %v, want %v; header %v", c.query, got, c.want, answer.Header())
		}
	}
	for _, query := range []string{"?kind=Web", "?name=a"} {
		if _, answer := ask(t, kept, query); answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), "name an object: kind=KIND&name=NAME") {
			t.Errorf("%s: %d %s", query, answer.Code, answer.Body)
		}
	}

	// A file that cannot be read takes nothing else away.
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	slices.Sort(files)
	for _, file := range files[:2] { // the first segment and its index
		if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := ask(t, kept, object); !slices.Equal(got, []uint64{4, 5}) || strings.Count(log.String(), "records in files are left out") != 1 {
		t.Errorf("records %v, told\n%s", got, &log)
	}
	kept.Dir = filepath.Join(dir, "gone")
	if _, answer := ask(t, kept, object); answer.Code != http.StatusInternalServerError {
		t.Errorf("without the directory: %d", answer.Code)
	}
}
