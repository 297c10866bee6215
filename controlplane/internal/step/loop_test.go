// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package step_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// holdUp is a store with sweepers of several buckets, and a sender that holds requests
// back or refuses them.
type holdUp struct {
	*testing.T
	store    *storage.Memory
	sweepers map[string]*sweeper
	runner   *step.Runner
	cancel   context.CancelFunc
	run      chan error

	mu      sync.Mutex
	gates   map[string]chan struct{} // by path; closed to let go
	refused map[string]int           // by path; how often still
	takes   time.Duration            // every request at least
	sent    []string
	most    int // requests under way at once
	now     int
}

func newHoldUp(t *testing.T, buckets ...string) *holdUp {
	t.Helper()
	h := &holdUp{
		T: t, store: storage.NewMemory(storage.MemoryOptions{}), sweepers: map[string]*sweeper{},
		gates: map[string]chan struct{}{}, refused: map[string]int{}, run: make(chan error, 1),
	}
	var controllers []step.Controller
	for _, bucket := range buckets {
		h.sweepers[bucket] = &sweeper{bucket: bucket}
		controllers = append(controllers, h.sweepers[bucket])
	}
	h.runner = step.NewRunner(h.store, h.send, slog.New(slog.DiscardHandler), controllers...)
	return h
}

// start begins to run; what was put before is one step of each controller.
func (h *holdUp) start() {
	ctx, cancel := context.WithCancel(h.Context())
	h.cancel = cancel
	go func() { h.run <- h.runner.Run(ctx) }()
	h.Cleanup(h.stop)
	synctest.Wait()
}

func (h *holdUp) stop() {
	h.cancel()
	if err := <-h.run; err != nil {
		h.Error(err)
	}
	h.run <- nil // for the next one
	h.runner.Close()
}

// hold makes the request for a key wait until the returned function is called.
func (h *holdUp) hold(path string) (release func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	gate := make(chan struct{})
	h.gates[path] = gate
	return sync.OnceFunc(func() { close(gate) })
}

func (h *holdUp) send(ctx context.Context, r step.Request) error {
	h.mu.Lock()
	h.sent = append(h.sent, r.Path)
	h.now++
	h.most = max(h.most, h.now)
	gate := h.gates[r.Path]
	refuse := h.refused[r.Path] > 0
	if refuse {
		h.refused[r.Path]--
	}
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.now--
	}()
	if h.takes > 0 {
		time.Sleep(h.takes) // the bubble's clock
	}
	if gate != nil {
		select {
		case <-gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuse {
		return errRefused
	}
	_, err := h.store.Commit(ctx, storage.Write{Key: r.Subject.Key, Expect: storage.AnyRevision})
	return err
}

func (h *holdUp) put(bucket string, names ...string) {
	h.Helper()
	for _, name := range names {
		steptest.Put(h, h.store, storage.Key{Bucket: bucket, Name: name}, name)
	}
}

// left is how many objects of a bucket there are.
func (h *holdUp) left(bucket string) int { return h.store.Latest().Count(bucket, "", "") }

// idle reports whether the runner comes to rest within a second.
func (h *holdUp) idle() bool {
	ctx, cancel := context.WithTimeout(h.Context(), time.Second)
	defer cancel()
	return h.runner.Idle(ctx, h.store.Latest().Revision()) == nil
}

func TestRunnerGoesOnWhileARequestOfAnotherControllerHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHoldUp(t, "a", "b", "c")
		h.start()
		release := h.hold("stuck")
		h.put("b", "stuck")
		for round := range 10 {
			h.put("a", fmt.Sprint("a", round))
			h.put("c", fmt.Sprint("c", round))
			time.Sleep(20 * time.Millisecond)
			if a, c := h.left("a"), h.left("c"); a+c > 0 {
				t.Fatalf("round %d: %d and %d objects are left while another controller's request hangs", round, a, c)
			}
		}
		if h.idle() {
			t.Error("idle while a request is under way")
		}
		h.put("b", "later") // is observed meanwhile
		release()
		if !h.idle() || h.left("b") > 0 {
			t.Errorf("%d objects are left after the request has ended", h.left("b"))
		}
		if resets := h.sweepers["b"].resets; resets != 1 {
			t.Errorf("%d resets, want one", resets)
		}
	})
}

