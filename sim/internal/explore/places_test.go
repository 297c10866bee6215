// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestPlacesAreGivenToWhoWaitsLongest counts those that are taken.
func TestPlacesAreGivenToWhoWaitsLongest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Places{Most: 2}
		if got := tries(p, 3); got != 2 {
			t.Fatalf("there are %d places, not two", got)
		}
		var got []int
		for i := range 3 {
			go func() {
				if err := p.take(t.Context()); err != nil {
					t.Error(err)
				}
				got = append(got, i)
			}()
			synctest.Wait()
		}
		for want := 1; want <= 3; want++ {
			if p.give(); p.try() {
				t.Error("a place is taken for which others wait")
			}
			synctest.Wait()
			if len(got) != want || got[want-1] != want-1 {
				t.Fatalf("places were given to %v", got)
			}
		}
		p.give()
		p.give()
		if got := tries(p, 3); got != 2 {
			t.Errorf("places were lost, or made: there are %d", got)
		}
	})
}

// TestAPlaceIsNotLostWithTheWaitForIt ends the wait for one.
func TestAPlaceIsNotLostWithTheWaitForIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Places{Most: 1}
		p.try()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- p.take(ctx) }()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if p.give(); !p.try() {
			t.Error("the place is lost")
		}
	})
}

// TestWhoHasMoreThanItsShareGivesBack has two explorations for four places.
func TestWhoHasMoreThanItsShareGivesBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &Places{Most: 4}
		defer p.share()()
		for p.try() {
		}
		if p.crowded(4) {
			t.Error("crowded although none waits")
		}
		leave := p.share()
		go func() { _ = p.take(t.Context()) }()
		synctest.Wait()
		if !p.crowded(3) || p.crowded(2) {
			t.Error("two explorations have two places each")
		}
		p.give()
		if leave(); p.crowded(4) {
			t.Error("crowded although none waits any more")
		}
	})
}

// tries takes places, and returns how many it was given.
func tries(p *Places, n int) (given int) {
	for range n {
		if p.try() {
			given++
		}
	}
	return given
}
