// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/steer-dev/steer/client"
)

// ErrKilled is what an operator gets from its writes after it was killed.
var ErrKilled = errors.New("steertest: the operator was killed")

// Killer ends the operator's process, as far as a server can see that.
type Killer struct {
	// Revision returns the resourceVersion of the object of a call, empty where it
	// does not exist.
	Revision func(client.Call) string

	mu    sync.Mutex
	armed bool
	dead  bool
	cut   chan string // what the operator was killed after
}

// Intercept is an interceptor of the client of the operator.
func (k *Killer) Intercept(_ context.Context, call client.Call, do func() error) error {
	if !call.Verb.Writes() {
		return do()
	}
	return k.Write(Describe(call, call.Key.Name), do, func() (effective bool, err error) {
		named := call.Key.Name != ""
		before := ""
		if named {
			before = k.Revision(call)
		}
		err = do()
		return err == nil && (!named || k.Revision(call) != before), err
	})
}

// Write makes a write: with do while no kill is due, else with observed,
// and kills the operator if that was effective.
func (k *Killer) Write(what string, do func() error, observed func() (effective bool, err error)) error {
	k.mu.Lock()
	if !k.armed {
		k.mu.Unlock()
		return do() // writes run side by side
	}
	defer k.mu.Unlock()
	if k.dead {
		return ErrKilled
	}
	effective, err := observed()
	if err != nil || !effective {
		return err
	}
	k.dead = true
	k.cut <- what
	return ErrKilled
}

// Arm has the next write be the last one.
func (k *Killer) Arm() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed, k.dead, k.cut = true, false, make(chan string, 1)
}

// Disarm waits for a write that is under way, and returns what the operator was
// killed after and the kill has not been announced yet.
func (k *Killer) Disarm() (killed []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed, k.dead = false, false
	select {
	case what := <-k.cut:
		killed = append(killed, what)
	default:
	}
	return killed
}

// Cut gets what the operator was killed after.
func (k *Killer) Cut() <-chan string { return k.cut }

// Revive lets the process that is started next write.
func (k *Killer) Revive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = false
}

// Describe is a call in a few words: verb, kind, name and subresource.
func Describe(call client.Call, name string) string {
	kind := call.GVK.Kind
	if call.SubResource != "" {
		kind += "/" + call.SubResource
	}
	return strings.TrimSpace(strings.Join([]string{string(call.Verb), kind, name}, " "))
}

// Severed is a connection until it is cut.
type Severed struct {
	http.RoundTripper
	Cut *atomic.Bool
}

// RoundTrip implements http.RoundTripper.
func (s *Severed) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.Cut.Load() {
		return nil, ErrKilled
	}
	return s.RoundTripper.RoundTrip(r)
}