func TestRunnerSendsForOtherObjectsWhileOneHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const held = 20
		h := newHoldUp(t, "a")
		var release []func()
		for i := range held {
			release = append(release, h.hold(fmt.Sprintf("held-%02d", i)))
			h.put("a", fmt.Sprintf("held-%02d", i), fmt.Sprintf("free-%02d", i))
		}
		h.start()
		time.Sleep(time.Second)
		synctest.Wait()
		if h.now != 5 || h.left("a") >= 2*held-1 {
			t.Errorf("%d requests are under way and %d objects left, want 5 and less", h.now, h.left("a"))
		}
		for _, let := range release {
			let()
		}
		if !h.idle() || h.left("a") > 0 || h.most != 5 {
			t.Errorf("%d objects are left, %d requests were under way at once", h.left("a"), h.most)
		}
	})
}

// TestRunnerKeepsOneOrderWhileRequestsAreAnswered: what is answered within a turn is
// sent one after the other, the controllers in theirs.
func TestRunnerKeepsOneOrderWhileRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHoldUp(t, "b", "a")
		h.takes = time.Millisecond
		h.start()
		h.put("a", "a3")
		synctest.Wait() // what comes now waits until that request is answered
		h.put("a", "a2", "a1")
		h.put("b", "b3", "b1", "b2")
		if !h.idle() {
			t.Fatal("not idle")
		}
		if diff := cmp.Diff([]string{"a3", "b1", "b2", "b3", "a1", "a2"}, h.sent); diff != "" || h.most != 1 {
			t.Errorf("%d requests were under way at once; sent (-want +got):\n%s", h.most, diff)
		}
	})
}

func TestRunnerStopsWithTheContextOfRequestsThatHang(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHoldUp(t, "a", "b")
		for i := range 100 {
			h.hold(fmt.Sprint("a", i))
			h.hold(fmt.Sprint("b", i))
			h.put("a", fmt.Sprint("a", i))
			h.put("b", fmt.Sprint("b", i))
		}
		h.start()
		time.Sleep(time.Second)
		synctest.Wait()
		if h.now != 10 {
			t.Errorf("%d requests are under way, want 5 of each controller", h.now)
		}
		began := len(h.sent)
		h.stop()
		if h.now != 0 || len(h.sent) != began {
			t.Errorf("%d requests are under way after the end, %d have begun since", h.now, len(h.sent)-began)
		}
		if n := len(h.sweepers["a"].reported); n != 100 {
			t.Errorf("%d outcomes were reported, want all 100", n)
		}
	})
}

func TestRunnerBacksOffForTheControllerThatFailsAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHoldUp(t, "a", "b")
		h.refused["a1"] = 5
		h.start()
		start := time.Now()
		h.put("a", "a1")
		synctest.Wait()
		if len(h.sent) != 1 {
			t.Fatalf("sent %v, want one try", h.sent)
		}
		for range 3 { // each may be what was missing
			h.put("b", "b1")
			synctest.Wait()
			if h.left("b") > 0 {
				t.Error("a controller waits for another one's back-off")
			}
		}
		if time.Since(start) > 0 {
			t.Errorf("that took %v", time.Since(start))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if h.left("a") > 0 {
			t.Errorf("not done after a minute; sent %v", h.sent)
		}
		if n := len(h.sweepers["a"].reported); n != 6 {
			t.Errorf("%d tries, want 6", n)
		}
	})
}

// signalled is a sweeper that is stepped on a signal.
type signalled struct {
	sweeper
	signal func()
	steps  int
}

func (s *signalled) OnSignal(signal func()) { s.signal = signal }

func (s *signalled) Sync(view storage.View, now time.Time) []step.Request {
	if s.steps++; s.steps == 2 {
		s.signal() // while the runner does not wait
	}
	return s.sweeper.Sync(view, now)
}

func TestRunStepsControllersOnSignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHoldUp(t)
		c := &signalled{sweeper: sweeper{bucket: "a"}}
		h.runner = step.NewRunner(h.store, h.send, slog.New(slog.DiscardHandler), c)
		h.start()
		before := c.steps
		c.signal()
		synctest.Wait()
		if got := c.steps - before; got != 2 {
			t.Errorf("%d steps after a signal and one in between, want 2", got)
		}
	})
}

