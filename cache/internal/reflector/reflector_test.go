// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/listwatch"
)

// play is a source of prepared answers, each used once, and the sink of the deltas.
// When the answers are used up it waits until the context ends.
type play struct {
	watchList bool
	resolve   []error
	lists     []listed
	watches   []watched
	mu        sync.Mutex
	// log has what was asked for and pushed, in order.
	log []string
	// full makes every Push of this kind fail.
	full error
}

// listed is a page: objects by name, then err, or the end.
type listed struct {
	openErr error
	items   []runtime.Object
	stall   bool // nothing comes until the context ends
	err     error
	meta    metav1.ListMeta
	ctx     context.Context
}

func (l *listed) Next() (runtime.Object, error) {
	if len(l.items) > 0 {
		item := l.items[0]
		l.items = l.items[1:]
		return item, nil
	}
	if l.stall {
		<-l.ctx.Done()
		return nil, l.ctx.Err()
	}
	if l.err != nil {
		return nil, l.err
	}
	return nil, io.EOF
}
func (l *listed) Meta() metav1.ListMeta { return l.meta }
func (l *listed) Close() error          { return nil }

// watched is a watch: events, then err; without one, nothing until the context ends.
type watched struct {
	openErr error
	events  []watch.Event
	err     error
	ctx     context.Context
}

func (w *watched) Next() (watch.Event, error) {
	if len(w.events) > 0 {
		e := w.events[0]
		w.events = w.events[1:]
		return e, nil
	}
	if w.err != nil {
		return watch.Event{}, w.err
	}
	<-w.ctx.Done()
	return watch.Event{}, w.ctx.Err()
}
func (w *watched) Close() error { return nil }

func (p *play) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// said returns what was asked for and pushed so far.
func (p *play) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.log)
}

func (p *play) Resolve(context.Context) (bool, error) {
	if len(p.resolve) == 0 {
		return p.watchList, nil
	}
	err := p.resolve[0]
	p.resolve = p.resolve[1:]
	return p.watchList, err
}

func (p *play) List(ctx context.Context, cont string, limit int64) (listwatch.Page, error) {
	p.note("list %q limit %d", cont, limit)
	if len(p.lists) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	next := p.lists[0]
	p.lists = p.lists[1:]
	next.ctx = ctx
	return &next, next.openErr
}

func (p *play) Watch(ctx context.Context, revision string, initial bool) (listwatch.Events, error) {
	p.note("watch from %q initial %v", revision, initial)
	next := watched{}
	if len(p.watches) > 0 {
		next, p.watches = p.watches[0], p.watches[1:]
	}
	next.ctx = ctx
	return &next, next.openErr
}

func (p *play) Mark() uint64 { return 5 }

func (p *play) Push(ctx context.Context, d store.Delta) error {
	name := map[store.Op]string{
		store.ListBegin: "begin", store.ListEnd: "end", store.Put: "put", store.PutListed: "put listed",
		store.Delete: "delete", store.Progress: "progress", store.Covered: "covered", store.KindGone: "gone",
	}[d.Op]
	if d.Object != nil {
		name += " " + d.Object.GetName()
	}
	if d.Op == store.ListBegin {
		name += fmt.Sprintf(" mark %d", d.Mark)
	}
	p.note("%s at %q", name, d.Revision)
	if d.Scope != 3 {
		p.note("scope %d", d.Scope)
	}
	if p.full != nil && d.Object != nil {
		return p.full
	}
	return ctx.Err()
}

func named(name, revision string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: revision}}
}

func bookmark(revision string, end bool) watch.Event {
	pod := named("", revision)
	if end {
		pod.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return watch.Event{Type: watch.Bookmark, Object: pod}
}

// listMeta is that of a list at revision 7.
func listMeta(cont string) metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: "7", Continue: cont}
}

