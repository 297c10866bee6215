// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/steer-dev/steer/storage"
)

// Sender carries one request out. An error reports that it was not, or was not
// fully, successful. It is safe for concurrent use, and returns when ctx ends.
type Sender func(ctx context.Context, r Request) error

// orDo carries out a request by its own function, if it has one.
func (s Sender) orDo(ctx context.Context, r Request) error {
	if r.Do != nil {
		return r.Do(ctx)
	}
	return s(ctx, r)
}

// Runner feeds controllers with the history of a store and sends their
// requests: [Runner.Advance] and [Runner.Settle] on demand, one after the other;
// [Runner.Run] by itself, without a controller waiting for another one's requests.
// It is for one goroutine at a time, except Close and Idle.
type Runner struct {
	store       storage.Store
	controllers []*member
	send        Sender
	log         *slog.Logger

	cursor storage.Cursor // nil: start over from a snapshot
	at     storage.Revision
	failed bool // whether a controller waits after a failure

	// mu guards what Idle and the senders share with Run.
	mu     sync.Mutex
	idleAt storage.Revision // up to which nothing is left to do
	rested chan struct{}    // closed when idleAt moves; nil while no call waits
	wake   func()           // ends the waiting that began last; nil before the first one
	signal bool             // whether the next waiting ends at once
}

// NewRunner returns a runner that has seen nothing yet.
func NewRunner(store storage.Store, send Sender, log *slog.Logger, controllers ...Controller) *Runner {
	send = send.orDo
	r := &Runner{store: store, send: send, log: log}
	for _, c := range controllers {
		_, pipelined := c.(Pipelined)
		r.controllers = append(r.controllers, &member{Controller: c, out: newOutbox(send, pipelined, r.endWait), pipelined: pipelined})
		if s, ok := c.(Signaller); ok {
			s.OnSignal(r.endWait)
		}
	}
	return r
}

// Settle advances until nothing is left to do now, and returns how many requests
// that took. It gives up when requests keep failing.
func (r *Runner) Settle(ctx context.Context) (int, error) {
	total := 0
	for tries := 0; ; {
		sent, err := r.Advance(ctx)
		total += sent
		if err != nil {
			return total, err
		}
		if !r.failed {
			if _, due := r.untilWake(); sent == 0 && !due {
				return total, nil
			}
			if ctx.Err() != nil {
				return total, context.Cause(ctx)
			}
			tries = 0
			continue
		}
		if tries++; tries == 10 {
			return total, errors.New("controlplane: requests of the built-in controllers keep failing; see the log")
		}
	}
}

// Advance takes in what was written since the last call, asks every controller
// once and sends what they ask for, one request after the other. It returns how
// many requests that was.
func (r *Runner) Advance(ctx context.Context) (int, error) {
	return r.advance(ctx, r.controllers)
}

// Names are those of the controllers, in the order in which Advance asks them.
func (r *Runner) Names() []string {
	names := make([]string, len(r.controllers))
	for i, m := range r.controllers {
		names[i] = m.Name()
	}
	return names
}

// AdvanceOne is Advance that asks one controller alone.
func (r *Runner) AdvanceOne(ctx context.Context, name string) (int, error) {
	i := slices.Index(r.Names(), name)
	if i < 0 {
		return 0, fmt.Errorf("controlplane: step the controller %q: this plane has %s", name, strings.Join(r.Names(), ", "))
	}
	return r.advance(ctx, r.controllers[i:i+1])
}

func (r *Runner) advance(ctx context.Context, controllers []*member) (int, error) {
	view, err := r.view(ctx)
	if err != nil {
		return 0, err
	}
	r.failed = false
	sent := 0
	for _, m := range controllers {
		for _, request := range m.Sync(view, time.Now()) {
			err := r.send(ctx, request)
			r.report(m, request, err)
			r.failed = r.failed || err != nil
			sent++
		}
	}
	return sent, nil
}

// report hands the outcome of a request to the controller that asked for it.
func (r *Runner) report(m *member, request Request, err error) {
	if err != nil {
		r.log.Debug("a request of a built-in controller failed", "controller", m.Name(), "method", request.Method, "path", request.Path, "err", err)
	}
	m.Done(request, err)
}

// view observes everything up to now and returns the snapshot that has all of it.
func (r *Runner) view(ctx context.Context) (storage.View, error) {
	for {
		if err := r.catchUp(); err != nil {
			return nil, err
		}
		view, err := r.store.View(ctx, r.at)
		switch {
		case errors.Is(err, storage.ErrCompacted):
			r.restart()
		case err != nil:
			return nil, fmt.Errorf("controlplane: built-in controllers: %w", err)
		default:
			return view, nil
		}
	}
}

// catchUp observes everything up to now, from a snapshot if it has to.
func (r *Runner) catchUp() error {
	for {
		if r.cursor == nil {
			view := r.store.Latest()
			cursor, err := r.store.Watch(storage.Range{WakeOn: r.concerns}, view.Revision())
			if err != nil {
				return err
			}
			r.cursor, r.at = cursor, view.Revision()
			for _, c := range r.controllers {
				c.Reset(view)
			}
		}
		batch, err := r.cursor.Poll()
		if errors.Is(err, storage.ErrLagged) {
			r.restart()
			continue
		}
		if err != nil {
			return err
		}
		if r.observe(batch); len(batch.Events) == 0 {
			return nil
		}
	}
}

func (r *Runner) observe(batch storage.Batch) {
	if len(batch.Events) > 0 {
		for _, m := range r.controllers {
			m.again = time.Time{} // what was written may be what was missing
		}
	}
	for _, event := range batch.Events {
		for _, c := range r.controllers {
			if c.Filter(event) {
				c.Handle(event)
			}
		}
	}
	r.at = max(r.at, batch.Revision)
}

// restart makes the next step begin with a snapshot.
func (r *Runner) restart() {
	r.Close()
	r.cursor = nil
}

// Close releases the runner's place in the history and wakes a waiting Run.
func (r *Runner) Close() {
	if r.cursor != nil {
		r.cursor.Close()
	}
}
