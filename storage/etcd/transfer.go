// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// Bounds of a transaction of [Restore]; etcd refuses more than 128 operations and 1.5 MiB
// unless its members have other limits.
const (
	restoreOps   = 100
	restoreBytes = 1 << 20
)

// Save writes a snapshot of what a prefix holds, as [storage.Load] reads it. Servers may use
// the prefix meanwhile; the snapshot is of one revision, which it returns.
func Save(ctx context.Context, o Options, w io.Writer) (storage.Revision, error) {
	s, err := connect(o)
	if err != nil {
		return 0, err
	}
	defer func() { _ = s.Close() }() // nothing was written
	asking, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	resp, err := s.client.Get(asking, s.layout.owner())
	if err != nil {
		return 0, fmt.Errorf("etcd: ask %v: %w", o.Endpoints, err)
	}
	owner, err := s.parseOwner(resp.Kvs)
	if err != nil {
		return 0, err
	}
	owner.Base.use(s.client)
	c, err := s.load(ctx, 0, func(storage.Key) *storage.Record { return nil })
	if err != nil {
		return 0, err
	}
	return c.revision, storage.Save(ctx, w, c)
}

// RestoreOptions of [Restore].
type RestoreOptions struct {
	// Replace removes the data that the prefix holds. Without it that is [ErrHoldsData].
	Replace bool
	// Apart reports whether each record of a bucket gets a revision of its own, which is above
	// those of all records that were older. Others may share one. nil: all may.
	Apart func(bucket string) bool
	// Progress is called with the number of records that are in etcd. nil: it is not.
	Progress func(records int)
}

// Restore fills a prefix with the contents of a view, such as a snapshot. All records get
// new revisions, above that of the view and all that the prefix had before, in the order of
// the old ones: watches of clients end with 410, and an update that rests on an older
// revision is a conflict. It fails with
// [ErrInUse] while a server leads. Until it has succeeded no store opens the prefix, also
// if the process was ended: then it is called again.
func Restore(ctx context.Context, o Options, v storage.View, r RestoreOptions) error {
	s, err := connect(o)
	if err != nil {
		return err
	}
	defer func() { _ = s.Close() }() // its requests have been answered
	t := &transfer{store: s, owner: ownership{Format: format, ID: rand.Text()}}
	if err := t.begin(ctx, v.Revision(), r.Replace); err != nil {
		return err
	}
	if err := t.run(ctx, v, r); err != nil {
		return fmt.Errorf("%w; the data is incomplete, and no server uses it: restore the snapshot again", err)
	}
	return nil
}

// transfer is one Restore.
type transfer struct {
	store *Store
	owner ownership
	held  int64 // the revision of the key of the owner, which each transaction compares
}

// begin marks the prefix as incomplete, and keeps servers from leading.
func (t *transfer) begin(ctx context.Context, newest storage.Revision, replace bool) error {
	s := t.store
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	first, end := string(s.layout), clientv3.GetPrefixRangeEnd(string(s.layout))
	found, err := s.client.Txn(ctx).Then(
		clientv3.OpGet(s.layout.owner()), clientv3.OpGet(s.layout.leader()),
		clientv3.OpGet(first, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(8)),
	).Commit()
	if err != nil {
		return fmt.Errorf("etcd: ask %v: %w", s.options.Endpoints, err)
	}
	owners, leaders, keys := found.Responses[0].GetResponseRange().Kvs, found.Responses[1].GetResponseRange().Kvs, found.Responses[2].GetResponseRange().Kvs
	var owned, led int64
	if len(keys) > 0 {
		old, err := s.parseOwner(owners)
		if err != nil && !errors.Is(err, ErrUnfinished) {
			return err
		}
		for _, kv := range keys {
			if !replace && !old.Restoring && !s.layout.isOwn(string(kv.Key)) {
				return fmt.Errorf("%w (%s)", ErrHoldsData, s.layout)
			}
		}
		if len(leaders) > 0 {
			if led = leaders[0].ModRevision; !old.Restoring {
				return fmt.Errorf("%w (%s)", ErrInUse, s.layout)
			}
		}
		owned, t.owner.Base = owners[0].ModRevision, old.Base
	}
	t.owner.Base = max(t.owner.Base, based(int64(newest)-found.Header.Revision))
	t.owner.Restoring = true
	mark, err := json.Marshal(t.owner)
	if err != nil {
		return err
	}
	resp, err := s.client.Txn(ctx).If(
		clientv3.Compare(clientv3.ModRevision(s.layout.owner()), "=", owned),
		clientv3.Compare(clientv3.ModRevision(s.layout.leader()), "=", led),
	).Then(clientv3.OpPut(s.layout.owner(), string(mark)), clientv3.OpPut(s.layout.leader(), "{}")).Commit()
	switch {
	case err != nil:
		return fmt.Errorf("etcd: begin to restore into %s: %w", s.layout, err)
	case !resp.Succeeded:
		return fmt.Errorf("%w (%s)", ErrInUse, s.layout)
	}
	t.held = resp.Header.Revision
	return nil
}

