// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"maps"
	"math/rand/v2"
	"testing"
)

func TestTheTableAgreesWithAMap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for _, spread := range []uint64{3, 40, 1 << 62} { // of hashes: some tables are nothing but collisions
		table, want := newTable[int](), map[int]*entry[int]{}
		for step := range 20_000 {
			key := r.IntN(10 + step/50)
			hash := table.hash(key) % spread
			e := table.find(key, hash)
			if e != want[key] {
				t.Fatalf("key %d is found as %v, not as %v", key, e, want[key])
			}
			if e != nil && (r.IntN(2) == 0 || len(want) > 300) {
				table.remove(e)
				delete(want, key)
			} else if e == nil {
				want[key] = &entry[int]{key: key, hash: hash}
				table.insert(want[key])
			}
		}
		for _, e := range table.all() {
			if want[e.key] != e {
				t.Fatalf("key %d is listed, and was removed", e.key)
			}
		}
		if table.len != len(want) || len(table.all()) != len(want) {
			t.Fatalf("%d of %d entries are listed, not %d", len(table.all()), table.len, len(want))
		}
		for e := range maps.Values(want) {
			table.remove(e)
		}
		if table.len != 0 || len(table.all()) != 0 {
			t.Fatalf("%d entries are left over", table.len)
		}
	}
}

func TestAnEmptyTableGivesBackWhatABurstTook(t *testing.T) {
	t.Parallel()
	table := newTable[int]()
	var entries []*entry[int]
	for i := range 100_000 {
		entries = append(entries, &entry[int]{key: i, hash: table.hash(i)})
		table.insert(entries[i])
	}
	for _, e := range entries {
		table.remove(e)
	}
	if len(table.slots) > mostIdleSlots {
		t.Errorf("%d slots are kept", len(table.slots))
	}
}
