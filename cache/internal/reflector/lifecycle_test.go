// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/steer-dev/steer/cache/internal/store"
	"github.com/steer-dev/steer/client/listwatch"
	"github.com/steer-dev/steer/internal/lifecycletest"
)

// quiet is a source of an empty collection in which nothing happens, and the sink of
// its deltas. synced is closed when the list has ended.
type quiet struct {
	synced chan struct{}
	once   sync.Once
}

func (*quiet) Resolve(context.Context) (bool, error) { return false, nil }

func (*quiet) List(context.Context, string, int64) (listwatch.Page, error) { return emptyPage{}, nil }

func (*quiet) Watch(ctx context.Context, _ string, _ bool) (listwatch.Events, error) {
	return silence{ctx.Done()}, nil
}

func (*quiet) Mark() uint64 { return 0 }

func (q *quiet) Push(ctx context.Context, d store.Delta) error {
	if d.Op == store.ListEnd {
		q.once.Do(func() { close(q.synced) })
	}
	return ctx.Err()
}

type emptyPage struct{}

func (emptyPage) Next() (runtime.Object, error) { return nil, io.EOF }
func (emptyPage) Meta() metav1.ListMeta         { return metav1.ListMeta{ResourceVersion: "1"} }
func (emptyPage) Close() error                  { return nil }

// silence is a watch without events, which ends with its context.
type silence struct{ done <-chan struct{} }

func (s silence) Next() (watch.Event, error) {
	<-s.done
	return watch.Event{}, io.EOF
}
func (silence) Close() error { return nil }

func TestReflectorKeepsTheLifecycle(t *testing.T) {
	t.Parallel()
	lifecycletest.RunBlocking(t, func(*testing.T) lifecycletest.Blocking {
		q := &quiet{synced: make(chan struct{})}
		r := New(Config{Source: q, Sink: q, PageSize: 10, IdleTimeout: time.Minute, Random: rand.New(rand.NewPCG(1, 2)).Float64})
		return lifecycletest.Blocking{
			Run: r.Run, ErrStarted: ErrStarted,
			Running: func(ctx context.Context) error {
				select {
				case <-q.synced:
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
		}
	})
}
