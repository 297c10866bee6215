// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"strings"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/await"
)

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
	k.Arm()
	defer func() {
		k.Disarm()
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
		case what := <-k.Cut():
			killed = append(killed, what)
			e.StopOperator()
			k.Revive()
			e.StartOperator()
		case err := <-done:
			killed = append(killed, k.Disarm()...)
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
	return e.killer.Write(what, do, func() (effective bool, err error) {
		err = do()
		return err == nil, err
	})
}
