// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client"
)

// longestRewatch bounds the pause before the lease is watched again.
const longestRewatch = time.Minute

// releases watches the lease while this process waits for it, so that a release
// is noticed at once. It is an addition to the regular attempts, which go on
// whatever becomes of the watch: it may hang, be refused, or end.
type releases struct {
	// seen yields after the lease was given up or deleted; what was not taken
	// counts once. It is never closed.
	seen   chan struct{}
	cancel context.CancelFunc
	ended  chan struct{}
}

// watchReleases begins to watch the lease of e, until ctx ends or stop.
func watchReleases(ctx context.Context, e *elector) *releases {
	ctx, cancel := context.WithCancel(ctx)
	r := &releases{seen: make(chan struct{}, 1), cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.run(ctx, e.client, e.opts)
	}()
	return r
}

// stop ends the watch without waiting for it.
func (r *releases) stop() { r.cancel() }

// join ends the watch and waits until its goroutine has returned.
func (r *releases) join() {
	r.cancel()
	<-r.ended
}

// run watches again and again: at once after a watch that lasted a minute, since API servers
// end good ones, too; otherwise after a pause, which doubles from the retry period to a minute.
func (r *releases) run(ctx context.Context, c client.Client, o Election) {
	pause := o.Timing.Retry
	for {
		began := time.Now()
		stream, err := c.Watch(ctx, &coordinationv1.LeaseList{},
			client.InNamespace(o.Namespace), client.MatchingFields{"metadata.name": o.Lease})
		if err == nil {
			r.follow(stream)
		}
		if time.Since(began) >= longestRewatch {
			pause = 0
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(max(2*pause, o.Timing.Retry), longestRewatch)
	}
}

// follow reads a watch to its end.
func (r *releases) follow(stream watch.Interface) {
	for event := range stream.ResultChan() {
		if event.Type == watch.Bookmark { // a Lease with nothing but its revision
			continue
		}
		lease, ok := event.Object.(*coordinationv1.Lease)
		if !ok || event.Type != watch.Deleted && recordOf(lease).Holder != "" {
			continue
		}
		select {
		case r.seen <- struct{}{}:
		default: // told already
		}
	}
}
