// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcd

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/steer-dev/steer/storage"
)

// witness is the newest change of the prefix up to a revision. Another history that lost
// something of the prefix, as a restored backup has, does not have it at that revision,
// also if others have written to etcd since: the terms show only what leaders of this prefix did.
type witness struct {
	Key     string           `json:"key"`
	At      storage.Revision `json:"at"`
	Deleted bool             `json:"deleted,omitempty"`
}

// attest fails with [ErrRestored] if etcd does not have the witness of what was seen up to a
// revision. Where that revision is compacted nothing can be said, and nothing is lost: no
// history is continued from it. Clients list again, as after a restore with a bump.
func (s *Store) attest(ctx context.Context, seen storage.Revision, w witness) error {
	if w.At == 0 {
		return nil
	}
	seen = max(seen, w.At)
	resp, err := s.getSoon(ctx, w.Key, clientv3.WithRev(int64(seen)), clientv3.WithKeysOnly())
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return nil
	case errors.Is(err, rpctypes.ErrFutureRev):
		return fmt.Errorf("%w (revision %d was seen, and is to come)", ErrRestored, seen)
	case err != nil:
		return fmt.Errorf("etcd: ask %v for what was seen: %w", s.options.Endpoints, err)
	}
	at := storage.Revision(0)
	if len(resp.Kvs) > 0 {
		at = storage.Revision(resp.Kvs[0].ModRevision)
	}
	if w.Deleted && at == 0 || !w.Deleted && at == w.At {
		return nil
	}
	return fmt.Errorf("%w (%s has its revision %d, and %d was seen)", ErrRestored, w.Key, at, w.At)
}

// countStreams counts the watches that the client opens: it opens one anew whenever a
// connection breaks, without a word, and maybe to an etcd that was restored meanwhile.
func (s *Store) countStreams(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s.streams.Add(1)
	return streamer(ctx, desc, conn, method, opts...)
}

// attestStream checks the history of a stream before the first message of it is applied. All
// members are stopped for a restore, so that etcd has one history as long as a stream lives.
func (s *Store) attestStream() error {
	now := s.streams.Load()
	if now == s.attested.Load() {
		return nil
	}
	seen := s.seen()
	err := s.attest(s.ctx, seen.Revision, seen.Last)
	switch {
	case errors.Is(err, ErrRestored):
		return s.lose(err)
	case err != nil:
		return err
	}
	s.attested.Store(now)
	return nil
}
