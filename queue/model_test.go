// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/steer-dev/steer/trace"
)

// model is the queue as one would explain it: it searches all keys at every
// step.
type model struct {
	keys map[int]*modelKey
}

type modelKey struct {
	wanted   bool
	at       int64 // when it is or became ready
	priority int
	adds     int
	runs     bool
}

const modelStep = 10

func (m *model) key(k int) *modelKey {
	if m.keys[k] == nil {
		m.keys[k] = &modelKey{}
	}
	return m.keys[k]
}

func (m *model) add(now, at int64, k, priority int) {
	e := m.key(k)
	switch {
	case !e.wanted:
		*e = modelKey{wanted: true, at: at, priority: priority, runs: e.runs}
	case e.at > now: // delayed: the earliest add wins
		e.at = min(e.at, at)
		e.priority = max(e.priority, priority)
	default: // ready: its place among the ready ones can only improve
		e.priority = max(e.priority, priority)
	}
	e.adds++
}

// best returns the smallest deadline of what may run now.
func (m *model) best(now int64) (deadline int64, ok bool) {
	for _, e := range m.keys {
		if e.wanted && !e.runs && e.at <= now {
			if d := e.at - int64(e.priority)*modelStep; !ok || d < deadline {
				deadline, ok = d, true
			}
		}
	}
	return deadline, ok
}

// runModel drives core and model through one history of operations.
func runModel(t *testing.T, next func() (byte, bool)) {
	c := newCore[int](modelStep)
	m := model{keys: map[int]*modelKey{}}
	now := int64(0)
	running := map[int]bool{}
	take := func() bool {
		c.promote(now)
		e := c.take(now)
		deadline, ok := m.best(now)
		if e == nil {
			if ok {
				t.Fatalf("at %d nothing is ready, the model knows better", now)
			}
			return false
		}
		k := e.key
		want := m.keys[k]
		switch {
		case running[k]:
			t.Fatalf("key %d runs twice at once", k)
		case want == nil || !want.wanted || want.at > now:
			t.Fatalf("key %d runs at %d without a request", k, now)
		case want.at-int64(want.priority)*modelStep != deadline:
			t.Fatalf("key %d with deadline %d runs before one with %d", k, want.at-int64(want.priority)*modelStep, deadline)
		case e.since != want.at || int(e.runPriority) != want.priority:
			t.Fatalf("key %d is ready since %d with priority %d, not %d with %d", k, e.since, e.runPriority, want.at, want.priority)
		case e.currentCauses().Total() != want.adds:
			t.Fatalf("key %d ran for %d causes, not %d", k, e.currentCauses().Total(), want.adds)
		}
		want.wanted, want.runs = false, true
		running[k] = true
		return true
	}
	done := func(k int) {
		_, ok, _ := c.done(now, k)
		if ok != running[k] {
			t.Fatalf("done of key %d: running is %v", k, ok)
		}
		delete(running, k)
		m.key(k).runs = false
	}
	for {
		op, ok := next()
		arg, ok2 := next()
		if !ok || !ok2 {
			break
		}
		k, priority := int(arg)%7, int(arg)/7%5-2
		switch op % 6 {
		case 0:
			c.promote(now)
			c.add(now, now, k, priority, &trace.Cause{})
			m.add(now, now, k, priority)
		case 1:
			c.promote(now)
			at := now + 1 + int64(arg)%40
			c.add(now, at, k, priority, &trace.Cause{})
			m.add(now, at, k, priority)
		case 2:
			take()
		case 3:
			done(k)
		case 4:
			now += int64(arg) % 16
		case 5:
			m.key(k)
			if arg%2 == 0 {
				c.fail(k)
			} else {
				c.forget(k)
			}
		}
		check(t, &c)
		if c.order%16 == 0 { // it looks at all keys
			checkFirst(t, &c)
		}
	}
	// Nothing is lost: once time has passed, everything wanted runs, once.
	now += 1000
	for k := range running {
		done(k)
	}
	for take() {
	}
	for k, e := range m.keys {
		if e.wanted {
			t.Fatalf("key %d was lost", k)
		}
		if running[k] {
			done(k)
		}
		c.forget(k)
	}
	if c.entries.len != 0 || c.waiting() != 0 {
		t.Fatalf("%d entries and %d waiting are left over", c.entries.len, c.waiting())
	}
}

