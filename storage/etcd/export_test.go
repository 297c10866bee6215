// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"fmt"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/steer-dev/steer/storage"
)

// Transact implements storagetest.Transactor, as another process would write.
func (s *Store) Transact(ctx context.Context, writes ...storage.Write) (storage.Revision, error) {
	var ops []clientv3.Op
	for _, w := range writes {
		ops = append(ops, s.change(&w))
	}
	resp, err := s.client.Txn(ctx).Then(ops...).Commit()
	if err != nil {
		return 0, err
	}
	rev := storage.Revision(resp.Header.Revision)
	return rev, s.reach(ctx, rev)
}

// Expire revokes the lease of the leader, as if it had run out.
func (s *Store) Expire(ctx context.Context) error {
	resp, err := s.client.Get(ctx, s.layout.leader())
	if err != nil {
		return err
	}
	if len(resp.Kvs) == 0 {
		return fmt.Errorf("nothing leads %s", s.layout)
	}
	_, err = s.client.Revoke(ctx, clientv3.LeaseID(resp.Kvs[0].Lease))
	return err
}

// WithoutKeepAlive has connections stay that nothing answers on.
func (o Options) WithoutKeepAlive() Options {
	o.keepAlive = 24 * time.Hour
	return o
}

// Client returns the client of the store.
func (s *Store) Client() *clientv3.Client { return s.client }
