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

	"github.com/steer-dev/steer/apiserver/apply/internal/fields"
)

// FuzzCreation: the single pass over a new object of any built-in kind owns what a comparison
// with an empty object gains. The text is what the object is filled of.
func FuzzCreation(f *testing.F) {
	kinds := builtInKinds(f)
	names := slices.SortedFunc(maps.Keys(kinds), func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	managers := make([]func() (main, status *Manager), len(names))
	for i, name := range names {
		managers[i] = sync.OnceValues(func() (main, status *Manager) {
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
		live := main.binding.Endpoint.New()
		live.GetObjectKind().SetGroupVersionKind(names[i])
		for _, m := range []*Manager{main, status} {
			agreesWithComparison(t, m, live, obj)
		}
	})
}

// agreesWithComparison compares what the single pass says of a new object with the comparison
// that it spares, and reports which of them took it.
func agreesWithComparison(t *testing.T, m *Manager, live, obj Object) (compared, passed bool) {
	changes, compared := fields.CompareTyped(m.root(), reflect.ValueOf(live).Elem(), reflect.ValueOf(obj).Elem())
	want := ""
	if compared {
		changes.Prune(m.resets())
		if changes.Gains(); !changes.Empty() {
			want = changes.Text()
		}
	}
	c := m.creation()
	if c == nil {
		return compared, false
	}
	set, passed := c.Of(reflect.ValueOf(obj).UnsafePointer())
	if !passed {
		return compared, false
	}
	if got := set.GetRawString(); !compared || got != want {
		t.Fatalf("%v: owns\n%s\nwant (%v)\n%s", m.binding.Kind, got, compared, want)
	}
	return compared, true
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
