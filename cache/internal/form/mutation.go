// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package form

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
)

// MutationDetector keeps a copy of every shared object and panics when the
// object differs from it.
type MutationDetector struct {
	On     bool // else it does nothing
	mu     sync.Mutex
	copies map[client.Object]client.Object
}

// Note remembers the new object of a change and checks the one it replaces.
func (d *MutationDetector) Note(c store.Change) {
	if !d.On {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if c.Old != nil {
		d.compare(c.Old)
		delete(d.copies, c.Old)
	}
	if _, compact := c.New.(*packed); c.New != nil && !compact {
		if d.copies == nil {
			d.copies = map[client.Object]client.Object{}
		}
		d.copies[c.New] = c.New.DeepCopyObject().(client.Object)
	}
}

// Check compares every object with its copy.
func (d *MutationDetector) Check() {
	if !d.On {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for obj := range d.copies {
		d.compare(obj)
	}
}

func (d *MutationDetector) compare(obj client.Object) {
	if was, ok := d.copies[obj]; ok && !equality.Semantic.DeepEqual(was, obj) {
		panic(fmt.Sprintf("a shared object of the cache was changed: %T %s: DeepCopy what a handler, Lister.All or a transform gave before changing it\n was %+v\n is  %+v",
			obj, client.ObjectKeyFromObject(obj), was, obj))
	}
}
