// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// One request reads a page of keys: as many as have pageBytes if they are as large as those
// before, within bounds. For each page etcd counts all keys that follow, so that small pages
// of many keys take time that grows with the square of their number.
const (
	firstPage, smallestPage, largestPage = 100, 10, 20_000

	pageBytes = 16 << 20
)

// nextPage returns how many keys are read after a page of so many.
func nextPage(kvs []*mvccpb.KeyValue) int64 {
	size := 1
	for _, kv := range kvs {
		size += len(kv.Key) + len(kv.Value)
	}
	return int64(min(max(len(kvs)*pageBytes/size, smallestPage), largestPage))
}

// content is the state of the prefix at one revision. It implements [storage.View].
type content struct {
	revision storage.Revision
	buckets  map[string][]*storage.Record // ordered by name
	own      map[string]*mvccpb.KeyValue  // the keys of the store itself
	last     witness                      // the newest change that is not a deletion
}

// load reads the state at a revision, 0 for the newest one. Where known returns the same
// version of a record it is used.
func (s *Store) load(ctx context.Context, at storage.Revision, known func(storage.Key) *storage.Record) (*content, error) {
	c := &content{revision: at, buckets: map[string][]*storage.Record{}, own: map[string]*mvccpb.KeyValue{}}
	next, end, page := string(s.layout), clientv3.GetPrefixRangeEnd(string(s.layout)), int64(firstPage)
	for {
		resp, err := s.client.Get(ctx, next, clientv3.WithRange(end), clientv3.WithRev(int64(c.revision)), clientv3.WithLimit(page))
		if err != nil {
			return nil, fmt.Errorf("etcd: read %s: %w", s.layout, err)
		}
		if c.revision == 0 {
			c.revision = storage.Revision(resp.Header.Revision)
		}
		for _, kv := range resp.Kvs {
			if err := c.add(s.layout, kv, known); err != nil {
				return nil, err
			}
		}
		if !resp.More {
			return c, nil
		}
		next, page = string(resp.Kvs[len(resp.Kvs)-1].Key)+"\x00", nextPage(resp.Kvs)
	}
}

// add adds a key; they come in the order of their bytes.
func (c *content) add(l layout, kv *mvccpb.KeyValue, known func(storage.Key) *storage.Record) error {
	raw := string(kv.Key)
	if at := storage.Revision(kv.ModRevision); at > c.last.At {
		c.last = witness{Key: raw, At: at}
	}
	if l.isOwn(raw) {
		c.own[raw] = kv
		return nil
	}
	key, ok := l.parse(raw)
	if !ok {
		return fmt.Errorf("%w (%q)", ErrForeign, raw)
	}
	rev := storage.Revision(kv.ModRevision)
	records := c.buckets[key.Bucket]
	if len(records) > 0 {
		key.Bucket = records[0].Key.Bucket // one string for all
	}
	rec := known(key)
	if rec == nil || rec.Modified != rev {
		value, stamp, err := decode(raw, kv.Value, rev)
		if err != nil {
			return err
		}
		key.Name = strings.Clone(key.Name)
		rec = &storage.Record{Key: key, Value: value, Created: storage.Revision(kv.CreateRevision), Modified: rev, Stamp: stamp}
	}
	c.buckets[key.Bucket] = append(records, rec)
	return nil
}

// Revision implements [storage.View].
func (c *content) Revision() storage.Revision { return c.revision }

// find returns the position of a name in a bucket.
func (c *content) find(bucket, name string) (int, bool) {
	return slices.BinarySearchFunc(c.buckets[bucket], name, func(r *storage.Record, name string) int { return strings.Compare(r.Key.Name, name) })
}

// Get implements [storage.View].
func (c *content) Get(key storage.Key) *storage.Record {
	if i, ok := c.find(key.Bucket, key.Name); ok {
		return c.buckets[key.Bucket][i]
	}
	return nil
}

// Ascend implements [storage.View].
func (c *content) Ascend(bucket, prefix, start string) iter.Seq[*storage.Record] {
	return func(yield func(*storage.Record) bool) {
		from, _ := c.find(bucket, max(prefix, start))
		for _, r := range c.buckets[bucket][from:] {
			if !strings.HasPrefix(r.Key.Name, prefix) || !yield(r) {
				return
			}
		}
	}
}

// Count implements [storage.View].
func (c *content) Count(bucket, prefix, start string) int {
	n := 0
	for range c.Ascend(bucket, prefix, start) {
		n++
	}
	return n
}

// Buckets implements [storage.View].
func (c *content) Buckets() iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(c.buckets)))
}
