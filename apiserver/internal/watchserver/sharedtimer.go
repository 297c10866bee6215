// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"sync"
	"time"
)

// sharedTimer wakes many watches with one timer. Its zero value is ready; it is safe
// for concurrent use.
type sharedTimer struct {
	mu    sync.Mutex
	time  time.Time
	fired chan struct{}
}

// C returns a channel that is closed at a time. All calls with the same time share it
// until a call names another time.
func (m *sharedTimer) C(at time.Time) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fired == nil || !m.time.Equal(at) {
		fired := make(chan struct{})
		time.AfterFunc(time.Until(at), func() { close(fired) })
		m.time, m.fired = at, fired
	}
	return m.fired
}
