// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package exchange_test

import (
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// limiter is one whose refusals are checked.
type limiter struct {
	*testing.T
	*exchange.MaxInFlight
}

func (g limiter) enter(p exchange.RequestDigest, admitted bool) (leave func()) {
	g.Helper()
	return g.check(g.Enter, p, admitted)
}

func (g limiter) wait(p exchange.RequestDigest, admitted bool) (leave func()) {
	g.Helper()
	return g.check(g.Wait, p, admitted)
}

func (g limiter) check(ask func(exchange.RequestDigest) (func(), error), p exchange.RequestDigest, admitted bool) (leave func()) {
	g.Helper()
	leave, err := ask(p)
	if (err == nil) != admitted || err != nil && !apierrors.IsTooManyRequests(err) {
		g.Errorf("%+v: %v", p, err)
	}
	return leave
}

func TestGateRefusesWhatIsBeyondItsLimits(t *testing.T) {
	t.Parallel()
	g := limiter{t, exchange.NewMaxInFlight(exchange.Limits{Reads: 1, Writes: 2, Watches: 1, Connections: 3, UserConnections: 2})}
	leave := g.enter(exchange.RequestDigest{Read: true}, true)
	g.enter(exchange.RequestDigest{Read: true, User: "b"}, false)
	for _, lane := range []exchange.Lane{exchange.Exempt, exchange.Reserved, exchange.Probe} {
		g.enter(exchange.RequestDigest{Read: true, Lane: lane}, true)
	}
	g.enter(exchange.RequestDigest{User: "a"}, true)
	g.enter(exchange.RequestDigest{User: "b"}, true)
	g.enter(exchange.RequestDigest{User: "c"}, false)
	stop := g.enter(exchange.RequestDigest{Long: true, Watch: true, User: "a"}, true)
	g.enter(exchange.RequestDigest{Long: true, Watch: true, User: "a"}, false)
	g.enter(exchange.RequestDigest{Long: true, Watch: true, User: "b"}, true)
	g.enter(exchange.RequestDigest{Long: true, User: "a"}, true)
	disconnect := g.enter(exchange.RequestDigest{Long: true, User: "a"}, true)
	g.enter(exchange.RequestDigest{Long: true, User: "a"}, false)
	g.enter(exchange.RequestDigest{Long: true, User: "b"}, true)
	g.enter(exchange.RequestDigest{Long: true, User: "c"}, false)
	g.enter(exchange.RequestDigest{Long: true, User: "a", Lane: exchange.Exempt}, true)
	if reads, writes, long := g.Counts(); reads != 4 || writes != 2 || long != 6 {
		t.Errorf("%d reads, %d writes, %d long requests", reads, writes, long)
	}
	stop()
	g.enter(exchange.RequestDigest{Long: true, Watch: true, User: "a"}, true)
	disconnect()
	g.enter(exchange.RequestDigest{Long: true, User: "c"}, true)
	leave()
	g.enter(exchange.RequestDigest{Read: true}, true) // those of other lanes take none of its slots
}

func TestGateGivesEachUserAShare(t *testing.T) {
	t.Parallel()
	const slots = 24
	g := limiter{t, exchange.NewMaxInFlight(exchange.Limits{Writes: slots})}
	// most has a user take slots until it is refused.
	most := func(user string) (held int) {
		for {
			if _, err := g.Enter(exchange.RequestDigest{User: user}); err != nil {
				return held
			}
			held++
		}
	}
	taken := 0
	for i, want := range []int{12, 6, 3, 1, 1, 1} {
		got := most(fmt.Sprint("user-", i))
		if got != want {
			t.Errorf("user %d of those who take what they get has %d slots, want %d", i, got, want)
		}
		taken += got
	}
	if taken != slots {
		t.Errorf("%d slots are taken, want all", taken)
	}
	g.enter(exchange.RequestDigest{User: "late"}, false)
	for range 10 * slots {
		g.enter(exchange.RequestDigest{User: "user-0", Lane: exchange.Reserved}, true)
	}
}

func TestGateAsksItsRule(t *testing.T) {
	t.Parallel()
	var asked []exchange.Use
	g := limiter{t, exchange.NewMaxInFlight(exchange.Limits{Reads: 10, Rule: func(p exchange.RequestDigest, use exchange.Use) bool {
		asked = append(asked, use)
		return p.User != "b"
	}})}
	leave := g.enter(exchange.RequestDigest{Read: true, User: "a"}, true)
	g.enter(exchange.RequestDigest{Read: true, User: "b"}, false)
	leave()
	g.enter(exchange.RequestDigest{Read: true, User: "a"}, true)
	g.enter(exchange.RequestDigest{Read: true, User: "b", Lane: exchange.Reserved}, true)
	if want := []exchange.Use{{Limit: 10}, {Taken: 1, Limit: 10}, {Limit: 10}}; fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("asked about %v, want %v", asked, want)
	}
}

func TestGateBoundsWhatWaits(t *testing.T) {
	t.Parallel()
	g := limiter{t, exchange.NewMaxInFlight(exchange.Limits{Reads: 1, UserWaiting: 3, ConnectionWaiting: 2})}
	one := exchange.ConnectionFrom(exchange.WithConnection(t.Context()))
	other := exchange.ConnectionFrom(exchange.WithConnection(t.Context()))
	leave := g.wait(exchange.RequestDigest{User: "a", Connection: one}, true)
	g.wait(exchange.RequestDigest{User: "b", Connection: one}, true)
	g.wait(exchange.RequestDigest{User: "a", Connection: one}, false)
	g.wait(exchange.RequestDigest{User: "a", Connection: other}, true)
	g.wait(exchange.RequestDigest{User: "a"}, true)
	g.wait(exchange.RequestDigest{User: "a"}, false)
	for _, lane := range []exchange.Lane{exchange.Exempt, exchange.Reserved, exchange.Probe} {
		g.wait(exchange.RequestDigest{User: "a", Connection: one, Lane: lane}, true)
	}
	g.enter(exchange.RequestDigest{Read: true, User: "c"}, true) // what waits takes no slot
	if n := g.Waiting(); n != 4 {
		t.Errorf("%d requests wait, want 4", n)
	}
	leave()
	g.wait(exchange.RequestDigest{User: "a", Connection: one}, true)
}
