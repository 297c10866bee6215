// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager/election"
	"github.com/steer-dev/steer/manager/internal/metrics"
)

// leader keeps one lease: it moves the records that an election.Candidate asks
// for between the candidate and the API server.
type leader struct {
	client client.Client // never fenced
	opts   Election
	log    *slog.Logger
	// candidate is used by the goroutine of run alone.
	candidate *election.Candidate
	random    *rand.Rand
	// lease as the server has it, as far as is known.
	lease    coordinationv1.Lease
	SlowPath prometheus.Counter
	// fence of the client that everybody else writes with.
	fence *fence
	// born is where the steady clock begins.
	born time.Time
	// term of the leadership; nil before the first one.
	term atomic.Pointer[election.Term]
}

func newLeader(c client.Client, o Options, m *metrics.Metrics) *leader {
	h := fnv.New64a()
	_, _ = h.Write([]byte(o.Instance)) // replicas must not keep step
	return &leader{
		client: c, opts: o.Election,
		log:       o.Log.With("lease", o.Election.Namespace+"/"+o.Election.Lease, "identity", o.Instance),
		candidate: election.NewCandidate(o.Instance, o.Election.Timing),
		random:    rand.New(rand.NewPCG(o.Seed, h.Sum64())),
		SlowPath:  m.SlowPath.WithLabelValues(o.Election.Lease),
		born:      time.Now(),
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
			l.term.Store(&election.Term{})
			l.log.Error("lost the leader lease", "holder", l.candidate.Holder(), "advice",
				"the process ends, so that its container is started anew and waits; when it happens often, look at the load of API server and node, or lengthen Options.Election.Timing")
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
		timer := time.NewTimer(l.candidate.Pause(l.random.Float64()))
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
// and then only while the lease is known to be held. It asks the clocks, so it
// also holds for a process that was paused and has not noticed its loss.
func (l *leader) entitled() bool {
	term := l.term.Load()
	if term == nil {
		return true
	}
	now := time.Now()
	return term.Covers(now.Sub(l.born), now.Round(0))
}

// attempt renews the lease, or reads it and writes it where the candidate wants
// to. It ends before a leader's deadline.
func (l *leader) attempt(ctx context.Context) {
	began := time.Now()
	limit := max(time.Second, l.opts.Timing.Renew/2)
	if l.candidate.State() == election.Leading {
		limit = min(limit, l.candidate.Deadline().Sub(began))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	if l.candidate.State() == election.Leading {
		// Nobody else should have changed it: there is no need to read it first.
		next := l.candidate.Observe(began, recordOf(&l.lease))
		if next == nil {
			return
		}
		err := l.write(ctx, began, next, false)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			l.failed("write", err)
			return
		}
		l.SlowPath.Inc()
	}
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
	if err := l.write(ctx, began, next, found == nil); err != nil {
		l.failed("write", err)
	}
}

// write writes a lease, by an attempt that began then, and begins a term with it.
func (l *leader) write(ctx context.Context, began time.Time, record *election.Record, create bool) error {
	lease := l.lease.DeepCopy()
	if err := l.send(ctx, lease, record, create); err != nil {
		return err
	}
	l.lease = *lease
	l.candidate.Wrote(began, *recordOf(lease))
	deadline := l.candidate.Deadline()
	l.term.Store(&election.Term{Steady: deadline.Sub(l.born), Wall: deadline.Round(0)})
	return nil
}

func (l *leader) send(ctx context.Context, lease *coordinationv1.Lease, record *election.Record, create bool) error {
	seconds := int32(record.Duration / time.Second)
	acquired, renewed := metav1.NewMicroTime(record.Acquired), metav1.NewMicroTime(record.Renewed)
	lease.Spec.HolderIdentity = &record.Holder
	lease.Spec.LeaseDurationSeconds = &seconds
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &acquired, &renewed
	lease.Spec.LeaseTransitions = &record.Transitions
	if create {
		return l.client.Create(ctx, lease)
	}
	return l.client.Update(ctx, lease)
}

func (l *leader) failed(what string, err error) {
	l.candidate.Failed(time.Now())
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		l.log.Debug("another candidate was faster", "error", err)
		return
	}
	advice := client.Advice(err)
	switch {
	case advice != "":
	case apierrors.IsForbidden(err):
		advice = "grant it: a Role in " + l.opts.Namespace + " with {apiGroups: [\"coordination.k8s.io\"], resources: [leases], verbs: [get, list, watch, create, update]}"
	default:
		advice = "it is tried again; a leader stops working at its renew deadline, so that another one may take over"
	}
	l.log.Warn("cannot "+what+" the leader lease", "error", err, "advice", advice)
}

// release gives the lease up, so that the next leader need not wait for it to
// expire. Everything that leadership entitles to must have returned; what writes
// nevertheless is refused from here on, and what is under way is waited for.
func (l *leader) release(ctx context.Context) {
	l.term.Store(&election.Term{})
	inTime, done := context.WithDeadline(ctx, l.candidate.Deadline())
	defer done()
	if err := l.fence.drain(inTime); err != nil {
		l.log.Warn("a write is still under way: the leader lease is not released, and the next leader waits until it expires")
		return
	}
	record := l.candidate.Release(time.Now())
	if record == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, l.opts.Timing.Renew)
	defer cancel()
	if err := l.send(ctx, &l.lease, record, false); err != nil {
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
