// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package watchserver

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestSharedTimerFiresAtItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer sharedTimer
		at := time.Now().Add(time.Second)
		fired := timer.C(at)
		time.Sleep(time.Second - time.Nanosecond)
		select {
		case <-fired:
			t.Error("fired early")
		default:
		}
		if <-fired; !time.Now().Equal(at) {
			t.Errorf("fired at %v, want %v", time.Now(), at)
		}
	})
}

func TestSharedTimerIsSharedByWatchesOfTheSameTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer sharedTimer
		at := time.Now().Add(time.Second)
		first := timer.C(at)
		if second := timer.C(at.UTC()); first != second {
			t.Error("the same time in another zone has a channel of its own")
		}
		<-first
		if late := timer.C(at); late != first {
			t.Error("a call after the time has a channel of its own")
		}
	})
}

func TestSharedTimerKeepsEarlierTimesWhenAnotherIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer sharedTimer
		begin := time.Now()
		late, soon := timer.C(begin.Add(2*time.Second)), timer.C(begin.Add(time.Second))
		if <-soon; time.Since(begin) != time.Second {
			t.Errorf("the second time fired after %v", time.Since(begin))
		}
		select {
		case <-late:
			t.Error("the first time fired with the second")
		default:
		}
		if <-late; time.Since(begin) != 2*time.Second {
			t.Errorf("the first time fired after %v", time.Since(begin))
		}
	})
}

func TestSharedTimerFiresAtOnceForATimeThatHasPassed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var timer sharedTimer
		begin := time.Now()
		if <-timer.C(begin.Add(-time.Hour)); !time.Now().Equal(begin) {
			t.Errorf("fired after %v", time.Since(begin))
		}
	})
}
