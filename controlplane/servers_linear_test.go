// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// register is an operation on the data of one ConfigMap: a read, or the write of a value.
type register struct {
	name, value string
	write       bool
}

// registers is the model of ConfigMaps: a read returns the value that was written last.
func registers() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			byName := map[string][]porcupine.Operation{}
			for _, op := range history {
				name := op.Input.(register).name
				byName[name] = append(byName[name], op)
			}
			for _, ops := range byName {
				parts = append(parts, ops)
			}
			return parts
		},
		Init: func() any { return "" },
		Step: func(state, input, output any) (bool, any) {
			if in := input.(register); in.write {
				return true, in.value
			}
			return output.(string) == state.(string), state
		},
	}
}

func TestServersAreLinearizableOverChangesOfTheLeader(t *testing.T) {
	t.Parallel()
	c := newCluster(t, 3)
	names := []string{"a", "b", "c"}
	for _, name := range names {
		c.servers[0].must(http.MethodPost, configMaps, configMap(name))
	}
	var (
		clock    atomic.Int64
		unknown  atomic.Int32
		clients  sync.WaitGroup
		history  = make([][]porcupine.Operation, 6)
		progress = make(chan struct{}, 1)
		stopped  = make(chan struct{})
	)
	for client := range history {
		s := c.servers[client%len(c.servers)]
		configMaps := c.dynamic(s.URL()[len("https://"):]).Resource(configMapResource).Namespace("default")
		clients.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stopped:
					return
				default:
				}
				op := register{name: names[i%len(names)], value: fmt.Sprintf("%d-%d", client, i), write: (i+client)%2 == 0}
				done := porcupine.Operation{ClientId: client, Input: op, Call: clock.Add(1)}
				read, err := op.perform(t, configMaps)
				done.Output, done.Return = read, clock.Add(1)
				switch {
				case err == nil:
				case op.write:
					// It may have been made, or be made later, or never, which is after all reads.
					unknown.Add(1)
					done.Return = math.MaxInt64
				default:
					continue // it says nothing
				}
				history[client] = append(history[client], done)
				select {
				case progress <- struct{}{}:
				default:
				}
			}
		})
	}
	await := func(operations int) {
		for range operations {
			select {
			case <-progress:
			case <-time.After(time.Minute):
				t.Fatal("nothing happens")
			}
		}
	}
	for range 4 {
		await(30)
		leader, follower := c.leader()
		resume := follower.store.Pause() // it has no new writes, and must not answer as if there were none
		await(10)
		resume()
		thaw := leader.store.Freeze()
		leader.store.Expire()
		c.awaitLeaderOtherThan(leader)
		await(10)
		thaw()
	}
	await(30)
	close(stopped)
	clients.Wait()
	all := slices.Concat(history...)
	t.Logf("%d operations, the outcomes of %d are unknown", len(all), unknown.Load())
	switch porcupine.CheckOperationsTimeout(registers(), all, time.Minute) {
	case porcupine.Illegal:
		t.Error("the values are not those of any order of the operations")
	case porcupine.Unknown:
		t.Error("the checker found no answer within a minute")
	}
}

// perform carries out an operation; it returns what was read.
func (op register) perform(t *testing.T, configMaps dynamic.ResourceInterface) (string, error) {
	var o *unstructured.Unstructured
	var err error
	if op.write {
		patch := fmt.Sprintf(`{"data":{"v":%q}}`, op.value)
		_, err = configMaps.Patch(t.Context(), op.name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		return "", err
	}
	if o, err = configMaps.Get(t.Context(), op.name, metav1.GetOptions{}); err != nil {
		return "", err
	}
	value, _, err := unstructured.NestedString(o.Object, "data", "v")
	return value, err
}