// pipelined is a sweeper that asks for no object about which a request is under way.
type pipelined struct {
	sweeper
	underWay step.KeySet
	wake     time.Time
	stepped  []time.Time
}

func (p *pipelined) Pipelined() {}

func (p *pipelined) Wake() time.Time { return p.wake }

func (p *pipelined) Sync(view storage.View, now time.Time) []step.Request {
	p.stepped = append(p.stepped, now)
	if !now.Before(p.wake) {
		p.wake = time.Time{}
	}
	var waiting []storage.Key
	for key := range p.underWay {
		if _, due := p.due[key]; due {
			waiting = append(waiting, key)
			delete(p.due, key)
		}
	}
	out := p.sweeper.Sync(view, now)
	for i := range out {
		p.underWay.Add(out[i].Subject.Key)
	}
	p.due.Add(waiting...)
	return out
}

func (p *pipelined) Done(r step.Request, err error) {
	delete(p.underWay, r.Subject.Key)
	p.sweeper.Done(r, err)
}

func newPipelined(t *testing.T) (*holdUp, *pipelined) {
	t.Helper()
	h := newHoldUp(t)
	c := &pipelined{sweeper: sweeper{bucket: "a"}, underWay: step.KeySet{}}
	h.runner = step.NewRunner(h.store, h.send, slog.New(slog.DiscardHandler), c)
	return h, c
}

func TestRunnerStepsAPipelinedControllerWhileARequestHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, c := newPipelined(t)
		h.start()
		release := h.hold("stuck")
		h.put("a", "stuck")
		time.Sleep(time.Second)
		for round := range 10 {
			h.put("a", fmt.Sprint("free-", round))
			time.Sleep(20 * time.Millisecond)
			if n := h.left("a"); n != 1 {
				t.Fatalf("round %d: %d objects are left, want the one that is held", round, n)
			}
		}
		h.put("a", "stuck") // the request that is under way does for that
		if h.idle() {
			t.Error("idle while a request is under way")
		}
		release()
		if !h.idle() || h.left("a") > 0 {
			t.Errorf("%d objects are left after the request has ended", h.left("a"))
		}
		if n := len(c.reported); n != 11 {
			t.Errorf("%d outcomes were reported, want one of each object", n)
		}
	})
}

// TestRunnerBoundsTheSendersOfAPipelinedController: requests of several steps share them.
func TestRunnerBoundsTheSendersOfAPipelinedController(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, c := newPipelined(t)
		h.start()
		var release []func()
		for i := range 12 {
			name := fmt.Sprintf("held-%02d", i)
			release = append(release, h.hold(name))
			h.put("a", name)
			time.Sleep(time.Second)
			synctest.Wait()
		}
		if h.now != 5 || h.most != 5 {
			t.Errorf("%d requests are under way, and %d were at most, want 5", h.now, h.most)
		}
		release[3]()
		synctest.Wait()
		if n := len(c.reported); n != 1 || h.now != 5 {
			t.Errorf("%d outcomes are reported and %d requests under way, want 1 and 5", n, h.now)
		}
		for _, let := range release {
			let()
		}
		if !h.idle() || h.left("a") > 0 || h.most != 5 {
			t.Errorf("%d objects are left, %d requests were under way at once", h.left("a"), h.most)
		}
	})
}

// TestRunnerWakesAPipelinedControllerBetweenRetries: requests that fail delay nothing else.
func TestRunnerWakesAPipelinedControllerBetweenRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, c := newPipelined(t)
		h.refused["refused"] = 1000
		h.start()
		h.put("a", "refused")
		time.Sleep(time.Minute) // the retries are ten seconds apart
		synctest.Wait()
		c.wake = time.Now().Add(time.Second)
		at := c.wake
		h.put("b", "of no controller") // after a failure it ends the waiting, which sees the time
		time.Sleep(3 * time.Second)
		synctest.Wait()
		for _, stepped := range c.stepped {
			if stepped.Equal(at) {
				return
			}
		}
		t.Errorf("not stepped at the time that it asked for, %v, but at %v", at, c.stepped[len(c.stepped)-3:])
	})
}
