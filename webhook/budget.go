// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Bounds of the reviews that are under way: read, or being answered.
const (
	// admissionBytes are what the bodies of all admission requests may have, and
	// admissionShare what those of one client may have of it, so that the API server has its
	// turn beside others.
	admissionBytes = 32 << 20
	admissionShare = admissionBytes / 2
	// conversionBytes is the same for conversions: one of the largest.
	conversionBytes = maxConversion
	// maxWaiting reviews wait for their turn, waitingShare of them of one client, and each for
	// waitTimeout at most.
	maxWaiting, waitingShare = 1024, 256
	waitTimeout              = 10 * time.Second
	// bodyTimeout is how long a client may take to send a body, and listTimeout one to convert.
	bodyTimeout = 10 * time.Second
	listTimeout = 30 * time.Second
)

// budget bounds the bytes of reviews under way. It is safe for concurrent use.
type budget struct {
	total, share int64

	mu      sync.Mutex
	used    int64
	by      map[string]int64 // of it, by client
	waiting []*claim         // in the order in which they came
}

// claim is a review that waits for its turn.
type claim struct {
	client  string
	bytes   int64
	granted chan struct{}
}

func newBudget(total, share int64) *budget {
	return &budget{total: total, share: share, by: map[string]int64{}}
}

// full refuses a review.
func full() error {
	return &requestError{http.StatusTooManyRequests, "too many bytes of reviews are under way: send smaller reviews, or fewer at once"}
}

// take waits until there is room for so many bytes of a client. give returns them.
func (b *budget) take(ctx context.Context, client string, bytes int64) (give func(), err error) {
	c := &claim{client, bytes, make(chan struct{})}
	b.mu.Lock()
	own := 0
	for _, other := range b.waiting {
		if other.client == client {
			own++
		}
	}
	if len(b.waiting) >= maxWaiting || own >= waitingShare {
		b.mu.Unlock()
		return nil, full()
	}
	b.waiting = append(b.waiting, c)
	b.grant()
	b.mu.Unlock()
	give = func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.used -= c.bytes
		if b.by[c.client] -= c.bytes; b.by[c.client] == 0 {
			delete(b.by, c.client)
		}
		b.grant()
	}
	timer := time.NewTimer(waitTimeout)
	defer timer.Stop()
	select {
	case <-c.granted:
		return give, nil
	case <-timer.C:
	case <-ctx.Done():
	}
	b.mu.Lock()
	at := slices.Index(b.waiting, c)
	if at >= 0 {
		b.waiting = slices.Delete(b.waiting, at, at+1)
		b.grant() // of what waited behind it
	}
	b.mu.Unlock()
	if at < 0 {
		give() // it was granted meanwhile
	}
	return nil, full()
}

// grant gives those that wait their turn. One whose client has its share does not hold up the
// others; one for which there is no room does, so that large ones have their turn. The budget
// is locked.
func (b *budget) grant() {
	b.waiting = slices.DeleteFunc(b.waiting, func() func(*claim) bool {
		blocked := false
		return func(c *claim) bool {
			if blocked || b.by[c.client]+c.bytes > b.share {
				return false
			}
			if b.used+c.bytes > b.total {
				blocked = true
				return false
			}
			b.used += c.bytes
			b.by[c.client] += c.bytes
			close(c.granted)
			return true
		}
	}())
}

// clientOf names who sends a request: one address; an API server in this process has none.
func clientOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