// run removes what there is, writes the records and completes the prefix.
func (t *transfer) run(ctx context.Context, v storage.View, r RestoreOptions) error {
	if err := t.clear(ctx); err != nil {
		return err
	}
	records := byAge(v)
	for done := 0; done < len(records); {
		var ops []clientv3.Op
		for size := 0; done+len(ops) < len(records) && len(ops) < restoreOps; {
			rec := records[done+len(ops)]
			w := storage.Write{Key: rec.Key, Value: rec.Unstamped(), Stamp: rec.Stamp}
			apart := r.Apart != nil && r.Apart(rec.Key.Bucket)
			if size += len(rec.Key.Bucket) + len(rec.Key.Name) + len(w.Value); len(ops) > 0 && (apart || size > restoreBytes) {
				break
			}
			if ops = append(ops, t.store.change(&w)); apart {
				break
			}
		}
		if err := t.commit(ctx, ops...); err != nil {
			return err
		}
		if done += len(ops); r.Progress != nil {
			r.Progress(done)
		}
	}
	t.owner.Restoring = false
	complete, err := json.Marshal(t.owner)
	if err != nil {
		return err
	}
	layout := t.store.layout
	return t.commit(ctx, clientv3.OpPut(layout.owner(), string(complete)), clientv3.OpDelete(layout.leader()))
}

// byAge returns all records, the one that was written first before the others.
func byAge(v storage.View) []*storage.Record {
	var all []*storage.Record
	for bucket := range v.Buckets() {
		all = slices.AppendSeq(all, v.Ascend(bucket, "", ""))
	}
	slices.SortStableFunc(all, func(a, b *storage.Record) int { return cmp.Compare(a.Modified, b.Modified) })
	return all
}

// clearedAtOnce is how many keys are removed in one revision.
const clearedAtOnce = 1000

// clear removes all keys but the two that hold the prefix.
func (t *transfer) clear(ctx context.Context) error {
	layout := t.store.layout
	next, end := string(layout), clientv3.GetPrefixRangeEnd(string(layout))
	for {
		page, err := t.store.client.Get(ctx, next, clientv3.WithRange(end), clientv3.WithKeysOnly(), clientv3.WithLimit(clearedAtOnce))
		if err != nil {
			return fmt.Errorf("etcd: read %s: %w", layout, err)
		}
		var own []string
		for _, kv := range page.Kvs {
			if key := string(kv.Key); layout.isOwn(key) {
				own = append(own, key)
			}
		}
		var ops []clientv3.Op
		if len(page.Kvs) > 0 {
			last := string(page.Kvs[len(page.Kvs)-1].Key) + "\x00"
			for _, kept := range append(own, last) {
				if next < kept {
					ops = append(ops, clientv3.OpDelete(next, clientv3.WithRange(kept)))
				}
				if kept != layout.owner() && kept != layout.leader() && kept != last {
					ops = append(ops, clientv3.OpDelete(kept))
				}
				next = kept + "\x00"
			}
			next = last
		}
		if err := t.commit(ctx, ops...); err != nil || !page.More {
			return err
		}
	}
}

// commit makes changes unless another program has taken the prefix meanwhile.
func (t *transfer) commit(ctx context.Context, ops ...clientv3.Op) error {
	if len(ops) == 0 {
		return nil
	}
	s := t.store
	resp, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(s.layout.owner()), "=", t.held)).Then(ops...).Commit()
	switch {
	case err != nil:
		return s.failure(ctx, storage.Key{Bucket: string(s.layout), Name: "restore"}, err)
	case !resp.Succeeded:
		return fmt.Errorf("%w (%s): another program restores a snapshot into it", ErrInUse, s.layout)
	}
	return nil
}
