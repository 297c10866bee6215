// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/durable"
)

// Options of a store. The zero value is the default.
type Options struct {
	// HistoryAge and HistoryBytes are those of [storage.MemoryOptions]. HistoryAge also
	// bounds how long superseded rows stay in the database.
	HistoryAge   time.Duration
	HistoryBytes int
}

// ErrTaken: another process has opened the database, so this one does not write any more.
var ErrTaken = errors.New("sqlite: another process has opened the database: close this store, and let only one process open it")

// format is the version of the tables.
const format = "1"

// tables are the tables of the store. records has one row for each write; state has what
// is known about the database: its format, the process that owns it (owner), the mark of
// the last Close (closed) and the revision below which the history is pruned (floor).
const tables = `
CREATE TABLE IF NOT EXISTS state (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS records (
	revision INTEGER PRIMARY KEY, bucket TEXT NOT NULL, name TEXT NOT NULL,
	created INTEGER NOT NULL, deleted INTEGER NOT NULL, stamp INTEGER NOT NULL, at INTEGER NOT NULL, value TEXT);
CREATE INDEX IF NOT EXISTS records_by_key ON records (bucket, name, revision);
CREATE VIEW IF NOT EXISTS objects AS
	SELECT bucket, name, revision, value FROM records AS r
	WHERE NOT deleted AND NOT EXISTS (SELECT 1 FROM records AS n WHERE n.bucket = r.bucket AND n.name = r.name AND n.revision > r.revision);
`

// Store is a [storage.Store] in a SQLite database. Its Fork is a memory store.
type Store struct {
	*storage.Memory
	db      *sql.DB
	path    string
	journal *journal

	closing sync.Once
	closed  error
}

// Open opens the database in a file, which is created with mode 0600 if it does not exist.
// Rows that were superseded longer ago than the history lasts are removed. The store is fenced
// when another process opens the same database.
func Open(path string, o Options) (*Store, error) {
	db, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("sqlite: open %s: %w", path, err)
	}
	s := &Store{db: db, path: path}
	if err := s.load(o); err != nil {
		return nil, errors.Join(fmt.Errorf("sqlite: open %s: %w", path, err), db.Close())
	}
	return s, nil
}

// open opens a database with the properties that the store relies on.
func open(path string) (*sql.DB, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// The driver would create it as the umask says. What SQLite puts beside it has its mode.
	file, err := os.OpenFile(absolute, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	query := url.Values{"_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(10000)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: filepath.ToSlash(absolute), RawQuery: query.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // writes are in one order, and nothing reads
	return db, nil
}

// load reads the database, or makes its tables, and takes it over.
func (s *Store) load(o Options) error {
	ctx := context.Background()
	if _, err := s.db.ExecContext(ctx, tables); err != nil {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	age := cmp.Or(o.HistoryAge, 5*time.Minute)
	c, err := s.read(ctx, tx, age)
	if err != nil {
		return err
	}
	owner := rand.Text()
	for name, value := range map[string]any{"format": format, "owner": owner, "closed": "", "floor": int64(c.from.revision)} {
		if err := setState(ctx, tx, name, value); err != nil {
			return err
		}
	}
	if err := durable.WriteFile(s.mark(), []byte(inUse), 0o600); err != nil {
		return fmt.Errorf("write the mark of the epoch: %w", err)
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	j := &journal{db: s.db, owner: owner, last: c.last, floor: c.from.revision, age: age}
	if err := j.prepare(ctx); err != nil {
		return err
	}
	s.journal = j
	s.Memory, err = storage.NewJournaled(j, c.past(), storage.MemoryOptions{From: c.from, HistoryAge: o.HistoryAge, HistoryBytes: o.HistoryBytes})
	return err
}

// inUse is in the mark file while the database is open. It is equal to no mark.
const inUse = "in use"

// mark is the file that is equal to the mark in the database after a Close.
func (s *Store) mark() string { return s.path + "-epoch" }

// Compact implements [storage.Keeper]; the rows of the history are removed as well.
func (s *Store) Compact(ctx context.Context, below storage.Revision) error {
	if err := s.Memory.Compact(ctx, below); err != nil {
		return err
	}
	return s.journal.prune(ctx, below)
}

// Close waits for what is being written, and marks the end of the epoch's first part: the
// next Open continues the epoch if the database is the same.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.closed = errors.Join(s.Memory.Close(), s.release())
	})
	return s.closed
}

// release writes the mark into the database and then into the file beside it, and closes
// the database.
func (s *Store) release() error {
	ctx := context.Background()
	err := s.writeMark(ctx, rand.Text())
	if errors.Is(err, ErrTaken) {
		err = nil // the mark is that of the other process
	}
	return errors.Join(err, s.db.Close())
}

func (s *Store) writeMark(ctx context.Context, mark string) error {
	tx, err := s.journal.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	if err := setState(ctx, tx, "closed", mark); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return durable.WriteFile(s.mark(), []byte(mark), 0o600)
}

func setState(ctx context.Context, tx *sql.Tx, name string, value any) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO state (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value", name, value)
	return err
}
