// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package micro measures what single steps of a runtime cost, from inside its
// process and against canned answers, so that no server takes part: initial
// sync, watch event to handler, cached reads, indexes, queue, empty reconcile.
package micro

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// Side is a runtime under test.
type Side interface {
	// Cache starts a cache of the kind of obj with so many field indexes and a
	// handler of updates, and returns once it has synced.
	Cache(ctx context.Context, config *rest.Config, obj Object, indexes int, updated func()) (Reads, error)
	// Queue returns what moves key number i through a queue that holds so many
	// others: add, get, done, with a priority.
	Queue(waiting int) (trip func(i int), stop func())
	// Reconcile starts a controller of one worker that calls reconciled and
	// does nothing else, and returns what hands it a request.
	Reconcile(ctx context.Context, config *rest.Config, reconciled func()) (enqueue func(), err error)
	// Controllers starts a manager with so many controllers of one worker on Pods,
	// each of which reads its object from the cache and calls reconciled.
	Controllers(ctx context.Context, config *rest.Config, n int, reconciled func()) error
}

// Compacting is a side that can hold objects encoded.
type Compacting interface {
	// CompactCache is Cache of [Side] with objects held encoded.
	CompactCache(ctx context.Context, config *rest.Config, obj Object) (Reads, error)
}

// Recording is a side with a flight recorder that can be turned off.
type Recording interface {
	// ReconcileUnrecorded is Reconcile of [Side] without the recorder.
	ReconcileUnrecorded(ctx context.Context, config *rest.Config, reconciled func()) (enqueue func(), err error)
	// WriteStatus is Reconcile of [Side] with one patch of the status of [StatusPod] in
	// each reconcile, with the recorder or without, and passes on how that ended.
	WriteStatus(ctx context.Context, config *rest.Config, recorded bool, reconciled func(error)) (enqueue func(), err error)
}

// Reads of a cache of Pods; the objects are private copies except in Iterate.
type Reads struct {
	Get, List func() error
	// Iterate over the shared objects; nil where a side only has copies.
	Iterate func() error
}

// Namespace of what Get reads; List and Iterate read all of it.
const Namespace = "ns-0"

// Name of what Get reads.
func Name() string { return podName(7) }

// Result maps the names of the lines to what was measured, in their units.
type Result map[string]float64

// Measure runs everything once; objects is how many an initial sync has.
func Measure(ctx context.Context, side Side, process func() time.Duration, objects int) (Result, error) {
	m := &measurement{side: side, process: process, out: Result{}, objects: objects}
	m.queue()
	for _, step := range []func(context.Context) error{m.sync, m.events, m.reads, m.indexes, m.reconcile} {
		ctx, cancel := context.WithCancel(ctx)
		err := step(ctx)
		cancel()
		if err != nil {
			return nil, err
		}
	}
	return m.out, nil
}

type measurement struct {
	side    Side
	process func() time.Duration // CPU time of the process
	out     Result
	objects int
}

// Spent is what a function took of the whole process.
type spent struct {
	cpu           time.Duration
	allocs, bytes float64
}

func (m *measurement) spend(fn func() error) (spent, error) {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := m.process()
	err := fn()
	s := spent{cpu: m.process() - cpu}
	runtime.ReadMemStats(&after)
	s.allocs, s.bytes = float64(after.Mallocs-before.Mallocs), float64(after.TotalAlloc-before.TotalAlloc)
	return s, err
}

func (m *measurement) repeat(n int, fn func() error) (spent, error) {
	return m.spend(func() error {
		for range n {
			if err := fn(); err != nil {
				return err
			}
		}
		return nil
	})
}

func config(transport http.RoundTripper) *rest.Config {
	return &rest.Config{Host: "http://canned.invalid", Transport: transport, QPS: -1, Burst: -1}
}

// names of a form in the lines.
func (f form) String() string { return [...]string{"JSON", "protobuf", "unstructured", "metadata"}[f] }

