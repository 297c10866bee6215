// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package queue_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/steer-dev/steer/queue"
	"github.com/steer-dev/steer/trace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func get(t *testing.T, q *queue.Queue[string]) queue.Item[string] {
	t.Helper()
	item, ok := q.Get()
	if !ok {
		t.Fatal("the queue ended")
	}
	return item
}

func TestDelaysAreKeptAndTheEarliestAddWins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{})
		defer q.Close()
		start := time.Now()
		q.Add("late", queue.AddOptions{After: time.Minute})
		q.Add("early", queue.AddOptions{After: time.Second})
		q.Add("moved", queue.AddOptions{After: time.Hour})
		q.Add("moved", queue.AddOptions{After: 2 * time.Second})
		q.Add("moved", queue.AddOptions{After: 3 * time.Second})
		for _, want := range []struct {
			key string
			at  time.Duration
		}{{"early", time.Second}, {"moved", 2 * time.Second}, {"late", time.Minute}} {
			item := get(t, q)
			if item.Key != want.key || time.Since(start) != want.at || item.Waited != 0 {
				t.Errorf("got %s after %v, waited %v; want %s after %v", item.Key, time.Since(start), item.Waited, want.key, want.at)
			}
			q.Done(item.Key)
		}
		if s := q.Stats(); s.Delayed != 0 || s.Adds != 3 || s.Retries != 5 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAnEventSettlesADelayAndItsCauseTells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{})
		defer q.Close()
		q.Add("a", queue.AddOptions{After: time.Hour})
		q.Add("a", queue.AddOptions{Cause: trace.Cause{Type: trace.Updated, Object: trace.Object{Kind: "Pod", Name: "p"}}})
		item := get(t, q)
		var causes []string
		for c := range item.Causes.All() {
			causes = append(causes, c.String())
		}
		if diff := cmp.Diff([]string{"updated Pod p"}, causes); diff != "" {
			t.Error(diff)
		}
		q.Done("a")
		if s := q.Stats(); s.Delayed != 0 {
			t.Errorf("the delay is still there: %+v", s)
		}
	})
}

func TestRetriesBackOffUntilForgottenOrGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var gaveUp []string
		q := queue.New(queue.Options[string]{
			Backoff: queue.Exponential(time.Second, 3*time.Second), MaxRetries: 4,
			GaveUp: func(key string, failures int) { gaveUp = append(gaveUp, fmt.Sprint(key, failures)) },
		})
		defer q.Close()
		q.Add("a", queue.AddOptions{})
		var delays []time.Duration
		for {
			item := get(t, q)
			d, ok := q.Retry(item.Key, queue.AddOptions{})
			q.Done(item.Key)
			if !ok {
				break
			}
			delays = append(delays, d)
		}
		if diff := cmp.Diff([]time.Duration{time.Second, 2 * time.Second, 3 * time.Second, 3 * time.Second}, delays); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([]string{"a5"}, gaveUp); diff != "" || q.Failures("a") != 0 {
			t.Error(diff, q.Failures("a"))
		}
		if d, _ := q.Retry("a", queue.AddOptions{After: time.Minute}); d != time.Minute {
			t.Errorf("a longer delay became %v", d)
		}
		q.Forget("a")
		if d, _ := q.Retry("a", queue.AddOptions{}); d != time.Second {
			t.Errorf("after Forget the delay is %v", d)
		}
	})
}

func TestLimiterDelaysRetriesBesideTheBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{
			Backoff: queue.Exponential(2*time.Second, 2*time.Second),
			Limiter: queue.Bucket[string](0.1, 3), // three at once, then one in ten seconds
		})
		defer q.Close()
		var delays []time.Duration
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			d, _ := q.Retry(key, queue.AddOptions{})
			delays = append(delays, d)
		}
		want := []time.Duration{2 * time.Second, 2 * time.Second, 2 * time.Second, 10 * time.Second, 20 * time.Second}
		if diff := cmp.Diff(want, delays); diff != "" {
			t.Error(diff)
		}
		time.Sleep(time.Hour)
		if d, _ := q.Retry("f", queue.AddOptions{}); d != 2*time.Second {
			t.Errorf("after an hour without failures the delay is %v", d)
		}
	})
}

// counting is a limiter of a program's own.
type counting struct {
	failures  map[string]int
	forgotten []string
}

func (c *counting) When(key string) time.Duration {
	c.failures[key]++
	return time.Duration(c.failures[key]) * time.Minute
}

func (c *counting) Forget(key string) {
	c.forgotten = append(c.forgotten, key)
	delete(c.failures, key)
}

func TestLimiterIsToldWhenAKeyIsWellOrGivenUp(t *testing.T) {
	t.Parallel()
	limiter := &counting{failures: map[string]int{}}
	q := queue.New(queue.Options[string]{Limiter: limiter, MaxRetries: 2})
	defer q.Close()
	q.Retry("a", queue.AddOptions{})
	if d, _ := q.Retry("a", queue.AddOptions{}); d != 2*time.Minute {
		t.Errorf("the second delay is %v", d)
	}
	if _, ok := q.Retry("a", queue.AddOptions{}); ok {
		t.Error("a is not given up")
	}
	q.Retry("b", queue.AddOptions{})
	q.Forget("b")
	if diff := cmp.Diff([]string{"a", "b"}, limiter.forgotten); diff != "" || len(limiter.failures) > 0 {
		t.Error(diff, limiter.failures)
	}
}

