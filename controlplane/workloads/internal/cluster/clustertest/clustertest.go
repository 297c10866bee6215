// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clustertest runs one controller of workloads on stored objects without a
// server: objects go in, the requests of a step come out. It is short because the
// controllers are pure; package cluster cannot hold it, as only tests link it.
package clustertest

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

// World is a cluster of stored objects and what the controllers know of it.
type World struct {
	Store  storage.Store
	Memory *cluster.Memory
	Now    time.Time
}

// New returns an empty world.
func New() *World {
	return &World{
		Store: storage.NewMemory(storage.MemoryOptions{}), Memory: cluster.NewMemory(), Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
}

// Put stores an object in the namespace default, given in YAML without the metadata that
// all have: its uid is its name, its creation a minute ago.
func (w *World) Put(tb testing.TB, bucket, name, manifest string) storage.Key {
	tb.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(manifest), &o); err != nil {
		tb.Fatal(err)
	}
	if o == nil {
		o = map[string]any{}
	}
	m, _ := o["metadata"].(map[string]any)
	if m == nil {
		m = map[string]any{}
		o["metadata"] = m
	}
	m["name"], m["uid"], m["creationTimestamp"] = name, name, w.Now.Add(-time.Minute)
	key := storage.Key{Bucket: bucket, Name: name}
	if cluster.ResourceOf(bucket).Namespaced {
		m["namespace"], key.Name = "default", "default/"+name
	}
	steptest.Put(tb, w.Store, key, o)
	w.Memory.Index.Put(w.Store.Latest().Get(key))
	return key
}

// Step returns the requests of one step of a controller.
func (w *World) Step(tb testing.TB, look func(*cluster.Turn)) []step.Request {
	tb.Helper()
	turn := w.Memory.Begin(w.Store.Latest(), w.Now)
	look(turn)
	return turn.End()
}

// Lines shows requests as method and path, one to a line.
func Lines(requests []step.Request) string {
	var out []string
	for i := range requests {
		out = append(out, requests[i].Method+" "+requests[i].Path)
	}
	return strings.Join(out, "\n")
}

// Body returns the object that a request creates or replaces.
func Body[T any, P interface {
	*T
	Unmarshal(data []byte) error
}](tb testing.TB, r step.Request) P {
	tb.Helper()
	const mark = "k8s\x00"
	var unknown runtime.Unknown
	if r.ContentType != step.Protobuf || unknown.Unmarshal([]byte(strings.TrimPrefix(string(r.Body), mark))) != nil {
		tb.Fatalf("%s %s has no object: %q", r.Method, r.Path, r.Body)
	}
	obj := P(new(T))
	if err := obj.Unmarshal(unknown.Raw); err != nil {
		tb.Fatal(err)
	}
	return obj
}
