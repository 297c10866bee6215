// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
)

// pruneEvery is after how many writes superseded rows are removed.
const pruneEvery = 1000

// journal is a [storage.Journal] in the table records.
type journal struct {
	db    *sql.DB
	owner string
	age   time.Duration

	insert, created, owned *sql.Stmt

	mu      sync.Mutex // Append and prune
	last    storage.Revision
	floor   storage.Revision // the history is pruned up to here
	pending int              // writes since the last look at what is superseded
}

func (j *journal) prepare(ctx context.Context) (err error) {
	for text, into := range map[string]**sql.Stmt{
		"INSERT INTO records (revision, bucket, name, created, deleted, stamp, at, value) VALUES (?, ?, ?, ?, ?, ?, ?, ?)": &j.insert,
		"SELECT created, deleted FROM records WHERE bucket = ? AND name = ? ORDER BY revision DESC LIMIT 1":                &j.created,
		"SELECT (SELECT value FROM state WHERE name = 'owner'), (SELECT max(revision) FROM records)":                       &j.owned,
	} {
		if *into, err = j.db.PrepareContext(ctx, text); err != nil {
			return err
		}
	}
	return nil
}

// begin locks the database and verifies that it is still that of this process.
func (j *journal) begin(ctx context.Context) (*sql.Tx, error) {
	tx, err := j.db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	var owner string
	var last sql.NullInt64
	err = tx.StmtContext(ctx, j.owned).QueryRowContext(ctx).Scan(&owner, &last)
	switch {
	case err != nil:
	case owner != j.owner:
		err = ErrTaken
	case storage.Revision(last.Int64) > j.last:
		err = fmt.Errorf("sqlite: the newest row has the revision %d, the last write of this process had %d: let no other program write to the table records", last.Int64, j.last)
	default:
		return tx, nil
	}
	return nil, errors.Join(err, tx.Rollback())
}

// Append implements [storage.Journal].
func (j *journal) Append(changes []storage.Change) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	ctx := context.Background()
	tx, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	insert, current := tx.StmtContext(ctx, j.insert), tx.StmtContext(ctx, j.created)
	for _, c := range changes {
		created, gone := c.Revision, false
		err := current.QueryRowContext(ctx, c.Key.Bucket, c.Key.Name).Scan(&created, &gone)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		if gone {
			created = c.Revision
		}
		value := sql.NullString{String: string(c.Value), Valid: c.Value != nil} // JSON functions read text
		if _, err := insert.ExecContext(ctx, c.Revision, c.Key.Bucket, c.Key.Name, created, c.Value == nil, c.Stamp, c.Time.UnixMilli(), value); err != nil {
			return err
		}
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	j.last = changes[len(changes)-1].Revision
	if j.pending += len(changes); j.pending >= pruneEvery {
		// The changes are committed, whatever comes of this; a later write tries again.
		if j.pruneByAge(ctx) == nil {
			j.pending = 0
		}
	}
	return nil
}

// pruneByAge removes what is superseded for longer than the history lasts.
func (j *journal) pruneByAge(ctx context.Context) error {
	old, err := superseded(ctx, j.db, j.floor, j.age)
	if err != nil {
		return err
	}
	return j.pruneTo(ctx, old)
}

// prune removes rows that were superseded up to a revision.
func (j *journal) prune(ctx context.Context, upTo storage.Revision) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.pruneTo(ctx, upTo)
}

// pruneTo is prune with the lock held.
func (j *journal) pruneTo(ctx context.Context, upTo storage.Revision) error {
	if upTo = min(upTo, j.last); upTo <= j.floor {
		return nil
	}
	tx, err := j.begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after the commit it does nothing
	if err := removeSuperseded(ctx, tx, j.floor, upTo); err != nil {
		return err
	}
	if err := setState(ctx, tx, "floor", int64(upTo)); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	j.floor = upTo
	return nil
}

// superseded returns the newest revision that is older than age, at least the floor.
func superseded(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, floor storage.Revision, age time.Duration) (storage.Revision, error) {
	var old sql.NullInt64
	err := db.QueryRowContext(ctx, "SELECT max(revision) FROM records WHERE revision > ? AND at < ?", floor, time.Now().Add(-age).UnixMilli()).Scan(&old)
	return max(floor, storage.Revision(old.Int64)), err
}

// removeSuperseded removes the rows that a row of a part of the history has replaced, and the
// tombstones of that part: above one revision, up to another.
func removeSuperseded(ctx context.Context, tx *sql.Tx, above, upTo storage.Revision) error {
	for _, text := range []string{
		`DELETE FROM records WHERE revision IN (
			SELECT (SELECT max(old.revision) FROM records AS old WHERE old.bucket = new.bucket AND old.name = new.name AND old.revision < new.revision)
			FROM records AS new WHERE new.revision > ?1 AND new.revision <= ?2)`,
		`DELETE FROM records WHERE deleted AND revision > ?1 AND revision <= ?2`,
	} {
		if _, err := tx.ExecContext(ctx, text, above, upTo); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [storage.Journal]; the store closes the database, which it marks first.
func (j *journal) Close() error { return nil }
