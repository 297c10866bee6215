// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/queue"
)

// TestPriorityOrdersTheEventsOfAControllerAndItsWatches lets requests of three
// priorities wait for one worker.
func TestPriorityOrdersTheEventsOfAControllerAndItsWatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newFake()
		busy, goOn := make(chan struct{}), make(chan struct{})
		var order []string
		byName := controller.Map(func(_ context.Context, c *corev1.ConfigMap) []controller.Request {
			return []controller.Request{controller.RequestFor(c)}
		})
		signals := make(chan controller.Request)
		request := func(name string) controller.Request {
			var r controller.Request
			r.Namespace, r.Name = "default", name
			return r
		}
		err := controller.Add(m, controller.Func[*Web](func(_ context.Context, w *Web) (controller.Result, error) {
			if w.Name == "first" {
				close(busy)
				<-goOn
				return controller.Done(), nil
			}
			order = append(order, w.Name)
			return controller.Done(), nil
		}),
			controller.Where(controller.GenerationChanged[*Web]), // not the events of its own status
			controller.Priority(10),
			controller.Watches(byName).Priority(-10),
			controller.From(controller.Channel(signals)),
			controller.OnGone(func(_ context.Context, r controller.Request) error {
				order = append(order, r.Name)
				return nil
			}))
		if err != nil {
			t.Fatal(err)
		}
		m.start(t)
		defer m.end()
		m.create(t, web("first"))
		<-busy
		m.create(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "watched"}})
		signals <- request("signalled")
		m.create(t, web("own"))
		synctest.Wait()
		close(goOn)
		synctest.Wait()
		if diff := cmp.Diff([]string{"own", "signalled", "watched"}, order); diff != "" {
			t.Error(diff)
		}
	})
}

func TestRetryRateBoundsTheRetriesOfAllObjects(t *testing.T) {
	t.Parallel()
	attempts := 0
	run(t, func(context.Context, *Web) (controller.Result, error) {
		attempts++
		return controller.Done(), errors.New("no luck")
	}, func(t *testing.T, m *fake) {
		for i := range 20 {
			m.create(t, web(fmt.Sprint("w", i)))
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if attempts < 20+60 || attempts > 20+70 {
			t.Errorf("%d attempts of 20 objects in a minute, want 20, and 5 at once, and one a second", attempts)
		}
	}, controller.RateLimit(time.Millisecond, time.Millisecond), controller.RetryRate(1, 5))
}

// every is a rate limiter of an operator's own.
type every time.Duration

func (e every) When(controller.Request) time.Duration { return time.Duration(e) }
func (e every) Forget(controller.Request)             {}

func TestRateLimiterReplacesTheBackoff(t *testing.T) {
	t.Parallel()
	attempts := 0
	run(t, func(context.Context, *Web) (controller.Result, error) {
		attempts++
		return controller.Done(), errors.New("no luck")
	}, func(t *testing.T, m *fake) {
		m.create(t, web("a"))
		time.Sleep(time.Minute + time.Second/2)
		synctest.Wait()
		if attempts != 61 {
			t.Errorf("%d attempts in a minute, want one a second", attempts)
		}
	}, controller.RateLimiter[controller.Request](every(time.Second)))
}

// TestFieldOwnerTakesOverTheNameOfAFormerOperator shows under which name a controller
// writes.
func TestFieldOwnerTakesOverTheNameOfAFormerOperator(t *testing.T) {
	t.Parallel()
	for want, options := range map[string][]controller.Option{
		"web":    nil,
		"former": {controller.FieldOwner("former")},
	} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			owner := ""
			run(t, func(_ context.Context, w *Web) (controller.Result, error) {
				w.Status.Ready = 1
				return controller.Done(), nil
			}, func(t *testing.T, m *fake) {
				m.create(t, web("a"))
				synctest.Wait()
				m.server.mu.Lock()
				defer m.server.mu.Unlock()
				owner = m.server.statusOwner
			}, options...)
			if owner != want {
				t.Errorf("the status is written as %q, want %q", owner, want)
			}
		})
	}
}

var _ queue.Limiter[controller.Request] = every(0)
