// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
	"sync"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/local"
	"github.com/steer-dev/steer/storage/storagetest"
)

func openIn(t testing.TB, dir string) *local.Store {
	t.Helper()
	s, err := local.Open(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func openLocal(t *testing.T) storage.Store { return openIn(t, t.TempDir()) }

func TestLocalKeepsTheContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, openLocal)
}

func TestLocalAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	dirs := map[storage.Store]string{}
	var mu sync.Mutex
	open := func(t *testing.T, dir string) storage.Store {
		s := openIn(t, dir)
		mu.Lock()
		defer mu.Unlock()
		dirs[s] = dir
		return s
	}
	storagetest.Model(t, func(t *testing.T) storage.Store { return open(t, t.TempDir()) }, storagetest.ModelOptions{
		Runs: 5,
		Reopen: func(t *testing.T, s storage.Store) storage.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			dir := dirs[s]
			mu.Unlock()
			return open(t, dir)
		},
	})
}

func TestLocalIsLinearizable(t *testing.T) {
	t.Parallel()
	storagetest.Linearize(t, openLocal)
}
