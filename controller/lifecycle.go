// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"sync"
)

var (
	// ErrStarted is a second Start of a controller or of a source, which belongs to
	// one controller: make another one.
	ErrStarted = errors.New("it has been started before, and is started once: make another one")
	// ErrStopped is a Start of a source, or an Add to a [WatchSet], after the
	// controller has ended.
	ErrStopped = errors.New("it has been stopped, with its controller: make another one")
)

// lifecycle lets a source start once, and not after its stop.
type lifecycle struct {
	mu               sync.Mutex
	started, stopped bool
}

// start calls begin, before any stop, unless the source has been started or stopped.
func (l *lifecycle) start(begin func() error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.stopped:
		return ErrStopped
	case l.started:
		return ErrStarted
	}
	l.started = true
	return begin()
}

// stop lets no start come after it, and reports whether there was one.
func (l *lifecycle) stop() (started bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stopped = true
	return l.started
}

// errNotStarted is a wait for the sync of a source that nothing has started.
var errNotStarted = errors.New("the source has not been started")
