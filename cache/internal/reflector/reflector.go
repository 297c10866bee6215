// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/listwatch"
)

// ErrCovered, of Source.Resolve, says that another Reflector delivers the
// objects: there is nothing to follow here.
var ErrCovered = errors.New("covered by another watch")

// Source is the API server as a Reflector needs it.
type Source interface {
	// Resolve finds the kind; watchList says whether the initial state should
	// be streamed.
	Resolve(ctx context.Context) (watchList bool, err error)
	// List asks for a page.
	List(ctx context.Context, cont string, limit int64) (listwatch.Page, error)
	// Watch opens a watch; the end of ctx breaks it.
	Watch(ctx context.Context, revision string, initial bool) (listwatch.Events, error)
}

// Sink takes deltas in order. Push blocks while it is full and fails when ctx
// ends. Mark is store.Store.Mark.
type Sink interface {
	Push(ctx context.Context, d store.Delta) error
	Mark() uint64
}

// Config of a Reflector.
type Config struct {
	Source Source
	Sink   Sink
	Scope  int
	// PageSize of lists, IdleTimeout of watches.
	PageSize    int64
	IdleTimeout time.Duration
	Random      func() float64
	// Transform runs on every object; nil leaves them alone.
	Transform func(client.Object) (client.Object, error)
	// Report receives every change of state; nil drops them.
	Report func(Report)
}

// Report is where a Reflector is.
type Report struct {
	State             State
	Err               error
	Delay             time.Duration // of a wait
	Restarts, Relists int
}

// ErrStarted is a second Run of a Reflector.
var ErrStarted = errors.New("it has been started before, and is started once: make another one")

// Reflector runs a Machine.
type Reflector struct {
	cfg     Config
	m       Machine
	started atomic.Bool
}

// New makes a Reflector. Nothing happens before Run.
func New(cfg Config) *Reflector {
	return &Reflector{cfg: cfg, m: Machine{PageSize: cfg.PageSize, Random: cfg.Random}}
}

// Run follows the collection until ctx ends, or until an error of the source says that
// another scope covers it, and returns nil. A second Run is [ErrStarted].
func (r *Reflector) Run(ctx context.Context) error {
	if r.started.Swap(true) {
		return ErrStarted
	}
	listBegun := false
	for ctx.Err() == nil {
		step := r.m.Next()
		r.report(step.Delay)
		switch step.Action {
		case Resolve:
			watchList, err := r.cfg.Source.Resolve(ctx)
			if errors.Is(err, ErrCovered) {
				if r.cfg.Report != nil {
					r.cfg.Report(Report{State: Watching})
				}
				_ = r.push(ctx, store.Delta{Op: store.Covered})
				return nil
			}
			if err == nil {
				r.m.WatchList = watchList
			}
			r.m.Resolved(err)
			listBegun = false
		case List:
			listBegun = listBegun && step.Continue != ""
			listBegun = r.list(ctx, step, listBegun)
		case Watch:
			r.watch(ctx, step)
		case Wait:
			if step.Gone {
				_ = r.push(ctx, store.Delta{Op: store.KindGone}) // it fails only when ctx has ended
			}
			if !sleep(ctx, step.Delay) {
				return nil
			}
			r.m.Waited()
		}
	}
	return nil
}

func (r *Reflector) report(delay time.Duration) {
	if r.cfg.Report != nil {
		r.cfg.Report(Report{State: r.m.State(), Err: r.m.Err(), Delay: delay, Restarts: r.m.Restarts(), Relists: r.m.Relists()})
	}
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r *Reflector) push(ctx context.Context, d store.Delta) error {
	d.Scope = r.cfg.Scope
	return r.cfg.Sink.Push(ctx, d)
}

// list reads one page. begun says that ListBegin has been pushed for this list;
// so does the result for the next page.
func (r *Reflector) list(ctx context.Context, step Step, begun bool) bool {
	if !begun {
		if r.push(ctx, store.Delta{Op: store.ListBegin, Mark: r.cfg.Sink.Mark()}) != nil {
			return false
		}
	}
	listMeta, err := r.readPage(ctx, step)
	r.m.Page(listMeta.Continue, listMeta.ResourceVersion, err)
	if err == nil && r.m.ListComplete() {
		_ = r.push(ctx, store.Delta{Op: store.ListEnd, Revision: listMeta.ResourceVersion})
		return false
	}
	return err == nil
}

