// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"errors"
	"strings"
	"sync"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
)

// errKilled is what an operator gets from its writes after it was killed.
var errKilled = errors.New("steertest: the operator was killed")

// KillAfterEveryWrite calls act, and then kills the operator after each of its
// writes that changes anything: the write is done, its answer is lost, and
// nothing is written after it. The operator is started anew each time, until the
// object of a key, "namespace/name" or "name", exists and all matchers are
// content. It returns what the operator was killed after, such as
// "apply Job db-0" or "patch EtcdCluster/status db". An operator that survives it
// has no write that another one must follow in the same process.
//
//	killed := steertest.KillAfterEveryWrite[*v1.Fleet](env, "default/web", func() {
//		env.Apply("config/samples/fleet.yaml")
//	}, steertest.Ready)
//
// Writes are those of the operator's client, and those to systems outside of the
// API server that go through [Env.Outside]. A test in which the operator is never
// killed fails.
func KillAfterEveryWrite[T client.Object](e *Env, name string, act func(), matchers ...Matcher) (killed []string) {
	e.Helper()
	return killUntil(e, name, act, func(obj T) bool {
		if await.Gone(obj) {
			return false
		}
		for _, match := range matchers {
			if match(obj) != nil {
				return false
			}
		}
		return true
	})
}

// KillAfterEveryWriteUntilGone is [KillAfterEveryWrite] for an end: act deletes the object, or
// brings the operator to, and the operator is killed after each of its writes until the object
// does not exist any more.
//
//	killed := steertest.KillAfterEveryWriteUntilGone[*v1.Fleet](env, "default/web", func() {
//		err := env.Client.Delete(env.Context(), fleet)
//		...
//	})
func KillAfterEveryWriteUntilGone[T client.Object](e *Env, name string, act func()) (killed []string) {
	e.Helper()
	return killUntil(e, name, act, await.Gone[T])
}

// killUntil kills the operator after every write until the object is as it is to be.
func killUntil[T client.Object](e *Env, name string, act func(), reached func(T) bool) (killed []string) {
	e.Helper()
	if e.engine != nil {
		e.Fatalf("steertest: KillAfterEveryWrite in a test that package sim runs: that kills at every write by itself; say what the test does without it")
	}
	if len(e.processes()) > 1 {
		e.Fatalf("steertest: KillAfterEveryWrite beside a replica of the operator, which would act in its place: stop the replica")
	}
	k := e.killer
	k.arm()
	defer func() {
		k.disarm()
		e.StopOperator()
		if !e.Failed() {
			e.StartOperator()
		}
	}()
	act()
	at := key[T](e, name)
	ctx, cancel := e.bounded()
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := await.Object(ctx, e.Client, at, reached)
		done <- err
	}()
	for {
		select {
		case what := <-k.cut:
			killed = append(killed, what)
			e.StopOperator()
			k.revive()
			e.StartOperator()
		case err := <-done:
			killed = append(killed, k.disarm()...)
			switch {
			case err != nil:
				e.Fatalf("steertest: killed %d times, at last after %s: %v", len(killed), strings.Join(killed[max(len(killed)-3, 0):], "; "), err)
			case len(killed) == 0:
				e.Fatalf("steertest: the operator was never killed: it has written nothing, or not with its client")
			}
			return killed
		}
	}
}

// Outside makes a write of the operator to a system outside of the API server,
// which what describes in a few words. It is for tests that stand between the
// operator and that system: [KillAfterEveryWrite] kills after these writes too.
// Otherwise it calls do and nothing else.
func (e *Env) Outside(what string, do func() error) error {
	if e.engine != nil {
		return e.engine.Outside(what, do)
	}
	return e.killer.write(what, do, func() (effective bool, err error) {
		err = do()
		return err == nil, err
	})
}

// killer ends the operator's process, as far as a server can see that.
type killer struct {
	// revision returns the resourceVersion of the object of a call, empty where it
	// does not exist.
	revision func(client.Call) string

	mu    sync.Mutex
	armed bool
	dead  bool
	cut   chan string // what the operator was killed after
}

func (k *killer) intercept(_ context.Context, call client.Call, do func() error) error {
	if !call.Verb.Writes() {
		return do()
	}
	return k.write(describe(call, call.Key.Name), do, func() (effective bool, err error) {
		named := call.Key.Name != ""
		before := ""
		if named {
			before = k.revision(call)
		}
		err = do()
		return err == nil && (!named || k.revision(call) != before), err
	})
}

// write makes a write: with do while no kill is due, else with observed,
// and kills the operator if that was effective.
func (k *killer) write(what string, do func() error, observed func() (effective bool, err error)) error {
	k.mu.Lock()
	if !k.armed {
		k.mu.Unlock()
		return do() // writes run side by side
	}
	defer k.mu.Unlock()
	if k.dead {
		return errKilled
	}
	effective, err := observed()
	if err != nil || !effective {
		return err
	}
	k.dead = true
	k.cut <- what
	return errKilled
}

func (k *killer) arm() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armed, k.dead, k.cut = true, false, make(chan string, 1)
}

// disarm waits for a write that is under way, and returns what the operator was
// killed after and the kill has not been announced yet.
func (k *killer) disarm() (killed []string) {
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

func (k *killer) revive() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.dead = false
}
