// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/wire"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/manager/election"
	"github.com/steer-dev/steer/manager/internal/metrics"
)

// elector keeps one lease: it moves the records that an election.Candidate asks
// for between the candidate and the API server.
type elector struct {
	client  client.Client // never fenced
	opts    Election
	log     *slog.Logger
	started atomic.Bool
	// candidate is used by the goroutine of run alone.
	candidate *election.Candidate
	random    *rand.Rand
	// lease as the server has it, as far as is known.
	lease    coordinationv1.Lease
	SlowPath prometheus.Counter
	// fence of the client that controllers write with.
	fence *fence
	// born is where the steady clock begins.
	born time.Time
	// term of the leadership; nil before the first one.
	term     atomic.Pointer[election.Term]
	identity string
	events   controller.EventRecorder // shows when a term begins and ends
	// access is what came of the last attempt to read the lease.
	access atomic.Pointer[leaseAccess]
}

// leaseAccess is what came of an attempt to read or write the lease. It is not
// changed once it is shared.
type leaseAccess struct {
	err   error     // nil after a success
	since time.Time // of the first failure in a row
	ever  bool      // whether any attempt succeeded
}

func newElector(c client.Client, o Options, m *metrics.Metrics, events controller.EventRecorder) *elector {
	h := fnv.New64a()
	_, _ = h.Write([]byte(o.Instance)) // replicas must not keep step
	return &elector{
		client: c, opts: o.Election, identity: o.Instance, events: events,
		log:       o.Log.With("lease", o.Election.Namespace+"/"+o.Election.Lease, "identity", o.Instance),
		candidate: election.NewCandidate(o.Instance, o.Election.Timing),
		random:    rand.New(rand.NewPCG(o.Seed, h.Sum64())),
		SlowPath:  m.SlowPath.WithLabelValues(o.Election.Lease),
		born:      time.Now(),
	}
}

// record emits an event about the lease, with the reason and the words of
// Kubernetes' leader election.
func (e *elector) record(action, what string) {
	e.events.Record(controller.UserEvent{
		Regarding: &e.lease, Reason: "LeaderElection", Action: action, Note: e.identity + " " + what,
	})
}

// accessible is the readiness check: it fails until the lease was read or written
// once, at once when that is forbidden, and when it has failed for too long.
func (e *elector) accessible(*http.Request) error {
	a := e.access.Load()
	switch {
	case a == nil:
		return fmt.Errorf("the leader lease %s/%s has not been read yet", e.opts.Namespace, e.opts.Lease)
	case a.err == nil, a.ever && !apierrors.IsForbidden(a.err) && time.Since(a.since) <= stalled:
		return nil
	}
	return fmt.Errorf("%w; %s", a.err, e.advice(a.err))
}

// noted keeps what came of an attempt.
func (e *elector) noted(err error) {
	next := leaseAccess{err: err, since: time.Now(), ever: err == nil}
	if last := e.access.Load(); last != nil {
		next.ever = next.ever || last.ever
		if last.err != nil {
			next.since = last.since
		}
	}
	e.access.Store(&next)
}

// run takes part until ctx ends. When the lease is won it calls elected, keeps
// renewing until the group it returns has ended, and gives the lease up. It
// returns ErrLostLease when the lease is lost before that, and ErrStarted when it is
// called a second time.
func (e *elector) run(ctx context.Context, elected func() *group) error {
	if e.started.Swap(true) {
		return ErrStarted
	}
	holder := ""
	quit := ctx.Done()
	releases := watchReleases(ctx, e)
	defer releases.join()
	early := false // whether the last attempt was brought forward
	for {
		was := e.candidate.State()
		e.attempt(context.WithoutCancel(ctx))
		switch state := e.candidate.State(); {
		case state == election.Lost:
			e.term.Store(&election.Term{})
			e.record("StopLeading", "stopped leading")
			e.log.Error("lost the leader lease", "holder", e.candidate.Holder(), "advice",
				"the process ends, so that its container is started anew and waits; when it happens often, look at the load of API server and node, or lengthen Options.Election.Timing")
			return ErrLostLease
		case state == election.Leading && was != election.Leading:
			e.log.Info("leading")
			e.record("BecomeLeader", "became leader")
			releases.stop()
			quit = elected().ended
		case state == election.Following && e.candidate.Holder() != holder:
			holder = e.candidate.Holder()
			e.log.Info("waiting for the leader lease", "holder", holder)
		}
		// Between two regular attempts one may be brought forward, so that releases
		// that repeat cost no more than that.
		var released <-chan struct{}
		if !early {
			released = releases.seen
		}
		timer := time.NewTimer(e.candidate.Pause(e.random.Float64()))
		select {
		case <-quit:
			timer.Stop()
			e.release(context.WithoutCancel(ctx))
			return nil
		case <-released:
			early = true
		case <-timer.C:
			early = false
		}
		timer.Stop()
	}
}

