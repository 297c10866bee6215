// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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
	if w.Expect == storage.Absent {
		return s.create(ctx, t, &w)
	}
	before := storage.Revision(s.reached.Load())
	resp, repeated, err := s.transact(ctx, t, &w)
	if err != nil {
		return nil, s.failure(ctx, w.Key, err)
	}
	if !resp.Succeeded && repeated {
		return s.settle(ctx, t, &w, before, resp)
	}
	return s.outcome(ctx, t, &w, resp)
}

// outcome returns what a transaction has done that was not made before.
func (s *Store) outcome(ctx context.Context, t *term, w *storage.Write, resp *clientv3.TxnResponse) (*storage.Record, error) {
	if !resp.Succeeded {
		return nil, s.refusal(ctx, t, w, resp)
	}
	rev := storage.Revision(resp.Header.Revision)
	if err := s.reach(ctx, rev); err != nil {
		return nil, err
	}
	return s.mirror.Written(w.Key, rev)
}

// firstCommit bounds the first attempt of a write that may be repeated.
const firstCommit = time.Second

// transact commits a write, and repeats it if no answer comes: the member is paused, or etcd
// has lost the transaction in a change of its leader. Of a write that expects a revision one
// attempt at most succeeds, because each changes the revision. [Store.create] is for those
// that expect none.
func (s *Store) transact(ctx context.Context, t *term, w *storage.Write) (resp *clientv3.TxnResponse, repeated bool, err error) {
	for try := firstCommit; ; try *= 2 {
		within, cancel := context.WithTimeout(ctx, try)
		if w.Expect == storage.AnyRevision {
			within = ctx
		}
		resp, err = s.client.Txn(within).If(s.conditions(t, w)...).Then(s.change(w)).Else(s.found(w)...).Commit()
		again := err != nil && w.Expect != storage.AnyRevision && s.isOpen(ctx, within, err)
		cancel()
		if !again {
			return resp, repeated, err
		}
		repeated = true
		s.pause(retryAfter / 10)
		s.takeTurns()
	}
}

// isOpen reports whether it is to be found out what became of an attempt, which had the time
// of within, at a write that has that of ctx.
func (s *Store) isOpen(ctx, within context.Context, err error) bool {
	return ctx.Err() == nil && s.ctx.Err() == nil && (within.Err() != nil || isUnknown(err))
}

// isLate reports whether etcd says with an error that it has not answered a request in time.
func isLate(err error) bool {
	for _, known := range []error{rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail, rpctypes.ErrTimeoutDueToConnectionLost, rpctypes.ErrLeaderChanged, rpctypes.ErrNoLeader, rpctypes.ErrStopped} {
		if errors.Is(err, known) {
			return true
		}
	}
	return false
}

// isUnknown reports whether an error leaves open whether a transaction was executed.
func isUnknown(err error) bool {
	if isLate(err) {
		return true
	}
	if _, named := errors.AsType[rpctypes.EtcdError](err); named {
		return false
	}
	// The connection broke; or "raft proposal dropped", which has no code.
	return status.Code(err) == codes.Unavailable || status.Code(err) == codes.Unknown
}

// settle returns the outcome of a repeated write that was refused: an earlier attempt may
// have succeeded, after a revision. The history says what followed the version that it
// expects; of a deletion it does not say whose it was.
func (s *Store) settle(ctx context.Context, t *term, w *storage.Write, before storage.Revision, resp *clientv3.TxnResponse) (*storage.Record, error) {
	if _, modified := versions(resp); modified[1] == w.Expect {
		return nil, s.refusal(ctx, t, w, resp) // none has, and none will
	}
	if err := s.reach(ctx, storage.Revision(resp.Header.Revision)); err != nil {
		return nil, err
	}
	events, _ := s.since(w.Key, before)
	for _, e := range events {
		switch {
		case e.Previous == nil || e.Previous.Modified != w.Expect || e.Deleted && w.Value == nil:
		case isOf(w, e):
			return e.Record, nil
		default: // another write has replaced what it expects, for good
			return nil, s.refusal(ctx, t, w, resp)
		}
	}
	return nil, fmt.Errorf("etcd: write %s: the connection to etcd broke, whether it was made is unknown", w.Key)
}

// isOf reports whether an event is what a write makes that is no deletion.
func isOf(w *storage.Write, e storage.Event) bool {
	return !e.Deleted && w.Value != nil && bytes.Equal(e.Record.Value, w.Stamped(e.Record.Modified))
}

// since returns the events of a key after a revision. Where the history is gone it returns
// those that it found and an error.
func (s *Store) since(key storage.Key, after storage.Revision) (out []storage.Event, err error) {
	cursor, err := s.mirror.Watch(storage.Range{Bucket: key.Bucket, Prefix: key.Name}, after)
	if err != nil {
		return nil, err
	}
	defer cursor.Close()
	for {
		batch, err := cursor.Poll()
		if err != nil || len(batch.Events) == 0 {
			return out, err
		}
		for _, e := range batch.Events {
			if e.Record.Key == key {
				out = append(out, e)
			}
		}
	}
}

// versions returns the revisions of the keys that found reads; 0: there is no such key.
func versions(resp *clientv3.TxnResponse) (created, modified [3]storage.Revision) {
	for i, r := range resp.Responses {
		if kvs := r.GetResponseRange().Kvs; len(kvs) > 0 {
			created[i], modified[i] = storage.Revision(kvs[0].CreateRevision), storage.Revision(kvs[0].ModRevision)
		}
	}
	return created, modified
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
	created, modified := versions(resp)
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
