// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package traffic

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

const (
	// users are the clients that use one token, each with a connection of its own.
	users = 3
	// usesAfter is how often each of them tries a token that was revoked.
	usesAfter = 3
)

// credential is an operation on the token of one ServiceAccount: a use, or its revocation,
// which is the deletion of the account.
type credential struct {
	account string
	revoke  bool
}

// credentials is the model of tokens: one is accepted until it is revoked, and never again.
func credentials() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byName := map[string][]porcupine.Operation{}
			for _, op := range history {
				name := op.Input.(credential).account
				byName[name] = append(byName[name], op)
			}
			for _, ops := range byName {
				parts = append(parts, ops)
			}
			return parts
		},
		Init: func() any { return true },
		Step: func(state, input, output any) (bool, any) {
			if input.(credential).revoke {
				return true, false
			}
			return output == state, state
		},
	}
}

// tokens issues tokens, uses and revokes them until the run is stopped.
func (r *Run) tokens() {
	c := r.client()
	defer c.transport.CloseIdleConnections()
	c.base = strings.TrimSuffix(c.base, "configmaps") + "serviceaccounts"
	for n := 0; r.stopped.Err() == nil; n++ {
		account := fmt.Sprintf("%s-t%d", r.Name, n)
		token, err := r.issue(c, account)
		if err == nil {
			err = r.spend(c, account, token)
		}
		if err != nil {
			r.fail(err)
			c.transport.CloseIdleConnections()
			time.Sleep(500 * time.Millisecond)
		}
	}
}

// issue makes an account and returns a token of it.
func (r *Run) issue(c *client, account string) (token string, err error) {
	ctx := context.Background()
	if err := c.do(ctx, http.MethodPost, "", fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":%q}}`, account), nil); err != nil {
		return "", err
	}
	var issued struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	err = c.do(ctx, http.MethodPost, "/"+account+"/token", json.RawMessage(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`), &issued)
	return issued.Status.Token, err
}

// spend uses a token, revokes it meanwhile, and uses it again.
func (r *Run) spend(c *client, account, token string) error {
	var using sync.WaitGroup
	revoked := make(chan struct{})
	for i := range users {
		using.Go(func() { r.use(i, account, token, revoked) })
	}
	time.Sleep(10 * r.Pause)
	op := porcupine.Operation{ClientId: users, Input: credential{account: account, revoke: true}, Output: false, Call: r.clock.Add(1)}
	err := c.do(context.Background(), http.MethodDelete, "/"+account, nil, nil)
	if op.Return = r.clock.Add(1); err != nil {
		op.Return = math.MaxInt64 // it may have been made, or be made later, or never
	}
	r.note(op)
	close(revoked)
	using.Wait()
	return err
}

// use has a client write with a token, which only says whether that is accepted: the account
// has no role.
func (r *Run) use(number int, account, token string, revoked <-chan struct{}) {
	c := r.client()
	defer c.transport.CloseIdleConnections()
	c.transport.TLSClientConfig.Certificates, c.transport.TLSClientConfig.GetClientCertificate = nil, nil
	c.token = token
	for left := usesAfter; left > 0; {
		select {
		case <-revoked:
			left--
		default:
		}
		op := porcupine.Operation{ClientId: number, Input: credential{account: account}, Call: r.clock.Add(1)}
		err := c.do(context.Background(), http.MethodPatch, "/"+r.key(0), []byte(`{"data":{"v":"x"}}`), nil)
		op.Return = r.clock.Add(1)
		status := (*statusError)(nil)
		switch {
		case errors.As(err, &status) && (status.code == http.StatusForbidden || status.code == http.StatusUnauthorized):
			op.Output = status.code == http.StatusForbidden
			r.note(op)
			r.done.Add(1)
		case err == nil:
			r.fail(fmt.Errorf("the account %s has no role, and writes", account))
		default: // it says nothing
			r.fail(err)
			c.transport.CloseIdleConnections()
		}
		time.Sleep(r.Pause)
	}
}

func (r *Run) note(op porcupine.Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses = append(r.uses, op)
}

// fail notes a request that failed.
func (r *Run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, fmt.Errorf("%s: %w", time.Now().Format("15:04:05.000"), err))
}

// revoked checks the operations on each token.
func (r *Run) revoked() error {
	switch porcupine.CheckOperationsTimeout(credentials(), r.uses, time.Minute) {
	case porcupine.Illegal:
		return errors.New("a token is accepted after its revocation, or refused before")
	case porcupine.Unknown:
		return errors.New("the uses of tokens were not checked within a minute")
	}
	return nil
}
