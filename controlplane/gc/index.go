// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// index maps owners to dependents and back. It holds only objects that have
// owners, so that its size is that of the ownership graph and not of the store.
type index struct {
	// dependents of an owner, whether it exists or not.
	dependents map[types.UID]step.KeySet
	// owners of a dependent.
	owners map[storage.Key][]types.UID
}

func newIndex() *index {
	return &index{dependents: map[types.UID]step.KeySet{}, owners: map[storage.Key][]types.UID{}}
}

// put records the owners that an object has now.
func (x *index) put(key storage.Key, obj *step.Object) {
	now := uidsOf(obj.Owners)
	if slices.Equal(x.owners[key], now) {
		return
	}
	x.remove(key)
	if len(now) == 0 {
		return
	}
	x.owners[key] = now
	for _, uid := range now {
		set := x.dependents[uid]
		if set == nil {
			set = step.KeySet{}
			x.dependents[uid] = set
		}
		set.Add(key)
	}
}

// remove removes an object.
func (x *index) remove(key storage.Key) {
	for _, uid := range x.owners[key] {
		delete(x.dependents[uid], key)
		if len(x.dependents[uid]) == 0 {
			delete(x.dependents, uid)
		}
	}
	delete(x.owners, key)
}

// dependentsOf returns the objects that refer to a uid, in the order of keys.
func (x *index) dependentsOf(uid types.UID) []storage.Key {
	if len(x.dependents[uid]) == 0 {
		return nil
	}
	return x.dependents[uid].Sorted()
}

func uidsOf(refs []metav1.OwnerReference) []types.UID {
	if len(refs) == 0 {
		return nil
	}
	out := make([]types.UID, 0, len(refs))
	for _, r := range refs {
		out = append(out, r.UID)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
