// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/sqlite"
)

// TestStoreLosesNothingWhenAStatementFails: a write whose transaction fails is not acknowledged,
// and is not in the database; all that was acknowledged is. The store then takes writes after a
// restart.
func TestStoreLosesNothingWhenAStatementFails(t *testing.T) {
	t.Parallel()
	for what, statements := range map[string][2]string{
		"the insertion": {
			"CREATE TRIGGER refuse BEFORE INSERT ON records BEGIN SELECT RAISE(ABORT, 'refused'); END", "DROP TRIGGER refuse",
		},
		"the insertion, which ends the transaction": {
			"CREATE TRIGGER refuse AFTER INSERT ON records BEGIN SELECT RAISE(ROLLBACK, 'refused'); END", "DROP TRIGGER refuse",
		},
		"the look at the owner": {"ALTER TABLE state RENAME TO away", "ALTER TABLE away RENAME TO state"},
		"the look at the row":   {"ALTER TABLE records RENAME COLUMN created TO away", "ALTER TABLE records RENAME COLUMN away TO created"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			open := func() *sqlite.Store {
				s, err := sqlite.Open(path, sqlite.Options{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = s.Close() })
				return s
			}
			s := open()
			put(t, s, "before", "1")
			execute(t, path, statements[0])
			refused := storage.Write{Key: storage.Key{Bucket: "b", Name: "refused"}, Value: []byte("1"), Expect: storage.AnyRevision}
			if _, err := s.Commit(t.Context(), refused); err == nil {
				t.Fatal("a write whose transaction failed is acknowledged")
			}
			if rec := s.Latest().Get(refused.Key); rec != nil {
				t.Errorf("what is not in the database is read: %s", rec.Value)
			}
			execute(t, path, statements[1])
			if _, err := s.Commit(t.Context(), refused); err == nil || s.Health() == nil {
				t.Errorf("before the restart that the error asks for, a write: %v, the health: %v", err, s.Health())
			}
			_ = s.Close() // it has failed
			s = open()
			for name, want := range map[string]bool{"before": true, "refused": false} {
				if got := s.Latest().Get(storage.Key{Bucket: "b", Name: name}) != nil; got != want {
					t.Errorf("after a restart %q is there: %v, want %v", name, got, want)
				}
			}
			put(t, s, "refused", "2")
		})
	}
}