func (r *Reflector) readPage(ctx context.Context, step Step) (metav1.ListMeta, error) {
	// A page that stops coming is a dead connection as well.
	ctx, idle := newIdle(ctx, r.cfg.IdleTimeout)
	defer idle.stop()
	page, err := r.cfg.Source.List(ctx, step.Continue, step.Limit)
	if err != nil {
		return metav1.ListMeta{}, idle.explain(err)
	}
	defer func() { _ = page.Close() }()
	for {
		obj, err := page.Next()
		if errors.Is(err, io.EOF) {
			return page.Meta(), nil
		}
		if err != nil {
			return metav1.ListMeta{}, idle.explain(err)
		}
		idle.reset()
		if err := r.pushObject(ctx, store.PutListed, obj); err != nil {
			return metav1.ListMeta{}, err
		}
	}
}

func (r *Reflector) pushObject(ctx context.Context, op store.Op, o runtime.Object) error {
	obj, ok := o.(client.Object)
	if !ok {
		return fmt.Errorf("%T has no object metadata", o)
	}
	revision := obj.GetResourceVersion()
	if r.cfg.Transform != nil {
		changed, err := r.cfg.Transform(obj)
		if err != nil {
			return fmt.Errorf("transform %s: %w", client.FormatKey(client.ObjectKeyFromObject(obj)), err)
		}
		obj = changed
	}
	return r.push(ctx, store.Delta{Op: op, Object: obj, Revision: revision})
}

// watch opens a watch and reads it to its end.
func (r *Reflector) watch(ctx context.Context, step Step) {
	ctx, idle := newIdle(ctx, r.cfg.IdleTimeout)
	defer idle.stop()
	if step.Initial && r.push(ctx, store.Delta{Op: store.ListBegin, Mark: r.cfg.Sink.Mark()}) != nil {
		return
	}
	events, err := r.cfg.Source.Watch(ctx, step.Revision, step.Initial)
	err = idle.explain(err)
	r.m.Opened(err)
	if err != nil {
		return
	}
	defer func() { _ = events.Close() }()
	r.report(0)
	opened, count := time.Now(), 0
	for {
		e, err := events.Next()
		if err == nil {
			idle.reset()
			count++
			err = r.event(ctx, e, step.Initial)
		}
		if err != nil {
			r.m.Closed(idle.explain(err), time.Since(opened), count)
			return
		}
	}
}

func (r *Reflector) event(ctx context.Context, e watch.Event, initial bool) error {
	if e.Type == watch.Error {
		return apierrors.FromObject(e.Object)
	}
	obj, ok := e.Object.(client.Object)
	if !ok {
		return fmt.Errorf("a watch event with a %T, which has no object metadata", e.Object)
	}
	revision := obj.GetResourceVersion()
	op := store.Put
	if initial && r.m.State() == Streaming {
		op = store.PutListed
	}
	var err error
	switch e.Type {
	case watch.Added, watch.Modified:
		err = r.pushObject(ctx, op, obj)
	case watch.Deleted:
		err = r.pushObject(ctx, store.Delete, obj)
	case watch.Bookmark:
		if obj.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" && r.m.State() == Streaming {
			err = r.push(ctx, store.Delta{Op: store.ListEnd, Revision: revision})
			r.m.InitialEnd(revision)
			r.report(0)
			return err
		}
		if r.m.State() == Streaming {
			return nil
		}
		err = r.push(ctx, store.Delta{Op: store.Progress, Revision: revision})
	default:
		return fmt.Errorf("a watch event of unknown type %q", e.Type)
	}
	if err != nil {
		return err
	}
	wasWell := r.m.Err() == nil
	r.m.Delivered(revision)
	if !wasWell {
		r.report(0)
	}
	return nil
}

// idle ends a context when nothing has happened for a while.
type idle struct {
	timer   *time.Timer
	timeout time.Duration
	cancel  context.CancelFunc

	mu    sync.Mutex
	fired bool
	last  time.Time
}

func newIdle(ctx context.Context, timeout time.Duration) (context.Context, *idle) {
	ctx, cancel := context.WithCancel(ctx)
	i := &idle{timeout: timeout, cancel: cancel}
	i.timer = time.AfterFunc(timeout, func() {
		i.mu.Lock()
		i.fired = true
		i.mu.Unlock()
		cancel()
	})
	return ctx, i
}

// reset is called for every item, so it only notes the time now and then.
func (i *idle) reset() {
	if now := time.Now(); now.Sub(i.last) > i.timeout/16 {
		i.last = now
		i.timer.Reset(i.timeout)
	}
}

func (i *idle) stop() {
	i.timer.Stop()
	i.cancel()
}

// explain names the real reason of an error that the timer caused.
func (i *idle) explain(err error) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err != nil && i.fired {
		return ErrIdle
	}
	return err
}
