// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/manager"
	"github.com/steer-dev/steer/steertest"
)

const (
	// mostPerMinute bounds the requests of a standby: one read per retry period of
	// 2 s at most, and what the watch adds.
	mostPerMinute = 30 + 10
	// longestTakeOver after a leader ended without a release: the lease, a read
	// that hangs, the longest pause.
	longestTakeOver = 15*time.Second + 5*time.Second + 4400*time.Millisecond
)

// leaseLine is a standby's way to the server: it counts the requests for the lease by
// minute, and something happens to watches.
type leaseLine struct {
	next http.RoundTripper
	// watch answers the watches of the lease; nil passes them on.
	watch func(r *http.Request, next http.RoundTripper) (*http.Response, error)

	mu      sync.Mutex
	minutes map[int64]int
	open    []context.CancelFunc
	down    bool
}

// RoundTrip implements http.RoundTripper.
func (l *leaseLine) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.Contains(r.URL.Path, "/leases") {
		return l.next.RoundTrip(r)
	}
	ctx, end := context.WithCancel(r.Context())
	l.mu.Lock()
	minute := time.Now().Unix() / 60
	l.minutes[minute]++
	count, down := l.minutes[minute], l.down
	l.open = append(l.open, end)
	l.mu.Unlock()
	if count > 10*mostPerMinute { // a loop without a pause would hold the time up
		time.Sleep(time.Minute)
	}
	if down {
		return nil, errors.New("connection refused")
	}
	r = r.WithContext(ctx)
	if l.watch != nil && r.URL.Query().Has("watch") {
		return l.watch(r, l.next)
	}
	return l.next.RoundTrip(r)
}

// restart ends what is open, and refuses everything for as long.
func (l *leaseLine) restart(pause time.Duration) {
	l.mu.Lock()
	l.down = true
	for _, end := range l.open {
		end()
	}
	l.open = nil
	l.mu.Unlock()
	time.Sleep(pause)
	l.mu.Lock()
	l.down = false
	l.mu.Unlock()
}

// most is the largest number of requests within a minute.
func (l *leaseLine) most() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := 0
	for _, n := range l.minutes {
		most = max(most, n)
	}
	return most
}

// ends lets a body end after a while.
func ends(after time.Duration) func(*http.Request, http.RoundTripper) (*http.Response, error) {
	return func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
		ctx, end := context.WithCancel(r.Context())
		resp, err := next.RoundTrip(r.WithContext(ctx))
		if err != nil {
			end()
			return nil, err
		}
		if after == 0 {
			end()
			_ = resp.Body.Close()
			resp.Body = io.NopCloser(strings.NewReader(""))
			return resp, nil
		}
		time.AfterFunc(after, end)
		return resp, nil
	}
}

func refused(status int, reason string) func(*http.Request, http.RoundTripper) (*http.Response, error) {
	return func(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
			Body: io.NopCloser(strings.NewReader(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `"}`)),
		}, nil
	}
}

func hangs(r *http.Request, _ http.RoundTripper) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// standby starts a manager that waits for a lease that another process holds.
func standby(t *testing.T, cfg *rest.Config, line *leaseLine) *contender {
	t.Helper()
	cfg = rest.CopyConfig(cfg)
	line.next, line.minutes = cfg.Transport, map[int64]int{}
	cfg.Transport = line
	m := newOperator(t, cfg, manager.Options{
		Instance: "standby",
		Election: manager.Election{Enabled: true, Namespace: "default"},
	})
	ctx, stop := context.WithCancel(context.Background())
	c := &contender{Manager: m, stop: stop, ended: make(chan error, 1)}
	go func() { c.ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		<-c.ended
	})
	return c
}

// leaseHolder renews the lease of the tests by hand.
type leaseHolder struct {
	env   *steertest.Env
	lease *coordinationv1.Lease
}

func holdLease(env *steertest.Env) *leaseHolder {
	holder, seconds, now := "other", int32(15), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "operator"},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now},
	}
	env.Create(lease)
	return &leaseHolder{env, lease}
}

// renew keeps the lease for as long.
func (h *leaseHolder) renew(t *testing.T, long time.Duration) {
	t.Helper()
	for begun := time.Now(); time.Since(begun) < long; time.Sleep(2 * time.Second) {
		now := metav1.NowMicro()
		h.lease.Spec.RenewTime = &now
		if err := h.env.Client.Update(h.env.Context(), h.lease); err != nil {
			t.Fatal(err)
		}
	}
}

// release gives the lease up.
func (h *leaseHolder) release(t *testing.T) {
	t.Helper()
	none, second := "", int32(1)
	h.lease.Spec.HolderIdentity, h.lease.Spec.LeaseDurationSeconds = &none, &second
	if err := h.env.Client.Update(h.env.Context(), h.lease); err != nil {
		t.Fatal(err)
	}
}

// takesOver waits until c leads and returns how long that took.
func takesOver(t *testing.T, c *contender, line *leaseLine) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-c.Elected():
	case <-time.After(10 * time.Minute):
		t.Fatalf("it does not take over; up to %d requests in a minute", line.most())
	}
	return time.Since(began)
}

