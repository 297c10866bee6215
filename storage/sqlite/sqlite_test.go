// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/apiservertest"
	"github.com/steer-dev/steer/apiserver/custom"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/sqlite"
	"github.com/steer-dev/steer/storage/storagetest"
)

func fresh(t *testing.T) storage.Store { return open(t, filepath.Join(t.TempDir(), "test.db")) }

// open opens a database, which is closed at the end of the test.
func open(tb testing.TB, path string) *sqlite.Store {
	tb.Helper()
	s, err := sqlite.Open(path, sqlite.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = s.Close() }) // a second Close does nothing
	return s
}

func TestStoreKeepsTheContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, fresh)
}

func TestStoreAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storagetest.Model(t, fresh, storagetest.ModelOptions{})
}

func TestStoreIsLinearizable(t *testing.T) {
	t.Parallel()
	storagetest.Linearize(t, fresh)
}

const definition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: notes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Note, plural: notes}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {text: {type: string}}}}}
`

func TestKindsInSQLiteConform(t *testing.T) {
	t.Parallel()
	apiservertest.Run(t, func(t *testing.T) apiservertest.Subject {
		store := fresh(t)
		server, err := apiserver.New(apiserver.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		notes, err := custom.Kind[*unstructured.Unstructured]{Definition: []byte(definition)}.Resource()
		if err != nil {
			t.Fatal(err)
		}
		if err := server.Install(notes); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := errors.Join(server.Stop(context.Background()), store.Close()); err != nil {
				t.Error(err)
			}
		})
		return apiservertest.Subject{
			Server: server, Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "notes"},
			Object: func() map[string]any { return map[string]any{"text": "x"} },
		}
	})
}

func put(tb testing.TB, s storage.Store, name string, value string) *storage.Record {
	tb.Helper()
	w := storage.Write{Key: storage.Key{Bucket: "b", Name: name}, Expect: storage.AnyRevision}
	if value != "" {
		w.Value = []byte(value)
	}
	rec, err := s.Commit(tb.Context(), w)
	if err != nil {
		tb.Fatal(err)
	}
	return rec
}

func contents(t *testing.T, s storage.Store) string {
	t.Helper()
	view, err := s.View(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for rec := range view.Ascend("b", "", "") {
		out += fmt.Sprintf("%s=%s(%d) ", rec.Key.Name, rec.Value, rec.Modified-rec.Created)
	}
	return out
}

// query returns one value that another process reads with SQL.
func query(t *testing.T, path, text string) (out string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), text).Scan(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWatchesContinueAfterARestart(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	s := open(t, path)
	seen := put(t, s, "a", `{"n": 1}`)
	put(t, s, "b", `{"n": 2}`)
	put(t, s, "a", "") // a tombstone
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	cursor, err := s.Watch(storage.Range{Bucket: "b"}, seen.Modified)
	if err != nil {
		t.Fatal(err)
	}
	defer cursor.Close()
	batch, err := cursor.Next(t.Context())
	if err != nil || len(batch.Events) != 2 || batch.Events[0].Record.Key.Name != "b" || !batch.Events[1].Deleted {
		t.Errorf("events since %d: %+v, %v", seen.Modified, batch.Events, err)
	}
	if next := put(t, s, "c", `{}`); next.Modified != seen.Modified+3 {
		t.Errorf("the next revision is %d, the first was %d", next.Modified, seen.Modified)
	}
	if got := query(t, path, "SELECT json_extract(value, '$.n') FROM objects WHERE bucket = 'b' AND name = 'b'"); got != "2" {
		t.Errorf("SQL reads %s", got)
	}
}

// TestDatabaseThatWasRestoredBeginsAnEpoch restores backups of a running and of a closed
// store, and kills a process.
func TestDatabaseThatWasRestoredBeginsAnEpoch(t *testing.T) {
	t.Parallel()
	for _, event := range []string{"a backup of a running store", "a backup of a closed store", "a killed process", "another machine", "a database that was deleted"} {
		path := filepath.Join(t.TempDir(), "test.db")
		s := open(t, path)
		put(t, s, "a", "1")
		backup := filepath.Join(t.TempDir(), "backup.db")
		if event == "a backup of a closed store" {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			copyFile(t, path, backup)
			s = open(t, path)
		} else {
			vacuum(t, path, backup)
		}
		lost := put(t, s, "a", "2")
		if event == "a killed process" {
			copyFile(t, path, backup)
			copyFile(t, path+"-wal", backup+"-wal")
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		want := "a=1(0) "
		switch event {
		case "a killed process":
			path, want = backup, "a=2(1) "
		case "another machine":
			path = backup
		case "a database that was deleted":
			want = ""
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		default:
			for _, left := range []string{"-wal", "-shm"} {
				_ = os.Remove(path + left) // it may be gone
			}
			copyFile(t, backup, path)
		}
		s = open(t, path)
		if got := contents(t, s); got != want {
			t.Errorf("%s: %s, want %s", event, got, want)
		}
		if _, err := s.Watch(storage.Range{Bucket: "b"}, lost.Modified); !errors.Is(err, storage.ErrCompacted) {
			t.Errorf("%s: a watch from the revision that was lost: %v, want %v", event, err, storage.ErrCompacted)
		}
		if next := put(t, s, "a", "3"); next.Modified <= lost.Modified || want != "" && next.Created >= lost.Modified {
			t.Errorf("%s: the next write has the revision %d, one that was lost had %d", event, next.Modified, lost.Modified)
		}
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// vacuum makes a backup as sqlite3's .backup does.
func vacuum(t *testing.T, path, to string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "VACUUM INTO ?", to); err != nil {
		t.Fatal(err)
	}
}

func TestStoreWritesNothingAfterAnotherProcessHasOpenedIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	first := open(t, path)
	put(t, first, "a", "1")
	second := open(t, path)
	put(t, second, "a", "2")
	write := storage.Write{Key: storage.Key{Bucket: "b", Name: "a"}, Value: []byte("3"), Expect: storage.AnyRevision}
	if _, err := first.Commit(t.Context(), write); !errors.Is(err, storage.ErrPoisoned) || !errors.Is(err, sqlite.ErrTaken) {
		t.Errorf("a write of the first store: %v", err)
	}
	if err := first.Health(); !errors.Is(err, storage.ErrPoisoned) {
		t.Errorf("the health of the first store: %v", err)
	}
	put(t, second, "b", "4")
	if got, want := contents(t, second), "a=2(1) "; len(got) < len(want) {
		t.Errorf("the second store has %s", got)
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Error(err)
	}
}

func TestCompactRemovesWhatIsSuperseded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	s := open(t, path)
	for i := range 10 {
		put(t, s, "a", fmt.Sprint(i))
	}
	put(t, s, "b", "1")
	gone := put(t, s, "b", "")
	last := put(t, s, "a", "new")
	if err := s.Compact(t.Context(), gone.Modified); err != nil {
		t.Fatal(err)
	}
	if got := query(t, path, "SELECT group_concat(name || '=' || value, ' ') FROM (SELECT name, value FROM records ORDER BY revision)"); got != "a=9 a=new" {
		t.Errorf("rows: %s", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, path)
	if got, want := contents(t, s), fmt.Sprintf("a=new(%d) ", last.Modified-last.Created); got != want {
		t.Errorf("after a restart: %s, want %s", got, want)
	}
	if _, err := s.Watch(storage.Range{Bucket: "b"}, gone.Modified-1); !errors.Is(err, storage.ErrCompacted) {
		t.Errorf("a watch from below: %v", err)
	}
}

// TestOpenRemovesWhatIsSuperseded: by age, and where an epoch begins all of it, though the history
// was longer.
func TestOpenRemovesWhatIsSuperseded(t *testing.T) {
	t.Parallel()
	for event, rows := range map[string]string{"a restart": "a=1 a=2 b=1 b a=3", "a restart later": "a=3", "a killed process": "a=3"} {
		path := filepath.Join(t.TempDir(), "test.db")
		s := open(t, path)
		put(t, s, "a", "1")
		put(t, s, "a", "2")
		put(t, s, "b", "1")
		put(t, s, "b", "")
		last := put(t, s, "a", "3")
		if event == "a killed process" {
			killed := filepath.Join(t.TempDir(), "killed.db")
			for _, suffix := range []string{"", "-wal", "-epoch"} {
				copyFile(t, path+suffix, killed+suffix)
			}
			path = killed
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if event == "a restart later" {
			execute(t, path, "UPDATE records SET at = 0")
		}
		s = open(t, path)
		if got := query(t, path, "SELECT group_concat(name || coalesce('=' || value, ''), ' ') FROM (SELECT name, value FROM records ORDER BY revision)"); got != rows {
			t.Errorf("%s: rows %s, want %s", event, got, rows)
		}
		if got, want := contents(t, s), fmt.Sprintf("a=3(%d) ", last.Modified-last.Created); got != want {
			t.Errorf("%s: %s, want %s", event, got, want)
		}
		if next := put(t, s, "b", "2"); next.Created != next.Modified {
			t.Errorf("%s: what was deleted was created at %d, is written at %d", event, next.Created, next.Modified)
		}
	}
}

// TestFilesAreOfTheirOwnerAlone: a database has the mode that its first process gave it.
func TestFilesAreOfTheirOwnerAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	put(t, open(t, path), "a", "1")
	for _, suffix := range []string{"", "-wal", "-shm", "-epoch"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("test.db%s has mode %v", suffix, info.Mode())
		}
	}
}

func TestOpenRefusesTablesOfANewerFormat(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	if err := open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE state SET value = '2' WHERE name = 'format'"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err := sqlite.Open(path, sqlite.Options{}); err == nil {
		_ = s.Close()
		t.Error("it is opened")
	}
}

// TestWriteSucceedsThoughPruningFails has a trigger refuse every deletion of rows: what is
// committed stays so, and a later write prunes.
func TestWriteSucceedsThoughPruningFails(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	s, err := sqlite.Open(path, sqlite.Options{HistoryAge: time.Nanosecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	execute(t, path, "CREATE TRIGGER refuse BEFORE DELETE ON records BEGIN SELECT RAISE(ABORT, 'refused'); END")
	const writers, each = 50, 20 // as many writes as pruning waits for
	const writes = writers * each
	var wait sync.WaitGroup
	for range writers {
		wait.Go(func() {
			for range each {
				if _, err := s.Commit(context.Background(), storage.Write{Key: storage.Key{Bucket: "b", Name: "a"}, Value: []byte("1"), Expect: storage.AnyRevision}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wait.Wait()
	put(t, s, "a", "2")
	if err := s.Health(); err != nil {
		t.Error(err)
	}
	if got := query(t, path, "SELECT count(*) FROM records"); got != fmt.Sprint(writes+1) {
		t.Errorf("%s rows, want %d", got, writes+1)
	}
	execute(t, path, "DROP TRIGGER refuse")
	put(t, s, "a", "3")
	if got := query(t, path, "SELECT count(*) FROM records"); got == fmt.Sprint(writes+2) {
		t.Errorf("%s rows: nothing was pruned", got)
	}
}

func execute(t *testing.T, path, text string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }() // nothing is open
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatal(err)
	}
}
