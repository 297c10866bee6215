// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/steer-dev/steer/storage"
)

// content is what a database has when it is opened.
type content struct {
	from    *snapshot
	changes []storage.Change // after the snapshot
	last    storage.Revision
}

func (c *content) past() iter.Seq2[storage.Change, error] {
	return func(yield func(storage.Change, error) bool) {
		for _, change := range c.changes {
			if !yield(change, nil) {
				return
			}
		}
	}
}

// row is one row of records.
type row struct {
	record  storage.Record
	deleted bool
	at      time.Time
}

// read reads the database: the state at the floor of the history, and the history. It first
// removes what is superseded for longer than age, or all that is where an epoch begins.
func (s *Store) read(ctx context.Context, tx *sql.Tx, age time.Duration) (*content, error) {
	state, err := readState(ctx, tx)
	if err != nil {
		return nil, err
	}
	if found, ok := state["format"]; ok && found != format {
		return nil, fmt.Errorf("its tables have the format %v, this program knows %s: use the program that wrote it", found, format)
	}
	known, _ := state["floor"].(int64)
	floor := storage.Revision(known)
	_, owned := state["owner"]
	same, err := s.continues(owned, state["closed"])
	if err != nil {
		return nil, err
	}
	if same {
		old, err := superseded(ctx, tx, floor, age)
		if err != nil {
			return nil, err
		}
		if err := removeSuperseded(ctx, tx, floor, old); err != nil {
			return nil, err
		}
		floor = old
	} else {
		var last sql.NullInt64
		if err := tx.QueryRowContext(ctx, "SELECT max(revision) FROM records").Scan(&last); err != nil {
			return nil, err
		}
		if err := removeSuperseded(ctx, tx, 0, storage.Revision(last.Int64)); err != nil {
			return nil, err
		}
		floor = max(storage.Revision(last.Int64), floor, storage.Revision(time.Now().UnixMicro()))
	}
	c := &content{from: &snapshot{revision: floor, buckets: map[string]map[string]*storage.Record{}}}
	return c, c.load(ctx, tx)
}

func readState(ctx context.Context, tx *sql.Tx) (map[string]any, error) {
	rows, err := tx.QueryContext(ctx, "SELECT name, value FROM state")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // it is read to its end
	state := map[string]any{}
	for rows.Next() {
		var name string
		var value any
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		state[name] = value
	}
	return state, rows.Err()
}

// continues reports whether the database is the one that was closed here last, or a new
// one (not known) where none was before.
func (s *Store) continues(known bool, closed any) (bool, error) {
	mark, err := os.ReadFile(s.mark())
	if errors.Is(err, os.ErrNotExist) {
		return !known, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the mark of the epoch: %w", err)
	}
	text, _ := closed.(string)
	return text != "" && bytes.Equal(mark, []byte(text)), nil
}

// load reads all rows in the order of their revisions. Those above the floor become changes.
func (c *content) load(ctx context.Context, tx *sql.Tx) error {
	rows, err := tx.QueryContext(ctx, "SELECT revision, bucket, name, created, deleted, stamp, at, value FROM records ORDER BY revision")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // it is read to its end
	c.last = c.from.revision
	for rows.Next() {
		var r row
		var at int64
		if err := rows.Scan(&r.record.Modified, &r.record.Key.Bucket, &r.record.Key.Name, &r.record.Created, &r.deleted, &r.record.Stamp, &at, &r.record.Value); err != nil {
			return err
		}
		r.at = time.UnixMilli(at)
		c.last = max(c.last, r.record.Modified)
		if r.record.Modified <= c.from.revision {
			c.from.apply(&r)
			continue
		}
		change := storage.Change{Revision: r.record.Modified, Time: r.at, Key: r.record.Key, Stamp: r.record.Stamp, Value: r.record.Value}
		if r.deleted {
			change.Value, change.Stamp = nil, 0
		}
		c.changes = append(c.changes, change)
	}
	c.from.sort()
	return rows.Err()
}

// snapshot is a [storage.View] of what is in the database.
type snapshot struct {
	revision storage.Revision
	buckets  map[string]map[string]*storage.Record
	names    map[string][]string
}

func (v *snapshot) apply(r *row) {
	key := r.record.Key
	if v.buckets[key.Bucket] == nil {
		v.buckets[key.Bucket] = map[string]*storage.Record{}
	}
	if r.deleted {
		delete(v.buckets[key.Bucket], key.Name)
		return
	}
	v.buckets[key.Bucket][key.Name] = &storage.Record{Key: key, Value: r.record.Value, Created: r.record.Created, Modified: r.record.Modified, Stamp: r.record.Stamp}
}

// sort prepares the snapshot for reading.
func (v *snapshot) sort() {
	v.names = map[string][]string{}
	for bucket, records := range v.buckets {
		if len(records) > 0 {
			v.names[bucket] = slices.Sorted(maps.Keys(records))
		}
	}
}

// Revision implements [storage.View].
func (v *snapshot) Revision() storage.Revision { return v.revision }

// Get implements [storage.View].
func (v *snapshot) Get(key storage.Key) *storage.Record { return v.buckets[key.Bucket][key.Name] }

// Ascend implements [storage.View].
func (v *snapshot) Ascend(bucket, prefix, start string) iter.Seq[*storage.Record] {
	return func(yield func(*storage.Record) bool) {
		names := v.names[bucket]
		from, _ := slices.BinarySearch(names, max(prefix, start))
		for _, name := range names[from:] {
			if !strings.HasPrefix(name, prefix) || !yield(v.buckets[bucket][name]) {
				return
			}
		}
	}
}

// Count implements [storage.View].
func (v *snapshot) Count(bucket, prefix, start string) (n int) {
	for range v.Ascend(bucket, prefix, start) {
		n++
	}
	return n
}

// Buckets implements [storage.View].
func (v *snapshot) Buckets() iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(v.names)))
}
