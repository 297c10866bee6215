// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"context"
	"testing"

	"github.com/steer-dev/steer/internal/lifecycletest"
	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
)

// keptStore is a store with its upkeep.
type keptStore interface {
	storage.Store
	storage.Keeper
}

func TestStoresKeepTheLifecycle(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) keptStore{
		"Memory": func(*testing.T) keptStore { return storage.NewMemory(storage.MemoryOptions{}) },
		"Local": func(t *testing.T) keptStore {
			store, err := local.Open(t.TempDir(), local.Options{})
			if err != nil {
				t.Error(err)
			}
			return store
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lifecycletest.RunClosed(t, func(t *testing.T) lifecycletest.Closed {
				store := open(t)
				return lifecycletest.Closed{
					Close: store.Close,
					Use: func(ctx context.Context) error {
						_, err := store.Commit(ctx, storage.Write{Key: storage.Key{Bucket: "b", Name: "a"}, Value: []byte("{}"), Expect: storage.AnyRevision})
						return err
					},
					ErrClosed: storage.ErrClosed,
				}
			})
		})
	}
}
