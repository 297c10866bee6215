// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/steer-dev/steer/storage"
)

// Linearize runs concurrent clients that read, create, change and delete a few keys and
// checks that the outcomes are those of some order of the operations in which each took
// effect between its call and its return.
func Linearize(t *testing.T, open Open) {
	s := open(t)
	t.Cleanup(func() { s.Close() })
	LinearizeStores(t, s)
}

// LinearizeStores is Linearize over several stores that share their data: each client
// uses all of them in turn.
func LinearizeStores(t *testing.T, stores ...storage.Store) {
	const clients, each = 8, 150
	var (
		clock   atomic.Int64
		wg      sync.WaitGroup
		history [clients][]porcupine.Operation
	)
	for client := range clients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 1))
			known := map[string]storage.Revision{}
			for i := range each {
				in := request{name: fmt.Sprint(rng.IntN(3)), kind: operation(rng.IntN(4))}
				in.expect = known[in.name]
				call := clock.Add(1)
				out := in.perform(stores[i%len(stores)])
				history[client] = append(history[client], porcupine.Operation{
					ClientId: client, Input: in, Call: call, Output: out, Return: clock.Add(1),
				})
				known[in.name] = out.modified
			}
		})
	}
	wg.Wait()
	all := slices.Concat(history[:]...)
	for _, op := range all {
		if err := op.Output.(response).err; err != nil {
			t.Fatal(err)
		}
	}
	switch porcupine.CheckOperationsTimeout(oneKey(), all, time.Minute) {
	case porcupine.Illegal:
		t.Fatal("the outcomes are not those of any order of the operations")
	case porcupine.Unknown:
		t.Fatal("the checker found no answer within a minute")
	}
}

type operation int

const (
	get operation = iota
	set
	swap
	remove
)

// request is an operation on one key; response is its result: the revision at which the
// key was found or left, 0 if it did not exist.
type request struct {
	kind   operation
	name   string
	expect storage.Revision
}

type response struct {
	modified storage.Revision
	conflict bool
	err      error
}

func (in request) perform(s storage.Store) response {
	ctx, k := context.Background(), key("b", in.name)
	if in.kind == get {
		v, err := s.View(ctx, 0)
		if err != nil {
			return response{err: err}
		}
		if rec := v.Get(k); rec != nil {
			return response{modified: rec.Modified}
		}
		return response{}
	}
	w := storage.Write{Key: k, Value: []byte("v"), Expect: storage.AnyRevision}
	switch in.kind {
	case swap:
		w.Expect = in.expect
	case remove:
		w.Value = nil
	}
	rec, err := s.Commit(ctx, w)
	var conflict *storage.ConflictError
	switch {
	case errors.As(err, &conflict):
		if conflict.Current == nil {
			return response{conflict: true}
		}
		return response{conflict: true, modified: conflict.Current.Modified}
	case err != nil:
		return response{err: err}
	}
	return response{modified: rec.Modified}
}

// life is the model's state of one key: the revision of its newest version or deletion,
// and whether it exists.
type life struct {
	revision storage.Revision
	exists   bool
}

// found is the result of a read.
func (l life) found() storage.Revision {
	if l.exists {
		return l.revision
	}
	return 0
}

// oneKey is the model of a single key.
func oneKey() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byName := map[string][]porcupine.Operation{}
			for _, op := range history {
				name := op.Input.(request).name
				byName[name] = append(byName[name], op)
			}
			var parts [][]porcupine.Operation
			for _, ops := range byName {
				parts = append(parts, ops)
			}
			return parts
		},
		Init: func() any { return life{} },
		Step: func(state, input, output any) (bool, any) {
			now, in, out := state.(life), input.(request), output.(response)
			refused := in.kind == swap && in.expect != now.found() || in.kind == remove && !now.exists
			switch {
			case in.kind == get || refused:
				return out.modified == now.found() && out.conflict == refused, now
			case out.conflict:
				return false, now
			}
			return out.modified > now.revision, life{out.modified, in.kind != remove}
		},
	}
}