// check holds the invariants of the state machine.
func check(t *testing.T, c *core[int]) {
	t.Helper()
	for _, h := range []*heap[int]{&c.ready.heap, &c.delayed} {
		for i := range h.nodes {
			if i > 0 && h.nodes[i].before(&h.nodes[(i-1)/4]) {
				t.Fatalf("node %d lies below a later one", i)
			}
		}
		checkNodes(t, h.nodes, h.dropped)
	}
	for i := range c.ready.lanes {
		l := &c.ready.lanes[i]
		nodes := l.nodes[l.head:]
		if !slices.IsSortedFunc(nodes, func(a, b node[int]) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) }) {
			t.Fatalf("lane %d is not in order", i)
		}
		for _, n := range nodes {
			if n.counts() && n.entry.priority != l.priority {
				t.Fatalf("priority %d is in the lane of %d", n.entry.priority, l.priority)
			}
		}
		checkNodes(t, nodes, l.dropped)
	}
	pending := c.ready.len() + c.delayed.len()
	want, waiting := 0, 0
	for _, e := range c.entries.all() {
		if e.pending == delayed || e.pending == ready && !e.runs {
			want++
		}
		if e.pending == ready {
			waiting++
		}
	}
	if pending != want || c.waiting() != waiting {
		t.Fatalf("%d of %d are pending, depth says %d of %d", pending, want, c.waiting(), waiting)
	}
}

// checkFirst compares the first keys of each state with all that are in it.
func checkFirst(t *testing.T, c *core[int]) {
	t.Helper()
	const most = 2
	now, failed, late := c.first(most)
	for state, got := range map[string]first[int]{"ready": now, "failed": failed, "late": late} {
		var all []int64
		for _, e := range c.entries.all() {
			switch {
			case e.pending == ready && state == "ready":
				all = append(all, c.deadline(e))
			case e.pending == delayed && state == "failed" && e.failures > 0, e.pending == delayed && state == "late" && e.failures == 0:
				all = append(all, e.since)
			}
		}
		slices.Sort(all)
		var times []int64
		for i := range got.nodes {
			times = append(times, got.nodes[i].at)
		}
		if got.all != len(all) || !slices.Equal(times, all[:min(len(all), most)]) {
			t.Fatalf("%s: the first of %d are at %v, want those of %v", state, got.all, times, all)
		}
	}
}

// checkNodes compares what is dropped with what does not count.
func checkNodes(t *testing.T, nodes []node[int], want int) {
	t.Helper()
	dropped := 0
	for i := range nodes {
		if !nodes[i].counts() {
			dropped++
		}
	}
	if dropped != want || 2*dropped > len(nodes) || len(nodes) > 0 && !nodes[0].counts() {
		t.Fatalf("%d of %d nodes do not count, believed are %d", dropped, len(nodes), want)
	}
}

func TestRandomHistoriesAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		left := 2000
		runModel(t, func() (byte, bool) {
			left--
			return byte(r.Uint32()), left > 0
		})
	}
}

func FuzzQueue(f *testing.F) {
	f.Add([]byte{0, 1, 2, 0, 0, 1, 3, 1, 2, 0})
	f.Add([]byte{1, 9, 4, 15, 0, 9, 2, 0, 1, 9, 3, 2})
	f.Fuzz(func(t *testing.T, history []byte) {
		runModel(t, func() (byte, bool) {
			if len(history) == 0 {
				return 0, false
			}
			b := history[0]
			history = history[1:]
			return b, true
		})
	})
}

func TestWaitingOutweighsPriority(t *testing.T) {
	t.Parallel()
	c := newCore[int](time.Duration(modelStep))
	c.add(0, 0, -1, LowPriority, &trace.Cause{})
	for now := int64(1); ; now++ {
		c.add(now, now, int(now), 0, &trace.Cause{})
		e := c.take(now)
		if e.key == -1 {
			if want := int64(-LowPriority * modelStep); now < want-1 || now > want+1 {
				t.Errorf("the low priority ran at %d, not at %d", now, want)
			}
			return
		}
		if now > 2*-LowPriority*modelStep {
			t.Fatal("the low priority starves")
		}
		c.done(now, e.key)
	}
}
