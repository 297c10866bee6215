// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest_test

import (
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest"
)

func openShared(*testing.T) storage.Store {
	return storagetest.NewShared(1).Open(storage.MemoryOptions{})
}

func TestStoreOnASharedDatabaseKeepsTheContract(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, openShared)
}

func TestStoreOnASharedDatabaseAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storagetest.Model(t, openShared, storagetest.ModelOptions{})
}

func TestStoresOnASharedDatabaseAreLinearizable(t *testing.T) {
	t.Parallel()
	db := storagetest.NewShared(1)
	var stores []storage.Store
	for range 3 {
		s := db.Open(storage.MemoryOptions{})
		t.Cleanup(func() { s.Close() })
		stores = append(stores, s)
	}
	storagetest.LinearizeStores(t, stores...)
}