func (m *measurement) sync(ctx context.Context) error {
	plain := func(ctx context.Context, config *rest.Config, obj Object) (Reads, error) {
		return m.side.Cache(ctx, config, obj, 0, func() {})
	}
	for _, f := range []form{custom, builtin} {
		cpu, heap, err := m.syncOnce(ctx, f, plain)
		if err != nil {
			return err
		}
		m.out["sync CPU, "+f.String()] = cpu
		m.out["sync heap, "+f.String()] = heap
	}
	// A side that cannot be compact is compared as it is.
	m.out["sync heap, compact"] = m.out["sync heap, "+builtin.String()]
	if side, ok := m.side.(Compacting); ok {
		_, heap, err := m.syncOnce(ctx, builtin, side.CompactCache)
		if err != nil {
			return err
		}
		m.out["sync heap, compact"] = heap
	}
	return nil
}

// syncOnce starts a cache and returns the CPU that it took until it had synced,
// in milliseconds, and the live heap that it holds then, in megabytes.
func (m *measurement) syncOnce(ctx context.Context, f form, start func(context.Context, *rest.Config, Object) (Reads, error)) (cpu, heap float64, err error) {
	server, err := newCanned(f, m.objects, false)
	if err != nil {
		return 0, 0, err
	}
	runtime.GC()
	before := liveHeap()
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	var reads Reads
	s, err := m.spend(func() (err error) {
		reads, err = start(running, config(server), f.blank())
		return err
	})
	heap = (liveHeap() - before) / 1e6
	runtime.KeepAlive(server)
	runtime.KeepAlive(reads)
	return s.cpu.Seconds() * 1000, heap, err
}

func liveHeap() float64 {
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	return float64(memory.HeapAlloc)
}

// watching starts a cache on a server and returns what sends so many updates
// and waits until the handler has seen them; alone sends one after the other and
// returns how often goroutines were woken.
func (m *measurement) watching(ctx context.Context, f form, indexes int, small bool) (send func(n int) (spent, error), alone func(n int) (float64, error), err error) {
	const objects = 200
	server, err := newCanned(f, objects, small)
	if err != nil {
		return nil, nil, err
	}
	var seen atomic.Int64
	var want atomic.Int64
	done := make(chan struct{}, 1)
	_, err = m.side.Cache(ctx, config(server), f.blank(), indexes, func() {
		if seen.Add(1) == want.Load() {
			done <- struct{}{}
		}
	})
	version := revision
	frames := func(n int) ([][]byte, error) {
		var all [][]byte
		for range n {
			version++
			frame, err := server.frame("MODIFIED", f.object(version%objects, version, small))
			if err != nil {
				return nil, err
			}
			all = append(all, frame)
		}
		return all, nil
	}
	send = func(n int) (spent, error) {
		all, err := frames(n)
		if err != nil {
			return spent{}, err
		}
		want.Store(seen.Load() + int64(n))
		return m.spend(func() error {
			for _, frame := range all {
				server.live <- frame
			}
			<-done
			return nil
		})
	}
	alone = func(n int) (float64, error) {
		all, err := frames(n)
		if err != nil {
			return 0, err
		}
		woken, err := wakeups(func() {
			for _, frame := range all {
				want.Store(seen.Load() + 1)
				server.live <- frame
				<-done
			}
		})
		return float64(woken), err
	}
	return send, alone, err
}

func (m *measurement) events(ctx context.Context) error {
	for _, f := range []form{custom, builtin} {
		const events = 4000
		send, alone, err := m.watching(ctx, f, 0, false)
		if err != nil {
			return err
		}
		if _, err := send(200); err != nil { // warm
			return err
		}
		s, err := send(events)
		if err != nil {
			return err
		}
		m.out["event CPU, "+f.String()] = float64(s.cpu.Nanoseconds()) / events / 1000
		const single = 2000
		woken, err := alone(single)
		if err != nil {
			return err
		}
		// One wakes the reader of the connection, one the benchmark after the handler.
		m.out["hand-offs, "+f.String()] = math.Round(max(woken/single-2, 0)*10) / 10
	}
	return nil
}

func (m *measurement) reads(ctx context.Context) error {
	server, err := newCanned(builtin, min(m.objects, 2000), false)
	if err != nil {
		return err
	}
	reads, err := m.side.Cache(ctx, config(server), builtin.blank(), 0, func() {})
	if err != nil {
		return err
	}
	if reads.Iterate == nil {
		reads.Iterate = reads.List
	}
	for _, line := range []struct {
		name string
		n    int
		fn   func() error
	}{{"get", 5000, reads.Get}, {"list", 100, reads.List}, {"iterate", 100, reads.Iterate}} {
		s, err := m.repeat(line.n, line.fn)
		if err != nil {
			return fmt.Errorf("%s: %w", line.name, err)
		}
		m.out[line.name+" allocs"] = s.allocs / float64(line.n)
		m.out[line.name+" bytes"] = s.bytes / float64(line.n)
		m.out[line.name+" CPU"] = float64(s.cpu.Nanoseconds()) / float64(line.n) / 1000
	}
	return nil
}

