// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// credential is an operation on the token of one ServiceAccount: a use, or its revocation,
// which is the deletion of the account.
type credential struct {
	account string
	revoke  bool
}

// credentials is the model of one token: it is accepted until it is revoked, and never again.
func credentials() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return true },
		Step: func(state, input, output any) (bool, any) {
			if input.(credential).revoke {
				return true, false
			}
			return output == state, state
		},
	}
}

// TestTokensAreLinearizableOverChangesOfTheLeader uses tokens at three servers, and revokes each
// at one of them while another one receives nothing or does not lead any longer.
func TestTokensAreLinearizableOverChangesOfTheLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	for round := range 6 {
		leader, follower := c.leader()
		of := &actors{T: t, plane: leader.Plane, admin: leader.api}
		account := fmt.Sprint("account-", round)
		token := of.account(account)
		u := &uses{account: account, progress: make(chan struct{}, 1), revoked: make(chan struct{})}
		var using sync.WaitGroup
		for i, s := range c.servers {
			client := (&actors{T: t, plane: s.Plane}).bearer(token)
			using.Go(func() { u.spend(i, client) })
		}
		u.await(t, 12)
		breaks, through := follower.store.Pause, leader
		if round%2 == 1 {
			breaks, through = leader.store.Freeze, follower
		}
		resume := breaks()
		if through == follower {
			leader.store.Expire()
			c.awaitLeaderOtherThan(leader)
		}
		revocation := porcupine.Operation{ClientId: len(c.servers), Input: credential{account: account, revoke: true}, Output: false, Call: u.clock.Add(1)}
		for code := 0; code != http.StatusOK && code != http.StatusNotFound; { // 503: a leader was replaced, and clients try again
			code, _ = through.do(http.MethodDelete, "/api/v1/namespaces/default/serviceaccounts/"+account, "")
		}
		revocation.Return = u.clock.Add(1)
		u.note(revocation)
		u.await(t, 6) // at those that know of it
		resume()
		close(u.revoked)
		using.Wait()
		switch porcupine.CheckOperationsTimeout(credentials(), u.history, time.Minute) {
		case porcupine.Illegal:
			t.Errorf("round %d: a token is accepted after its revocation, or refused before: %v", round, u.history)
		case porcupine.Unknown:
			t.Error("the checker found no answer within a minute")
		}
		if refused := slices.ContainsFunc(u.history, func(op porcupine.Operation) bool { return op.Output == false && !op.Input.(credential).revoke }); !refused {
			t.Errorf("round %d: the token is never refused", round)
		}
	}
}

// uses are what clients saw of one token.
type uses struct {
	account  string
	clock    atomic.Int64
	progress chan struct{}
	revoked  chan struct{}

	mu      sync.Mutex
	history []porcupine.Operation
}

func (u *uses) note(op porcupine.Operation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.history = append(u.history, op)
}

// spend uses the token until some time after its revocation.
func (u *uses) spend(number int, client *api) {
	for left, i := 4, 0; left > 0; i++ {
		select {
		case <-u.revoked:
			left--
		default:
		}
		op := porcupine.Operation{ClientId: number, Input: credential{account: u.account}, Call: u.clock.Add(1)}
		method, path := http.MethodGet, configMaps+"/kube-root-ca.crt?resourceVersion=0&timeout=1s"
		if i%2 == 1 {
			method, path = http.MethodPatch, configMaps+"/kube-root-ca.crt?timeout=1s"
		}
		code, _ := client.do(method, path, "metadata: {labels: {used: again}}")
		op.Return = u.clock.Add(1)
		switch code {
		case http.StatusOK, http.StatusUnauthorized:
			op.Output = code == http.StatusOK
			u.note(op)
		default: // it says nothing
		}
		select {
		case u.progress <- struct{}{}:
		default:
		}
	}
}

// await returns after some more uses.
func (u *uses) await(t *testing.T, operations int) {
	t.Helper()
	for range operations {
		select {
		case <-u.progress:
		case <-time.After(time.Minute):
			t.Fatal("nothing happens")
		}
	}
}