// entitled reports whether writes may go out: always before the first election,
// and then only while the lease is known to be held. It reads the clocks, so it
// also holds for a process that was paused and has not noticed its loss.
func (e *elector) entitled() bool {
	_, ok := e.entitlement()
	return ok
}

// entitlement is entitled with the time at which the term ends unless it is renewed;
// the zero time before the first one.
func (e *elector) entitlement() (until time.Time, ok bool) {
	term := e.term.Load()
	if term == nil {
		return time.Time{}, true
	}
	now := time.Now()
	return e.born.Add(term.Steady), term.Covers(now.Sub(e.born), now.Round(0))
}

// attempt renews the lease, or reads it and writes it where the candidate wants
// to. It ends before a leader's deadline.
func (e *elector) attempt(ctx context.Context) {
	began := time.Now()
	limit := max(time.Second, e.opts.Timing.Renew/2)
	if e.candidate.State() == election.Leading {
		limit = min(limit, e.candidate.Deadline().Sub(began))
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()

	if e.candidate.State() == election.Leading {
		// A leader alone writes its lease: there is no need to read it first.
		next := e.candidate.Observe(began, recordOf(&e.lease))
		if next == nil {
			return
		}
		err := e.write(ctx, began, next, false)
		if err == nil {
			return
		}
		if !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			e.failed("write", err)
			return
		}
		e.SlowPath.Inc()
	}
	key := client.ObjectKey{Namespace: e.opts.Namespace, Name: e.opts.Lease}
	var found *election.Record
	switch err := e.client.Get(ctx, key, &e.lease); {
	case apierrors.IsNotFound(err):
		e.lease = coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	case err != nil:
		e.failed("read", err)
		return
	default:
		found = recordOf(&e.lease)
	}
	next := e.candidate.Observe(began, found)
	if next == nil {
		e.noted(nil)
		return
	}
	if err := e.write(ctx, began, next, found == nil); err != nil {
		e.failed("write", err)
	}
}

// write writes a lease, by an attempt that began then, and begins a term with it.
func (e *elector) write(ctx context.Context, began time.Time, record *election.Record, create bool) error {
	lease := e.lease.DeepCopy()
	if err := e.send(ctx, lease, record, create); err != nil {
		return err
	}
	e.noted(nil)
	e.lease = *lease
	e.candidate.Wrote(began, *recordOf(lease))
	deadline := e.candidate.Deadline()
	e.term.Store(&election.Term{Steady: deadline.Sub(e.born), Wall: deadline.Round(0)})
	return nil
}

func (e *elector) send(ctx context.Context, lease *coordinationv1.Lease, record *election.Record, create bool) error {
	seconds := int32(record.Duration / time.Second)
	acquired, renewed := metav1.NewMicroTime(record.Acquired), metav1.NewMicroTime(record.Renewed)
	lease.Spec.HolderIdentity = &record.Holder
	lease.Spec.LeaseDurationSeconds = &seconds
	lease.Spec.AcquireTime, lease.Spec.RenewTime = &acquired, &renewed
	lease.Spec.LeaseTransitions = &record.Transitions
	if create {
		return e.client.Create(ctx, lease)
	}
	return e.client.Update(ctx, lease)
}

func (e *elector) failed(what string, err error) {
	e.candidate.Failed(time.Now())
	if apierrors.IsConflict(err) || apierrors.IsAlreadyExists(err) {
		e.noted(nil)
		e.log.Debug("another candidate was faster", "error", err)
		return
	}
	e.noted(fmt.Errorf("cannot %s the leader lease %s/%s: %w", what, e.opts.Namespace, e.opts.Lease, err))
	e.log.Warn("cannot "+what+" the leader lease", "error", err, "advice", e.advice(err))
}

func (e *elector) advice(err error) string {
	if advice := wire.Advice(err); advice != "" {
		return advice
	}
	if apierrors.IsForbidden(err) {
		return "grant it: a Role in " + e.opts.Namespace + " with {apiGroups: [\"coordination.k8s.io\"], resources: [leases], verbs: [get, list, watch, create, update]}; `steer generate rbac:roleName=NAME,leaderElection=true` makes it"
	}
	return "it is tried again; a leader stops working at its renew deadline, so that another one may take over"
}

// release gives the lease up, so that the next leader need not wait for it to
// expire. Everything that leadership entitles to must have returned; what writes
// nevertheless is refused from here on, and what is under way is waited for.
func (e *elector) release(ctx context.Context) {
	e.term.Store(&election.Term{})
	e.record("StopLeading", "stopped leading")
	inTime, done := context.WithDeadline(ctx, e.candidate.Deadline())
	defer done()
	if err := e.fence.drain(inTime); err != nil {
		e.log.Warn("a write is still under way: the leader lease is not released, and the next leader waits until it expires")
		return
	}
	record := e.candidate.Release(time.Now())
	if record == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, e.opts.Timing.Renew)
	defer cancel()
	if err := e.send(ctx, &e.lease, record, false); err != nil {
		e.log.Warn("cannot release the leader lease; the next leader waits until it expires", "error", err)
		return
	}
	e.log.Info("released the leader lease")
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