// indexes takes the difference between updates of small objects with one or five
// indexes and with none, the least of several rounds each.
func (m *measurement) indexes(ctx context.Context) error {
	const events = 10000
	counts := []int{0, 1, 5}
	least := map[int]float64{}
	sends := map[int]func(int) (spent, error){}
	for _, n := range counts {
		send, _, err := m.watching(ctx, builtin, n, true)
		if err != nil {
			return err
		}
		sends[n], least[n] = send, math.Inf(1)
	}
	for range 5 {
		for _, n := range counts {
			s, err := sends[n](events)
			if err != nil {
				return err
			}
			least[n] = min(least[n], float64(s.cpu.Nanoseconds())/events/1000)
		}
	}
	for _, n := range counts {
		m.out[fmt.Sprintf("update CPU, %d indexes", n)] = least[n]
		m.out[fmt.Sprintf("%d indexes", n)] = max(least[n]-least[0], 0.01) // what is less is noise
	}
	return nil
}

func (m *measurement) queue() {
	for _, waiting := range []int{0, 10_000} {
		const trips = 100_000
		trip, stop := m.side.Queue(waiting)
		i := 0
		once := func() error { trip(i); i++; return nil }
		_, _ = m.repeat(trips/10, once) // warm; once never fails
		s, _ := m.repeat(trips, once)
		stop()
		m.out[fmt.Sprintf("queue CPU, %d", waiting)] = float64(s.cpu.Nanoseconds()) / trips / 1000
		m.out[fmt.Sprintf("queue allocs, %d", waiting)] = math.Round(s.allocs/trips*10) / 10
	}
}

func (m *measurement) reconcile(ctx context.Context) error {
	once, err := reconciling(ctx, m.side.Reconcile)
	if err != nil {
		return err
	}
	const reconciles = 20000
	if _, err := m.repeat(reconciles/10, once); err != nil {
		return err
	}
	s, err := m.repeat(reconciles, once)
	m.out["reconcile CPU"] = float64(s.cpu.Nanoseconds()) / reconciles / 1000
	m.out["reconcile allocs"] = s.allocs / reconciles
	side, ok := m.side.(Recording)
	if err != nil || !ok {
		return err
	}
	unrecorded, err := reconciling(ctx, side.ReconcileUnrecorded)
	if err != nil {
		return err
	}
	least, err := m.beside(reconciles/4, once, unrecorded)
	if err != nil {
		return err
	}
	m.out["recorder CPU"] = max(least[0].cpu-least[1].cpu, 0.01) // what is less is noise
	m.out["recorder allocs"] = math.Round(max(least[0].allocs-least[1].allocs, 0)*10) / 10
	return nil
}

// reconciling returns what makes one reconcile and waits for it.
func reconciling(ctx context.Context, start func(context.Context, *rest.Config, func()) (func(), error)) (once func() error, err error) {
	server, err := newCanned(builtin, 1, true)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{}, 1)
	enqueue, err := start(ctx, config(server), func() { done <- struct{}{} })
	return func() error { enqueue(); <-done; return nil }, err
}

// perStep is what one step took: microseconds of CPU, and allocations.
type perStep struct{ cpu, allocs float64 }

// beside measures two steps in turn: of each, the least of several rounds of n.
func (m *measurement) beside(n int, first, second func() error) (least [2]perStep, err error) {
	for i := range least {
		least[i] = perStep{math.Inf(1), math.Inf(1)}
	}
	for range 21 {
		for i, fn := range []func() error{first, second} {
			s, err := m.repeat(n, fn)
			if err != nil {
				return least, err
			}
			least[i].cpu = min(least[i].cpu, float64(s.cpu.Nanoseconds())/float64(n)/1000)
			least[i].allocs = min(least[i].allocs, s.allocs/float64(n))
		}
	}
	return least, nil
}
