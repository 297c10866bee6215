// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"time"

	"github.com/steer-dev/steer/storage"
)

// Alarms are when objects have to be looked at although nothing was written.
type Alarms map[storage.Key]time.Time

// Ring moves those whose time has come to what is due.
func (a Alarms) Ring(now time.Time, due KeySet) {
	for key, at := range a {
		if !now.Before(at) {
			delete(a, key)
			due.Add(key)
		}
	}
}

// Wake returns when the first of them is, as a [Waker] does.
func (a Alarms) Wake() time.Time {
	var first time.Time
	for _, at := range a {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}
