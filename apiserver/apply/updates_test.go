// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestOwnershipAfterUpdatesIsThatOfTheLibrary compares managedFields over random histories.
func TestOwnershipAfterUpdatesIsThatOfTheLibrary(t *testing.T) {
	t.Parallel()
	synctest.Test(t, ownershipAfterUpdates) // entries are ordered by time
}

func ownershipAfterUpdates(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, status := endpoints(t)
		live := empty()
		for step := range 8 {
			next := randomWidget(r)
			if step > 0 && r.IntN(3) > 0 { // change a part of the current object
				for _, key := range []string{"spec", "status", "metadata"} {
					if value, ok := live.Object[key]; ok && r.IntN(2) == 0 {
						next.Object[key] = value
					}
				}
				next = next.DeepCopy()
			}
			next.SetManagedFields(live.GetManagedFields())
			if r.IntN(10) == 0 {
				next.SetManagedFields(nil)
			}
			endpoint := m
			if r.IntN(3) == 0 {
				endpoint = status
			}
			manager := fmt.Sprintf("m%d", r.IntN(4))
			library, err := endpoint.bind(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			want, err := library.Update(live, next.DeepCopy(), manager)
			if err != nil {
				t.Fatal(err)
			}
			before := live.DeepCopy()
			was := underWay(live)
			updated, err := endpoint.Update(t.Context(), was, underWay(next), manager)
			if err != nil {
				t.Fatal(err)
			}
			got := stored(updated)
			if diff := cmp.Diff(record(want.(Object)), record(got)); diff != "" {
				t.Fatalf("seed %d step %d: record (-library +ours):\n%s", seed, step, diff)
			}
			if diff := cmp.Diff(before, decoded(was)); diff != "" {
				t.Fatalf("seed %d step %d: live was changed:\n%s", seed, step, diff)
			}
			live = got
		}
	}
}

func randomWidget(r *rand.Rand) *unstructured.Unstructured {
	u := empty()
	word := func() any { return string(rune('a' + r.IntN(4))) }
	words := func() []any {
		seen, out := map[any]bool{}, []any{}
		for range r.IntN(3) {
			if w := word(); !seen[w] {
				seen[w], out = true, append(out, w)
			}
		}
		return out
	}
	object := func(members map[string]func() any) map[string]any {
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(members)) { // the same seed, the same object
			switch r.IntN(20) {
			case 0:
				out[name] = nil
			case 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:
				out[name] = members[name]()
			}
		}
		return out
	}
	free := func() any {
		return object(map[string]func() any{"x": word, "y": func() any { return object(map[string]func() any{"z": word}) }, "l": func() any { return words() }})
	}
	u.Object["spec"] = object(map[string]func() any{
		"replicas": func() any { return int64(r.IntN(3)) }, "colour": word,
		"tags": func() any { return words() }, "plain": func() any { return words() }, "free": free,
		"ports": func() any {
			out := []any{}
			for _, name := range words() {
				port := object(map[string]func() any{"port": func() any { return int64(r.IntN(3)) }, "note": word})
				port["name"] = name
				out = append(out, port)
			}
			return out
		},
	})
	if r.IntN(2) == 0 {
		u.Object["status"] = object(map[string]func() any{"ready": func() any { return int64(r.IntN(3)) }})
	}
	u.Object["metadata"] = object(map[string]func() any{
		"labels": func() any { return object(map[string]func() any{"a": word, "b": word}) }, "finalizers": func() any { return words() },
	})
	return u
}
