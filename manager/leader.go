// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager/election"
)

// past is a deadline that every clock has passed.
const past = 1

// leader keeps one lease: it moves the records that an election.Candidate asks
// for between the candidate and the API server.
type leader struct {
	client client.Client // never fenced
	opts   Election
	log    *slog.Logger
	// candidate is used by the goroutine of run alone.
	candidate *election.Candidate
	lease     coordinationv1.Lease
	// deadline of the leadership in Unix nanoseconds; 0 before the first one.
	deadline atomic.Int64
}

func newLeader(c client.Client, opts Election, identity string, log *slog.Logger) *leader {
	return &leader{
		client: c, opts: opts,
		log:       log.With("lease", opts.Namespace+"/"+opts.Lease, "identity", identity),
		candidate: election.NewCandidate(identity, opts.Timing),
	}
}

// run takes part until ctx ends. When the lease is won it calls elected, keeps
// renewing until the group it returns has ended, and gives the lease up. It
// returns ErrLostLease when the lease is lost before that.
func (l *leader) run(ctx context.Context, elected func() *group) error {
	holder := ""
	quit := ctx.Done()
	var changes watcher
	defer changes.stop()
	for {
		was := l.candidate.State()
		l.attempt(context.WithoutCancel(ctx))
		switch state := l.candidate.State(); {
		case state == election.Lost:
			l.deadline.Store(past)
			l.log.Error("lost the leader lease")
			return ErrLostLease
		case state == election.Leading && was != election.Leading:
			l.log.Info("leading")
			changes.stop()
			quit = elected().ended
		case state == election.Following && l.candidate.Holder() != holder:
			holder = l.candidate.Holder()
			l.log.Info("waiting for the leader lease", "holder", holder)
		}
		if l.candidate.State() == election.Following {
			changes.start(ctx, l)
		}
		timer := time.NewTimer(l.candidate.Pause(rand.Float64()))
		select {
		case <-quit:
			timer.Stop()
			l.release(context.WithoutCancel(ctx))
			return nil
		case <-changes.released():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// watcher tells a follower of a released lease at once, where it may watch;
// where it may not, the regular attempts find out.
type watcher struct {
	stream watch.Interface
	free   chan struct{}
}

func (w *watcher) start(ctx context.Context, l *leader) {
	if w.stream != nil {
		return
	}
	stream, err := l.client.Watch(ctx, &coordinationv1.LeaseList{},
		client.InNamespace(l.opts.Namespace), client.MatchingFields{"metadata.name": l.opts.Lease})
	if err != nil {
		return
	}
	free := make(chan struct{}, 1)
	w.stream, w.free = stream, free
	go func() {
		defer close(free)
		for event := range stream.ResultChan() {
			lease, ok := event.Object.(*coordinationv1.Lease)
			if !ok || event.Type != watch.Deleted && recordOf(lease).Holder != "" {
				continue
			}
			select {
			case free <- struct{}{}:
			default: // told already
			}
		}
	}()
}

// released yields when the lease was given up or deleted, and never without a
// watch.
func (w *watcher) released() <-chan struct{} { return w.free }

func (w *watcher) stop() {
	if w.stream == nil {
		return
	}
	w.stream.Stop()
	for range w.free { // until the goroutine has ended
	}
	*w = watcher{}
}

// entitled tells whether writes may go out: always before the first election,
// and then only while the lease is known to be held. It asks the clock, so it
// also holds for a process that was paused and has not noticed its loss.
func (l *leader) entitled() bool {
	deadline := l.deadline.Load()
	return deadline == 0 || time.Now().UnixNano() < deadline
}

// attempt reads the lease and writes it where the candidate wants to. It ends
// before a leader's deadline.
func (l *leader) attempt(ctx context.Context) {
	began := time.Now()
	limit := max(time.Second, l.opts.Timing.Renew/2)
	if l.candidate.State() == election.Leading {
		limit = min(limit, l.candidate.Deadline().Sub(began))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	key := client.ObjectKey{Namespace: l.opts.Namespace, Name: l.opts.Lease}
	var found *election.Record
	switch err := l.client.Get(ctx, key, &l.lease); {
	case apierrors.IsNotFound(err):
		l.lease = coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	case err != nil:
		l.failed("read", err)
		return
	default:
		found = recordOf(&l.lease)
	}
	next := l.candidate.Observe(began, found)
	if next == nil {
		return
	}
	if err := l.write(ctx, next, found == nil); err != nil {
		l.failed("write", err)
		return
	}
	l.candidate.Wrote(began, *recordOf(&l.lease))
	l.deadline.Store(l.candidate.Deadline().UnixNano())
}

func (l *leader) write(ctx context.Context, record *election.Record, create bool) error {
	seconds := int32(record.Duration / time.Second)
	acquired, renewed := metav1.NewMicroTime(record.Acquired), metav1.NewMicroTime(record.Renewed)
	l.lease.Spec.HolderIdentity = &record.Holder
	l.lease.Spec.LeaseDurationSeconds = &seconds
	l.lease.Spec.AcquireTime, l.lease.Spec.RenewTime = &acquired, &renewed
	l.lease.Spec.LeaseTransitions = &record.Transitions
	if create {
		return l.client.Create(ctx, &l.lease)
	}
	return l.client.Update(ctx, &l.lease)
}

func (l *leader) failed(what string, err error) {
	l.candidate.Failed(time.Now())
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		l.log.Debug("another candidate was faster", "error", err)
		return
	}
	l.log.Warn("cannot "+what+" the leader lease", "error", err, "advice",
		"the service account needs get, create and update on leases.coordination.k8s.io in "+l.opts.Namespace)
}

// release gives the lease up, so that the next leader need not wait for it to
// expire. Everything that leadership entitles to must have returned.
func (l *leader) release(ctx context.Context) {
	record := l.candidate.Release(time.Now())
	if record == nil {
		return
	}
	l.deadline.Store(past)
	ctx, cancel := context.WithTimeout(ctx, l.opts.Timing.Renew)
	defer cancel()
	if err := l.write(ctx, record, false); err != nil {
		l.log.Warn("cannot release the leader lease; the next leader waits until it expires", "error", err)
		return
	}
	l.log.Info("released the leader lease")
}

func recordOf(lease *coordinationv1.Lease) *election.Record {
	spec := &lease.Spec
	var r election.Record
	if spec.HolderIdentity != nil {
		r.Holder = *spec.HolderIdentity
	}
	if spec.LeaseDurationSeconds != nil {
		r.Duration = time.Duration(*spec.LeaseDurationSeconds) * time.Second
	}
	if spec.AcquireTime != nil {
		r.Acquired = spec.AcquireTime.Time
	}
	if spec.RenewTime != nil {
		r.Renewed = spec.RenewTime.Time
	}
	if spec.LeaseTransitions != nil {
		r.Transitions = *spec.LeaseTransitions
	}
	return &r
}
