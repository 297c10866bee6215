// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/internal/answers"
)

// server answers that a key is good if it is below 100, after a while.
type server struct {
	mu             sync.Mutex
	asked          map[int]int
	underway, most int
	delay          time.Duration
	err            error
}

func (s *server) get(ctx context.Context, c *answers.Cache[int, bool], key int) (bool, error) {
	return c.Get(ctx, key, func(ctx context.Context) (answers.Answer[bool], error) {
		s.mu.Lock()
		s.asked[key]++
		s.underway++
		s.most = max(s.most, s.underway)
		delay, err := s.delay, s.err
		s.mu.Unlock()
		time.Sleep(delay)
		s.mu.Lock()
		s.underway--
		s.mu.Unlock()
		return answers.Answer[bool]{Value: key < 100, Good: key < 100, For: 10 * time.Second}, errors.Join(err, ctx.Err())
	})
}

// times is how often a key was asked about.
func (s *server) times(key int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked[key]
}

// set changes how it answers.
func (s *server) set(delay time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delay, s.err = delay, err
}

// flood asks with invented keys, each in a goroutine of its own.
func (s *server) flood(ctx context.Context, c *answers.Cache[int, bool], count int) (busy func() int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	refused := 0
	for i := range count {
		all.Go(func() {
			if _, err := s.get(ctx, c, 1000+i); errors.Is(err, answers.ErrBusy) {
				mu.Lock()
				refused++
				mu.Unlock()
			}
		})
	}
	synctest.Wait()
	return func() int { all.Wait(); return refused }
}

func TestAnswersStayWhileOthersAreInvented(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := answers.New[int, bool](50), &server{asked: map[int]int{}}
		if good, err := s.get(t.Context(), c, 1); !good || err != nil {
			t.Fatal(good, err)
		}
		for i := range 1000 {
			if good, err := s.get(t.Context(), c, 1000+i); good || err != nil {
				t.Fatal(good, err)
			}
		}
		if good, err := s.get(t.Context(), c, 1); !good || err != nil || s.times(1) != 1 {
			t.Errorf("%t, %v; asked %d times, want once", good, err, s.times(1))
		}
		if _, _ = s.get(t.Context(), c, 1999); s.times(1999) != 1 {
			t.Errorf("the last invented one was asked %d times, want once", s.times(1999))
		}
		if _, _ = s.get(t.Context(), c, 1000); s.times(1000) != 2 {
			t.Errorf("the first invented one was asked %d times, want twice", s.times(1000))
		}
	})
}

func TestQuestionsAreAskedOnceDuringAFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := answers.New[int, bool](10), &server{asked: map[int]int{}, delay: time.Second}
		var all sync.WaitGroup
		for range 5 {
			all.Go(func() { _, _ = s.get(t.Context(), c, 1) })
		}
		synctest.Wait()
		busy := s.flood(t.Context(), c, 2000)
		for range 5 {
			all.Go(func() { _, _ = s.get(t.Context(), c, 1) })
		}
		all.Wait()
		if s.times(1) != 1 {
			t.Errorf("asked %d times, want once", s.times(1))
		}
		if refused := busy(); refused == 0 || s.most > 32 {
			t.Errorf("%d of the flood were refused, %d asked at once", refused, s.most)
		}
	})
}

// TestGoodAnswersAreRenewedDuringAFlood: the turn of what was good does not come behind that
// of what is invented.
func TestGoodAnswersAreRenewedDuringAFlood(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := answers.New[int, bool](10), &server{asked: map[int]int{}}
		_, _ = s.get(t.Context(), c, 1)
		time.Sleep(11 * time.Second)
		s.set(time.Second, nil)
		busy := s.flood(t.Context(), c, 1000)
		began := time.Now()
		if good, err := s.get(t.Context(), c, 1); !good || err != nil || time.Since(began) > time.Second || s.times(1) != 2 {
			t.Errorf("%t, %v after %s; asked %d times", good, err, time.Since(began), s.times(1))
		}
		busy()
		time.Sleep(11 * time.Minute)
		_, _ = s.get(t.Context(), c, 2) // removes what is too old
		busy = s.flood(t.Context(), c, 32)
		began = time.Now()
		if _, err := s.get(t.Context(), c, 1); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("one that was good long ago: %v after %s", err, time.Since(began))
		}
		busy()
	})
}

func TestErrorsAndPanicsAreNotRemembered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := answers.New[int, bool](10), &server{asked: map[int]int{}, err: errors.ErrUnsupported}
		if _, err := s.get(t.Context(), c, 1); !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
		func() {
			defer func() { _ = recover() }()
			_, _ = c.Get(t.Context(), 1, func(context.Context) (answers.Answer[bool], error) { panic("x") })
		}()
		s.set(0, nil)
		if good, err := s.get(t.Context(), c, 1); !good || err != nil {
			t.Error(good, err)
		}
		s.set(time.Second, nil)
		go func() { _, _ = s.get(context.Background(), c, 2) }()
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.get(ctx, c, 2); !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that is gone: %v", err)
		}
		time.Sleep(time.Minute)
	})
}
