// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"sync"
	"time"
)

// moments wake many watches with one timer. Its zero value is ready; it is safe for
// concurrent use.
type moments struct {
	mu     sync.Mutex
	moment time.Time
	come   chan struct{}
}

// at returns what is closed at a moment. Moments are asked for again and again
// until the next one is.
func (m *moments) at(moment time.Time) <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.come == nil || !m.moment.Equal(moment) {
		come := make(chan struct{})
		time.AfterFunc(time.Until(moment), func() { close(come) })
		m.moment, m.come = moment, come
	}
	return m.come
}
