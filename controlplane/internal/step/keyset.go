// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"slices"

	"github.com/steer-dev/steer/storage"
)

// KeySet is a set of keys that is read in one order.
type KeySet map[storage.Key]struct{}

// Add puts keys into the set.
func (s KeySet) Add(keys ...storage.Key) {
	for _, k := range keys {
		s[k] = struct{}{}
	}
}

// Sorted returns the keys by bucket and name.
func (s KeySet) Sorted() []storage.Key {
	keys := make([]storage.Key, 0, len(s))
	for k := range s {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, CompareKeys)
	return keys
}

// CompareKeys orders keys by bucket, then name.
func CompareKeys(a, b storage.Key) int {
	return cmp.Or(cmp.Compare(a.Bucket, b.Bucket), cmp.Compare(a.Name, b.Name))
}
