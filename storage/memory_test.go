// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storage_test

import (
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) storage.Store { return storage.NewMemory(storage.MemoryOptions{}) }
	storagetest.Run(t, open)
}