// TestElectorBoundsRequestsAndTakeOverWhateverBecomesOfItsWatch lets a standby wait for an
// hour while its watch of the lease fails in every way, and then the leader end.
func TestElectorBoundsRequestsAndTakeOverWhateverBecomesOfItsWatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		watch func(*http.Request, http.RoundTripper) (*http.Response, error)
		// restarts of the server, every five minutes
		restarts bool
		// released: a release is noticed at once, by the watch
		released bool
	}{
		"works":                 {released: true},
		"ends at once":          {watch: ends(0)},
		"ends after 3 seconds":  {watch: ends(3 * time.Second)},
		"ends after a minute":   {watch: ends(time.Minute)},
		"ends before a release": {watch: ends(15*time.Minute - 1750*time.Millisecond), released: true}, // the fourth time
		"is refused":            {watch: refused(http.StatusForbidden, "Forbidden")},
		"fails":                 {watch: refused(http.StatusInternalServerError, "InternalError")},
		"comes too often":       {watch: refused(http.StatusTooManyRequests, "TooManyRequests")},
		"hangs while opening":   {watch: hangs},
		"server restarts":       {restarts: true, released: true},
	} {
		for _, crash := range []bool{true, false} {
			how := " and the leader releases"
			if crash {
				how = " and the leader crashes"
			}
			t.Run(name+how, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					env := newEnv(t, coordinationv1.AddToScheme)
					line := &leaseLine{watch: c.watch}
					holder := holdLease(env)
					waiting := standby(t, env.Config, line)
					for range 12 {
						if c.restarts {
							go line.restart(30 * time.Second)
						}
						holder.renew(t, 5*time.Minute)
					}
					within := longestTakeOver
					if !crash {
						holder.release(t)
						within = 4400*time.Millisecond + time.Second
					}
					if !crash && c.released {
						within = 100 * time.Millisecond
					}
					if took := takesOver(t, waiting, line); took > within {
						t.Errorf("the take-over took %s, want at most %s", took, within)
					}
					if most := line.most(); most > mostPerMinute {
						t.Errorf("%d requests in a minute, want at most %d", most, mostPerMinute)
					}
				})
			})
		}
	}
}

// TestElectorBoundsRequestsWhenReleasesRepeat shows an elector that may not write a
// lease which another process releases all the time.
func TestElectorBoundsRequestsWhenReleasesRepeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, coordinationv1.AddToScheme)
		line := &leaseLine{}
		holder := holdLease(env)
		cfg := through(env.Config, readOnly{env.Config.Transport})
		standby(t, cfg, line)
		for range 3000 {
			holder.release(t)
			holder.lease.Labels = map[string]string{"at": time.Now().Format("150405.000000")}
			time.Sleep(20 * time.Millisecond)
		}
		if most, limit := line.most(), 4*mostPerMinute; most > limit {
			t.Errorf("%d requests in a minute, want at most %d", most, limit)
		}
	})
}

// readOnly refuses writes.
type readOnly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o readOnly) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return refused(http.StatusForbidden, "Forbidden")(r, nil)
	}
	return o.next.RoundTrip(r)
}

// TestElectorIsNotReadyWhileItsLeaseIsOutOfReach shows what /readyz says of a process
// whose role lacks the lease, and that a server which is away for a moment does
// not make every replica unready.
func TestElectorIsNotReadyWhileItsLeaseIsOutOfReach(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, coordinationv1.AddToScheme)
		holder := holdLease(env)
		gate := &refusing{next: env.Config.Transport}
		gate.answer.Store(new(refused(http.StatusForbidden, "Forbidden")))
		cfg := through(env.Config, gate)
		waiting := standby(t, cfg, &leaseLine{})
		if err := waiting.Ready(t.Context()); err == nil {
			t.Error("it is ready before the lease was read")
		}
		holder.renew(t, 10*time.Second)
		err := waiting.Ready(t.Context())
		for _, want := range []string{"leader-election: cannot read the leader lease default/operator", "grant it: a Role in default"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("readiness without the right to read the lease: %v, want %q", err, want)
			}
		}
		gate.answer.Store(nil)
		holder.renew(t, 10*time.Second)
		if err := waiting.Ready(t.Context()); err != nil {
			t.Errorf("it is not ready although the lease can be read: %v", err)
		}
		gate.answer.Store(new(refused(http.StatusInternalServerError, "InternalError")))
		holder.renew(t, time.Minute)
		if err := waiting.Ready(t.Context()); err != nil {
			t.Errorf("a minute without the server: %v", err)
		}
		holder.renew(t, 2*time.Minute)
		if err := waiting.Ready(t.Context()); err == nil {
			t.Error("three minutes without the server, and it is ready")
		}
	})
}

// refusing answers requests for leases itself while it has an answer.
type refusing struct {
	next   http.RoundTripper
	answer atomic.Pointer[func(*http.Request, http.RoundTripper) (*http.Response, error)]
}

// RoundTrip implements http.RoundTripper.
func (f *refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	if answer := f.answer.Load(); answer != nil {
		return (*answer)(r, f.next)
	}
	return f.next.RoundTrip(r)
}

// TestElectorShowsItsTermsAsEvents shows the events of Kubernetes' leader election.
func TestElectorShowsItsTermsAsEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		env := newEnv(t, eventsv1.AddToScheme)
		leader := standby(t, env.Config, &leaseLine{})
		<-leader.Elected()
		if err := leader.end(); err != nil {
			t.Fatal(err)
		}
		var events eventsv1.EventList
		if err := env.Client.List(env.Context(), &events, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, e := range events.Items {
			if e.Regarding.Kind == "Lease" {
				got = append(got, e.Type+" "+e.Reason+" "+e.Regarding.Name+": "+e.Note)
			}
		}
		slices.Sort(got)
		want := []string{
			"Normal LeaderElection operator: standby became leader",
			"Normal LeaderElection operator: standby stopped leading",
		}
		if !slices.Equal(got, want) {
			t.Errorf("events: %q, want %q", got, want)
		}
	})
}
