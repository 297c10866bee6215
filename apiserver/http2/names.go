// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Clients choose names: so many are remembered, up to a length.
const (
	maxNames = 256
	maxName  = 64
)

// names remembers how names of headers are spelt: HTTP/2 has them in lower case,
// net/http in its canonical form. It is safe for concurrent use.
type names struct {
	canonical, lower spelling
}

// spelling maps names to another form of themselves.
type spelling struct {
	known atomic.Pointer[map[string]string]
	mu    sync.Mutex
}

func (s *spelling) of(name string, spell func(string) string) string {
	known := s.known.Load()
	if known != nil {
		if out, ok := (*known)[name]; ok {
			return out
		}
	}
	out := spell(name)
	if len(name) > maxName || known != nil && len(*known) >= maxNames {
		return out
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	more := map[string]string{}
	if known = s.known.Load(); known != nil {
		more = maps.Clone(*known)
	}
	if len(more) < maxNames {
		more[strings.Clone(name)] = strings.Clone(out)
		s.known.Store(&more)
	}
	return out
}

// canonicalOf returns the form of net/http.
func (n *names) canonicalOf(name string) string {
	return n.canonical.of(name, http.CanonicalHeaderKey)
}

// lowerOf returns the form of HTTP/2.
func (n *names) lowerOf(name string) string { return n.lower.of(name, strings.ToLower) }

// date is the text of the Date header, made once a second.
type date struct{ last atomic.Pointer[second] }

type second struct {
	unix int64
	text string
}

func (d *date) text(now time.Time) string {
	last, unix := d.last.Load(), now.Unix()
	if last == nil || last.unix != unix {
		last = &second{unix, now.UTC().Format(http.TimeFormat)}
		d.last.Store(last)
	}
	return last.text
}