func TestTheDefaultBackoffEndsAtFiveMinutes(t *testing.T) {
	t.Parallel()
	b := queue.Exponential(0, 0)
	if b(1) != 5*time.Millisecond || b(2) != 10*time.Millisecond || b(1000) != 5*time.Minute {
		t.Error(b(1), b(2), b(1000))
	}
}

func TestAKeyAddedWhileItRunsRunsAgainAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{})
		q.Add("a", queue.AddOptions{})
		get(t, q)
		q.Add("a", queue.AddOptions{Priority: 7})
		var second queue.Item[string]
		var ok bool
		done := make(chan struct{})
		go func() {
			defer close(done)
			second, ok = q.Get()
		}()
		time.Sleep(time.Second)
		if s := q.Stats(); s.Running != 1 || s.Unfinished != time.Second || s.Longest != time.Second {
			t.Errorf("%+v", s)
		}
		q.Done("a")
		<-done
		if !ok || second.Key != "a" || second.Priority != 7 || second.Waited != time.Second {
			t.Errorf("%+v %v", second, ok)
		}
		q.Done("a")
		q.Close()
	})
}

func TestHigherPrioritiesComeFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{})
		defer q.Close()
		q.Add("low", queue.AddOptions{Priority: queue.LowPriority})
		q.Add("first", queue.AddOptions{})
		q.Add("second", queue.AddOptions{})
		q.Add("high", queue.AddOptions{Priority: 5})
		q.Add("raised", queue.AddOptions{Priority: queue.LowPriority})
		q.Add("raised", queue.AddOptions{Priority: 6})
		if diff := cmp.Diff([]queue.Depth{{-100, 1}, {0, 2}, {5, 1}, {6, 1}}, q.Stats().Depth); diff != "" {
			t.Error(diff)
		}
		var got []string
		for range 5 {
			item := get(t, q)
			got = append(got, item.Key)
			q.Done(item.Key)
		}
		if diff := cmp.Diff([]string{"raised", "high", "first", "second", "low"}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestDrainFinishesWhatIsReady(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{})
		q.Add("a", queue.AddOptions{})
		q.Add("b", queue.AddOptions{})
		q.Add("delayed", queue.AddOptions{After: time.Second})
		var ran []string
		var workers sync.WaitGroup
		workers.Go(func() {
			for item, ok := q.Get(); ok; item, ok = q.Get() {
				time.Sleep(time.Minute)
				ran = append(ran, item.Key)
				q.Done(item.Key)
			}
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Drain(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("drain with a short deadline: %v", err)
		}
		q.Add("refused", queue.AddOptions{})
		if err := q.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		workers.Wait()
		if diff := cmp.Diff([]string{"a", "b"}, ran); diff != "" {
			t.Error(diff)
		}
		q.Close()
		q.Close()
		if err := q.Drain(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCloseEndsAllWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(queue.Options[string]{})
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(func() {
				if _, ok := q.Get(); ok {
					t.Error("a key out of nowhere")
				}
			})
		}
		synctest.Wait()
		q.Close()
		workers.Wait()
		q.Add("a", queue.AddOptions{})
		if _, ok := q.Get(); ok {
			t.Error("a closed queue gave a key")
		}
	})
}

// TestNoKeyIsLostOrRunsTwiceAtOnce lets producers number their changes and
// demands that the last number of every key is seen by a run.
func TestNoKeyIsLostOrRunsTwiceAtOnce(t *testing.T) {
	t.Parallel()
	const keys, adds, workers = 20, 3000, 4
	q := queue.New(queue.Options[int]{Backoff: queue.Exponential(time.Microsecond, time.Microsecond)})
	var wanted, seen [keys]atomic.Int64
	var runs [keys]atomic.Int32
	var working, producing sync.WaitGroup
	for w := range workers {
		working.Go(func() {
			for item, ok := q.Get(); ok; item, ok = q.Get() {
				if runs[item.Key].Add(1) != 1 {
					t.Errorf("key %d runs twice", item.Key)
				}
				seen[item.Key].Store(wanted[item.Key].Load())
				if w == 0 && item.Failures < 2 {
					q.Retry(item.Key, queue.AddOptions{})
				} else {
					q.Forget(item.Key)
				}
				runs[item.Key].Add(-1)
				q.Done(item.Key)
			}
		})
	}
	for p := range 2 {
		producing.Go(func() {
			for i := range adds {
				key := (i*7 + p) % keys
				wanted[key].Add(1)
				q.Add(key, queue.AddOptions{Priority: i % 3, Cause: trace.Cause{Type: trace.Updated}})
			}
		})
	}
	producing.Wait()
	if err := q.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	working.Wait()
	for k := range keys {
		if seen[k].Load() != wanted[k].Load() {
			t.Errorf("key %d: change %d was seen of %d", k, seen[k].Load(), wanted[k].Load())
		}
	}
}

func TestTheObserverMeasuresWaitingAndWorking(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var o observer
		q := queue.New(queue.Options[string]{Observer: &o})
		defer q.Close()
		q.Add("a", queue.AddOptions{})
		time.Sleep(time.Second)
		get(t, q)
		time.Sleep(time.Minute)
		q.Done("a")
		if o != (observer{time.Second, time.Minute}) {
			t.Error(o)
		}
	})
}

type observer struct{ waited, worked time.Duration }

func (o *observer) Waited(d time.Duration) { o.waited += d }
func (o *observer) Worked(d time.Duration) { o.worked += d }
