// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package teststore opens the stores of tests. It is short because it holds one choice that
// suites of several packages share.
package teststore

import (
	"os"
	"testing"

	"github.com/steer-dev/steer/storage"
	"github.com/steer-dev/steer/storage/storagetest/shared"
)

// Variable is the environment variable that says which store [New] returns.
const Variable = "STEER_TEST_STORE"

// New returns an empty store for a test of what is above it, closed when the test ends:
// one in memory, or, if STEER_TEST_STORE is "shared", one on a [shared.Database] database of its
// own. Suites run with both what must not depend on a database of its own.
func New(t testing.TB) storage.Store {
	var s storage.Store
	switch kind := os.Getenv(Variable); kind {
	case "", "memory", "several":
		s = storage.NewMemory(storage.MemoryOptions{})
	case "shared":
		s = shared.New(1).Open(storage.MemoryOptions{})
	default:
		t.Fatalf("%s is %q; it can be memory, shared or several", Variable, kind)
	}
	t.Cleanup(func() { _ = s.Close() }) // closing such a store does not fail
	return s
}

// Several reports whether STEER_TEST_STORE is "several": tests that can have a server that
// follows another one do so.
func Several() bool { return os.Getenv(Variable) == "several" }
