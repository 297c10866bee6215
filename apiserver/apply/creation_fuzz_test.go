// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// FuzzCreation: the creator of an object of any built-in kind owns what the library says. The
// text is what the object is filled of.
func FuzzCreation(f *testing.F) {
	kinds := builtInKinds(f)
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	managers := make([]func() (main, status *FieldManager), len(names))
	for i, name := range names {
		managers[i] = sync.OnceValues(func() (main, status *FieldManager) {
			return builtIn(name, func() Object { return reflect.New(kinds[name]).Interface().(Object) })
		})
	}
	for i := range names {
		if i%8 == 0 { // the test beside it has all
			f.Add(uint16(i), []byte(strings.Repeat(names[i].String(), 20)))
			f.Add(uint16(i), []byte{})
		}
	}
	f.Fuzz(func(t *testing.T, kind uint16, text []byte) {
		i := int(kind) % len(names)
		main, status := managers[i]()
		obj := main.binding.Endpoint.New()
		objectFiller(0).NumElements(1, 3).RandSource(&bytesSource{rest: text}).Fill(obj)
		obj.GetObjectKind().SetGroupVersionKind(names[i])
		for _, m := range []*FieldManager{main, status} {
			createdAsByTheLibrary(t, m, obj)
		}
	})
}

// createdAsByTheLibrary compares who owns the fields of a new object with what the library says,
// and reports whether that could be told without it.
func createdAsByTheLibrary(t *testing.T, m *FieldManager, obj Object) bool {
	live := m.binding.Endpoint.New()
	live.GetObjectKind().SetGroupVersionKind(m.binding.Kind)
	got, want := obj.DeepCopyObject().(Object), obj.DeepCopyObject().(Object)
	if !m.updateFast(live, got, "creator") {
		return false
	}
	library, err := m.bind(t.Context())
	if err == nil {
		err = setManagedFieldsByLibrary(library, live, want.DeepCopyObject().(Object), want, "creator")
	}
	if err != nil {
		t.Fatalf("%v is created without the library, which says %v", m.binding.Kind, err)
	}
	if got, want := record(got), record(want); got != want {
		t.Fatalf("%v: owns\n%s\nwant\n%s", m.binding.Kind, got, want)
	}
	return true
}

// bytesSource takes random numbers from the input of a fuzz target, and others after its end.
type bytesSource struct {
	rest  []byte
	after *rand.PCG
}

func (s *bytesSource) Uint64() (n uint64) {
	if len(s.rest) == 0 {
		if s.after == nil {
			s.after = rand.NewPCG(1, 2)
		}
		return s.after.Uint64()
	}
	for range min(2, len(s.rest)) { // two bytes choose among all that is asked for here
		n = n<<8 | uint64(s.rest[0])
		s.rest = s.rest[1:]
	}
	return n<<48 | n<<32 | n<<16 | n
}

func (s *bytesSource) Int63() int64 { return int64(s.Uint64() >> 1) }

func (*bytesSource) Seed(int64) {}
