// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package notes_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/storage"
)

func note(rev storage.Revision, name string) notes.Note {
	return notes.Note{
		Revision: rev, Time: time.Unix(int64(rev), 0).UTC(), Verb: "update", Group: "apps", Resource: "deployments",
		Namespace: "default", Name: name, User: "admin", UserAgent: "kubectl/v1", FieldManager: "kubectl-edit", AuditID: "a",
	}
}

func ask(t *testing.T, n *notes.Notes, query string) (list notes.List) {
	t.Helper()
	w := httptest.NewRecorder()
	n.ServeHTTP(w, httptest.NewRequest(http.MethodGet, notes.Path+query, nil))
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return list
}

// TestNotesAreKnownFromTheNewestTerm of a server that led, followed and leads again: others
// wrote meanwhile.
func TestNotesAreKnownFromTheNewestTerm(t *testing.T) {
	t.Parallel()
	n := notes.New(0)
	for _, c := range []struct {
		revision, term storage.Revision
		want           string
	}{
		{3, 2, "3"}, {4, 2, "3"}, {9, 8, "9"}, {10, 8, "9"},
		{11, 20, "11"}, {21, 20, "21"}, {22, 20, "21"}, // the write of 11 had its note after the election
	} {
		added := note(c.revision, "a")
		added.Term = c.term
		n.Add(added)
		if got := ask(t, n, ""); got.KnownFrom != c.want {
			t.Errorf("with %d: known from %s, want %s", c.revision, got.KnownFrom, c.want)
		}
	}
	if got := ask(t, n, ""); len(got.Items) != 7 {
		t.Errorf("%d notes: those of the earlier term are listed as well", len(got.Items))
	}
}

func TestNotesAreListedByRevisionAndObject(t *testing.T) {
	t.Parallel()
	n := notes.New(0)
	for _, rev := range []storage.Revision{3, 5, 4, 7, 6} { // as writes may end
		n.Add(note(rev, map[bool]string{true: "odd", false: "even"}[rev%2 == 1]))
	}
	want := notes.List{Kind: "WriteList", APIVersion: "steer.dev/v1alpha1", KnownFrom: "3", Items: []notes.Note{note(4, "even"), note(5, "odd"), note(6, "even")}}
	if diff := cmp.Diff(want, ask(t, n, "?from=4&to=6")); diff != "" {
		t.Error(diff)
	}
	want.Items = []notes.Note{note(5, "odd"), note(7, "odd")}
	want.Omitted = 1
	if diff := cmp.Diff(want, ask(t, n, "?group=apps&resource=deployments&namespace=default&name=odd&limit=2")); diff != "" {
		t.Error(diff)
	}
	if got := ask(t, n, "?resource=deployments"); len(got.Items) != 0 { // of the core group
		t.Error(got)
	}
	for _, bad := range []string{"?from=x", "?to=-1", "?limit=1e3"} {
		w := httptest.NewRecorder()
		if n.ServeHTTP(w, httptest.NewRequest(http.MethodGet, notes.Path+bad, nil)); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, w.Code)
		}
	}
	w := httptest.NewRecorder()
	if n.ServeHTTP(w, httptest.NewRequest(http.MethodPost, notes.Path, nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestNotesAreBoundedAndSayWhatIsForgotten(t *testing.T) {
	t.Parallel()
	n := notes.New(64 << 10)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for rev := storage.Revision(1); rev <= 1000; rev++ {
				long := note(rev*4+storage.Revision(i), "a")
				long.UserAgent, long.AuditID = strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20)
				n.Add(long)
			}
		})
	}
	all.Wait()
	got := ask(t, n, "")
	if len(got.Items) < 50 || len(got.Items) > 64<<10/512 || got.KnownFrom == "4" || len(got.Items[0].UserAgent) != 256 || len(got.Items[0].AuditID) != 64 {
		t.Errorf("%d items, known from %s", len(got.Items), got.KnownFrom)
	}
	for i := 1; i < len(got.Items); i++ {
		if got.Items[i].Revision <= got.Items[i-1].Revision {
			t.Fatalf("%d follows %d", got.Items[i].Revision, got.Items[i-1].Revision)
		}
	}
	if none := ask(t, nil, ""); none.KnownFrom != "" || len(none.Items) != 0 {
		t.Error(none)
	}
}

func BenchmarkAdd(b *testing.B) {
	n := notes.New(0)
	rev := storage.Revision(0)
	b.ReportAllocs()
	for b.Loop() {
		rev++
		n.Add(note(rev, "a"))
	}
}