func TestReflectorPushesWhatTheServerSays(t *testing.T) {
	t.Parallel()
	synced := []listed{{meta: listMeta("")}}
	begun := []string{`begin mark 5 at ""`, `list "" limit 2`, `end at "7"`}
	refused := errors.New("refused")
	for name, c := range map[string]struct {
		*play
		transform func(client.Object) (client.Object, error)
		want      []string
		state     State
		err       string
	}{
		"pages, then changes": {
			play: &play{
				lists: []listed{
					{items: []runtime.Object{named("a", "1"), named("b", "2")}, meta: listMeta("next")},
					{items: []runtime.Object{named("c", "3")}, meta: listMeta("")},
				},
				watches: []watched{{events: []watch.Event{
					{Type: watch.Added, Object: named("d", "8")}, {Type: watch.Modified, Object: named("a", "9")},
					{Type: watch.Deleted, Object: named("b", "10")}, bookmark("11", false),
				}}},
			},
			want: []string{
				`begin mark 5 at ""`, `list "" limit 2`, `put listed a at "1"`, `put listed b at "2"`, `list "next" limit 2`, `put listed c at "3"`, `end at "7"`,
				`watch from "7" initial false`, `put d at "8"`, `put a at "9"`, `delete b at "10"`, `progress at "11"`,
			},
			state: Watching,
		},
		"the state by a watch": {
			play: &play{watchList: true, watches: []watched{{events: []watch.Event{
				{Type: watch.Added, Object: named("a", "1")}, bookmark("2", false), bookmark("7", true), {Type: watch.Added, Object: named("b", "8")}, bookmark("9", true),
			}}}},
			want:  []string{`begin mark 5 at ""`, `watch from "" initial true`, `put listed a at "1"`, `end at "7"`, `put b at "8"`, `progress at "9"`},
			state: Watching,
		},
		"another scope delivers the objects": {
			play: &play{resolve: []error{fmt.Errorf("x: %w", ErrCovered)}}, want: []string{`covered at ""`}, state: Watching,
		},
		"objects are changed before they are kept": {
			play: &play{lists: []listed{{items: []runtime.Object{named("a", "1")}, meta: listMeta("")}}},
			transform: func(obj client.Object) (client.Object, error) {
				return named(obj.GetName()+"!", "changed"), nil
			},
			want:  []string{`begin mark 5 at ""`, `list "" limit 2`, `put listed a! at "1"`, `end at "7"`, `watch from "7" initial false`},
			state: Watching,
		},
		"an object that cannot be changed": {
			play:      &play{lists: []listed{{items: []runtime.Object{named("a", "1")}}}},
			transform: func(client.Object) (client.Object, error) { return nil, errors.New("no") },
			want:      []string{`begin mark 5 at ""`, `list "" limit 2`}, state: BackingOff, err: "transform a: no",
		},
		"a list that is refused": {
			play: &play{lists: []listed{{openErr: refused}}}, want: []string{`begin mark 5 at ""`, `list "" limit 2`}, state: BackingOff, err: "refused",
		},
		"a list that breaks": {
			play: &play{lists: []listed{{items: []runtime.Object{named("a", "1")}, err: refused}}},
			want: []string{`begin mark 5 at ""`, `list "" limit 2`, `put listed a at "1"`}, state: BackingOff, err: "refused",
		},
		"an item without metadata": {
			play: &play{lists: []listed{{items: []runtime.Object{&metav1.Status{}}}}},
			want: []string{`begin mark 5 at ""`, `list "" limit 2`}, state: BackingOff, err: "*v1.Status has no object metadata",
		},
		"a sink that refuses": {
			play: &play{full: refused, lists: []listed{{items: []runtime.Object{named("a", "1")}}}},
			want: []string{`begin mark 5 at ""`, `list "" limit 2`, `put listed a at "1"`}, state: BackingOff, err: "refused",
		},
		"a watch that is refused": {
			play: &play{lists: synced, watches: []watched{{openErr: refused}}}, want: append(begun[:3:3], `watch from "7" initial false`), state: BackingOff, err: "refused",
		},
		"an event without metadata": {
			play: &play{lists: synced, watches: []watched{{events: []watch.Event{{Type: watch.Added, Object: &metav1.Status{}}}}}},
			want: append(begun[:3:3], `watch from "7" initial false`), state: BackingOff, err: "a watch event with a *v1.Status, which has no object metadata",
		},
		"an event of another type": {
			play: &play{lists: synced, watches: []watched{{events: []watch.Event{{Type: "OTHER", Object: named("a", "8")}}}}},
			want: append(begun[:3:3], `watch from "7" initial false`), state: BackingOff, err: `a watch event of unknown type "OTHER"`,
		},
		"an error in the stream": {
			play: &play{lists: synced, watches: []watched{{events: []watch.Event{{Type: watch.Error, Object: &metav1.Status{Status: "Failure", Message: "no", Code: 500}}}}}},
			want: append(begun[:3:3], `watch from "7" initial false`), state: BackingOff, err: "no",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := c.play
				var last Report
				r := New(Config{
					Source: p, Sink: p, Scope: 3, PageSize: 2, IdleTimeout: time.Minute, Random: func() float64 { return 0 },
					Transform: c.transform, Report: func(now Report) { last = now },
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- r.Run(ctx) }()
				synctest.Wait()
				if diff := cmp.Diff(c.want, p.said()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				if last.State != c.state || (last.Err == nil) != (c.err == "") || last.Err != nil && last.Err.Error() != c.err {
					t.Errorf("it is %s, because of %v; want %s, %q", last.State, last.Err, c.state, c.err)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestReflectorGivesUpConnectionsOnWhichNothingComes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		*play
		want   []string
		before int // of them, while the server is waited for
	}{
		"list": {
			&play{lists: []listed{{items: []runtime.Object{named("a", "1")}, stall: true}, {meta: listMeta("")}}},
			[]string{`begin mark 5 at ""`, `list "" limit 2`, `put listed a at "1"`, `begin mark 5 at ""`, `list "" limit 2`, `end at "7"`, `watch from "7" initial false`}, 3,
		},
		"watch": {
			&play{lists: []listed{{meta: listMeta("")}}, watches: []watched{{events: []watch.Event{{Type: watch.Added, Object: named("a", "8")}}}}},
			[]string{`begin mark 5 at ""`, `list "" limit 2`, `end at "7"`, `watch from "7" initial false`, `put a at "8"`, `watch from "8" initial false`}, 5,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := c.play
				r := New(Config{
					Source: p, Sink: p, Scope: 3, PageSize: 2, IdleTimeout: time.Minute, Random: func() float64 { return 0 },
				})
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- r.Run(ctx) }()
				time.Sleep(time.Minute - time.Second)
				synctest.Wait()
				if got := p.said(); len(got) != c.before {
					t.Errorf("before its time: %q", got)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if diff := cmp.Diff(c.want, p.said()); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
				cancel()
				if err := <-ended; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestStatesHaveNames(t *testing.T) {
	t.Parallel()
	for state, want := range map[State]string{
		Resolving: "looking for the kind", Absent: "waiting for the kind to exist", Listing: "listing",
		Streaming: "streaming the initial state", Watching: "watching", BackingOff: "backing off", 99: "unknown",
	} {
		if got := state.String(); got != want {
			t.Errorf("%d: %q, want %q", state, got, want)
		}
	}
}
