// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package local_test

import (
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

func TestLocalIsLinearizable(t *testing.T) {
	t.Parallel()
	storagetest.Linearize(t, openLocal)
}
