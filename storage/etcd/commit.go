// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// commitTime bounds a write: longer than etcd itself waits for its members.
const commitTime = 10 * time.Second

// errSilent: etcd has not answered a write within commitTime.
var errSilent = fmt.Errorf("no answer from etcd within %v, whether it was made is unknown", commitTime)

// Commit implements [storage.Committer]: one transaction, which compares the term. It waits
// for etcd for commitTime at most; then the outcome is unknown.
func (s *Store) Commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	within, cancel := context.WithTimeout(ctx, commitTime)
	defer cancel()
	rec, err := s.commit(within, w)
	if errors.Is(err, context.DeadlineExceeded) && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("etcd: write %s: %w", w.Key, errSilent)
	}
	return rec, err
}

// commit is Commit within the time of ctx.
func (s *Store) commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	if err := s.usable(ctx); err != nil {
		return nil, err
	}
	t := s.current()
	if t == nil {
		return nil, storage.ErrNotLeader
	}
	resp, err := s.client.Txn(ctx).If(s.conditions(t, &w)...).Then(s.change(&w)).Else(s.found(&w)...).Commit()
	if err != nil {
		return nil, s.failure(ctx, w.Key, err)
	}
	rev := storage.Revision(resp.Header.Revision)
	if !resp.Succeeded {
		return nil, s.refusal(ctx, t, &w, resp)
	}
	if err := s.reach(ctx, rev); err != nil {
		return nil, err
	}
	return s.mirror.Written(w.Key, rev)
}

// conditions are what a write compares.
func (s *Store) conditions(t *term, w *storage.Write) []clientv3.Cmp {
	key := s.layout.key(w.Key)
	conditions := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(s.layout.leader()), "=", int64(t.revision))}
	switch {
	case w.Expect != storage.AnyRevision:
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), "=", int64(w.Expect)))
	case w.Value == nil:
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(key), ">", 0))
	}
	if w.While != (storage.Condition{}) {
		conditions = append(conditions, clientv3.Compare(clientv3.ModRevision(s.layout.key(w.While.Key)), "=", int64(w.While.At)))
	}
	return conditions
}

// change is what a write does.
func (s *Store) change(w *storage.Write) clientv3.Op {
	key := s.layout.key(w.Key)
	if w.Value == nil {
		return clientv3.OpDelete(key)
	}
	put := clientv3.OpPut(key, "")
	put.WithValueBytes(encode(w))
	return put
}

// found reads what a refused write was refused for: the leader, the key, and the key of the
// condition.
func (s *Store) found(w *storage.Write) []clientv3.Op {
	var ops []clientv3.Op
	for _, key := range []string{s.layout.leader(), s.layout.key(w.Key), s.layout.key(w.While.Key)} {
		ops = append(ops, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	}
	return ops
}

// refusal returns why the conditions of a write did not hold.
func (s *Store) refusal(ctx context.Context, t *term, w *storage.Write, resp *clientv3.TxnResponse) error {
	var created, modified [3]storage.Revision // 0: there is no such key
	for i, r := range resp.Responses {
		if kvs := r.GetResponseRange().Kvs; len(kvs) > 0 {
			created[i], modified[i] = storage.Revision(kvs[0].CreateRevision), storage.Revision(kvs[0].ModRevision)
		}
	}
	if created[0] != t.revision {
		t.finish()
		return storage.ErrNotLeader
	}
	if err := s.reach(ctx, storage.Revision(resp.Header.Revision)); err != nil {
		return err
	}
	if w.While != (storage.Condition{}) && modified[2] != w.While.At {
		return fmt.Errorf("%w: %s is at revision %d, not at %d", storage.ErrUnmet, w.While.Key, modified[2], w.While.At)
	}
	conflict := &storage.ConflictError{Key: w.Key, Expect: w.Expect}
	if modified[1] > 0 {
		// It may have been replaced, and dropped from the history, since.
		conflict.Current, _ = s.mirror.Written(w.Key, modified[1])
	}
	return conflict
}

// failure returns the error of a transaction whose outcome is unknown, or which etcd
// refused.
func (s *Store) failure(ctx context.Context, key storage.Key, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case s.ctx.Err() != nil:
		return storage.ErrClosed
	case errors.Is(err, rpctypes.ErrNoSpace):
		return fmt.Errorf("%w (etcd has the alarm NOSPACE: compact and defragment it, or raise --quota-backend-bytes, and run etcdctl alarm disarm)", storage.ErrFull)
	case errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: %s is larger than etcd accepts: raise --max-request-bytes of its members", storage.ErrInvalid, key)
	}
	return fmt.Errorf("etcd: write %s: %w", key, err)
}
