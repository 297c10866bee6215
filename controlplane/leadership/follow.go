// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package leadership

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/steer-dev/steer/storage"
)

// preparedKey is written by a leader when its first [Options.TakeOver] has returned.
func preparedKey() storage.Key { return storage.Key{Bucket: "steer.dev/servers", Name: "prepared"} }

// CatchUp implements [apiserver.Leadership]: it loads what the store says, unless that is
// loaded. It fails with [ErrOtherKeys] where this server is none of the cluster.
func (s *Server) CatchUp(ctx context.Context) error {
	if err := s.CheckKeys(); err != nil {
		return err
	}
	at := s.options.Store.LastModified(s.options.Follows...)
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.everLoaded && at <= s.loaded {
		return nil
	}
	if err := s.options.Load(ctx); err != nil {
		return fmt.Errorf("leadership: follow what other servers store: %w", err)
	}
	s.everLoaded, s.loaded = true, at
	return nil
}

// keepUp catches up while there are no requests as well, for watches of what is gone.
func (s *Server) keepUp(ctx context.Context) {
	concerns := func(e storage.Event) bool { return slices.Contains(s.options.Follows, e.Record.Key.Bucket) }
	for ctx.Err() == nil {
		cursor, err := s.options.Store.Watch(storage.Range{WakeOn: concerns}, s.options.Store.Latest().Revision())
		if errors.Is(err, storage.ErrClosed) {
			return
		}
		for err == nil {
			if err := s.CatchUp(ctx); err != nil && ctx.Err() == nil {
				s.options.Log.Error("this server does not serve what is stored", "err", err)
			}
			_, err = cursor.Next(ctx)
		}
		if cursor != nil {
			cursor.Close()
		}
	}
}

// takeOver prepares the server to execute requests.
func (s *Server) takeOver(ctx context.Context) error {
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	if err := s.noteKeys(ctx); err != nil {
		return err
	}
	if err := s.options.TakeOver(ctx); err != nil {
		return err
	}
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	if s.options.Store.Get(preparedKey()) == nil {
		w := storage.Write{Key: preparedKey(), Value: []byte("{}"), Expect: storage.AnyRevision}
		if _, err := s.options.Store.Commit(ctx, w); err != nil {
			return fmt.Errorf("leadership: note that the database is prepared: %w", err)
		}
	}
	s.options.Prepared()
	return nil
}

// AwaitPrepared returns when a leader, this one or another, has taken over for the first time.
func (s *Server) AwaitPrepared(ctx context.Context) error {
	store := s.options.Store
	cursor, err := store.Watch(storage.Range{Bucket: preparedKey().Bucket}, store.Latest().Revision())
	if err != nil {
		return fmt.Errorf("leadership: wait for a server that leads: %w", err)
	}
	defer cursor.Close()
	for store.Get(preparedKey()) == nil {
		if _, err := cursor.Next(ctx); err != nil {
			return fmt.Errorf("leadership: wait for a server that leads: %w", err)
		}
	}
	if err := s.CatchUp(ctx); err != nil {
		return err
	}
	s.options.Prepared()
	return nil
}
