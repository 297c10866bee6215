// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package buffer_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/cache/internal/buffer"
)

// never merges nothing.
func never([]int, int) bool { return false }

func TestBufferDeliversInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []int
		b := buffer.New(2, never, func(n int) { got = append(got, n) })
		for n := range 10 {
			b.Put(n)
		}
		if !b.WaitDrained(t.Context()) || !slices.Equal(got, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}) || !b.Drained() {
			t.Errorf("delivered %v", got)
		}
		b.Close()
		b.Put(10)
		<-b.Done()
		if len(got) != 10 {
			t.Errorf("delivered %v after Close", got)
		}
	})
}

// TestBufferMergesOrWaitsWhileItIsFull: even numbers are added to the last one that waits.
func TestBufferMergesOrWaitsWhileItIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []int
		gate := make(chan struct{})
		merge := func(waiting []int, n int) bool {
			if n%2 == 0 {
				waiting[len(waiting)-1] += n
			}
			return n%2 == 0
		}
		b := buffer.New(1, merge, func(n int) {
			<-gate
			got = append(got, n)
		})
		b.Put(1)
		synctest.Wait() // is being delivered
		b.Put(3)
		b.Put(100)
		put := make(chan struct{})
		go func() {
			b.Put(5)
			close(put)
		}()
		time.Sleep(time.Second)
		select {
		case <-put:
			t.Error("a full buffer takes another event")
		default:
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if b.WaitDrained(short) || b.Drained() {
			t.Error("drained while events wait")
		}
		close(gate)
		<-put
		if !b.WaitDrained(t.Context()) || !slices.Equal(got, []int{1, 103, 5}) {
			t.Errorf("delivered %v", got)
		}
		b.Close()
		<-b.Done()
	})
}

func TestBufferReleasesWaitingCallsWhenItIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		gate, calls := make(chan struct{}), 0
		b := buffer.New(1, never, func(int) {
			calls++
			<-gate
		})
		b.Put(1)
		synctest.Wait()
		b.Put(2)
		released := make(chan bool, 2)
		go func() {
			b.Put(3)
			released <- true
		}()
		go func() { released <- b.WaitDrained(t.Context()) }()
		synctest.Wait()
		b.Close()
		for range 2 {
			if !<-released {
				t.Error("WaitDrained of a closed buffer is false")
			}
		}
		close(gate)
		<-b.Done()
		if calls != 1 {
			t.Errorf("%d calls, want the one under way at Close", calls)
		}
	})
}
