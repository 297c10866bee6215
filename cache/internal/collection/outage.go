// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package collection

import (
	"context"
	"log/slog"
	"sync"

	"github.com/steer-dev/steer/cache/internal/reflector"
)

// outage is of the sources that cannot reach their server. It is safe for concurrent use.
type outage struct {
	mu   sync.Mutex
	lost map[*Source]bool
}

// enter adds a source, and reports whether it is the only one.
func (o *outage) enter(s *Source) (first bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost == nil {
		o.lost = map[*Source]bool{}
	}
	first = len(o.lost) == 0
	o.lost[s] = true
	return first
}

// leave takes a source away, and reports whether that ended the outage.
func (o *outage) leave(s *Source) (last bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	was := o.lost[s]
	delete(o.lost, s)
	return was && len(o.lost) == 0
}

// Log logs a report of the source's reflector, which calls it: each error once, and a server
// that cannot be reached once for all its sources. A refusal is an answer, and ends an outage
// like any other.
func (s *Source) Log(ctx context.Context, log *slog.Logger, r reflector.Report) {
	if ctx.Err() != nil || r.Err == nil && r.State != reflector.Watching {
		return
	}
	kind, was := s.Collection.GVK.String(), s.logged
	about := []any{"kind", kind, "state", r.State.String(), "retry", r.Delay, "err", r.Err}
	if isNetwork(r.Err) {
		s.logged = ""
		if s.server.outage.enter(s) {
			log.WarnContext(ctx, "watch is interrupted", append(about, "others", "while the server cannot be reached, no other watch is logged")...)
		}
		return
	}
	if s.server.outage.leave(s) {
		log.InfoContext(ctx, "the API server is reached again", "kind", kind)
	}
	if r.Err == nil {
		s.logged = ""
		if was != "" {
			log.InfoContext(ctx, "watch is well again", "kind", kind)
		}
		return
	}
	if s.logged = r.Err.Error(); s.logged != was {
		log.WarnContext(ctx, "watch is interrupted", about...)
	}
}

// Leave says that the source is not followed any more.
func (s *Source) Leave() { s.server.outage.leave(s) }
