// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
)

// TestIndexesEqualARebuild drives a store at random and compares what its
// indexes find with a scan over everything.
func TestIndexesEqualARebuild(t *testing.T) {
	t.Parallel()
	for seed := range uint64(30) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		s := New("")
		calls := 0
		values := func(o client.Object) []string { calls++; return slices.Sorted(maps.Keys(o.GetLabels())) }
		if err := s.AddIndex("keys", values); err != nil {
			t.Fatal(err)
		}
		versions := 0
		for rev := 1; rev <= 400; rev++ {
			obj := randomObject(rnd, rev)
			d := Delta{Op: Put, Object: obj, Revision: obj.ResourceVersion}
			if rnd.IntN(5) == 0 {
				d.Op = Delete
			} else {
				versions++
			}
			if rnd.IntN(10) == 0 { // an own write that the watch has not shown
				own := randomObject(rnd, rev+rnd.IntN(20))
				s.Write(Own{Key: client.ObjectKeyFromObject(own), UID: own.UID, Revision: own.ResourceVersion, Object: own})
				versions++
			}
			s.Commit([]Delta{d}, nil)
			if rev == 200 {
				s.EnsureIndex(LabelIndex("a"), func(o client.Object) []string {
					if v, ok := o.GetLabels()["a"]; ok {
						return []string{v}
					}
					return nil
				})
			}
		}
		if calls > versions {
			t.Errorf("seed %d: %d calls of an index function for %d versions", seed, calls, versions)
		}
		all, _ := s.Select(Query{}, nil)
		for _, q := range []struct {
			term Term
			has  func(client.Object) bool
		}{
			{Term{Index: "keys", Value: "b"}, func(o client.Object) bool { _, ok := o.GetLabels()["b"]; return ok }},
			{Term{Index: "keys", Value: "b", Not: true}, func(o client.Object) bool { _, ok := o.GetLabels()["b"]; return !ok }},
			{Term{Index: LabelIndex("a"), Value: "1"}, func(o client.Object) bool { return o.GetLabels()["a"] == "1" }},
			{Term{Index: NamespaceIndex, Value: "n1"}, func(o client.Object) bool { return o.GetNamespace() == "n1" }},
			{Term{Index: OwnerIndex, Value: "owner-1"}, func(o client.Object) bool {
				return len(o.GetOwnerReferences()) > 0 && o.GetOwnerReferences()[0].UID == "owner-1"
			}},
		} {
			var want []client.Object
			for _, obj := range all {
				if q.has(obj) {
					want = append(want, obj)
				}
			}
			got, _ := s.Select(Query{Terms: []Term{q.term}}, nil)
			if diff := cmp.Diff(names(want), names(got)); diff != "" {
				t.Fatalf("seed %d %+v: (-scan +index)\n%s", seed, q.term, diff)
			}
		}
	}
}

func names(objects []client.Object) (out []string) {
	for _, o := range objects {
		out = append(out, client.ObjectKeyFromObject(o).String()+"@"+o.GetResourceVersion())
	}
	return out
}

func randomObject(rnd *rand.Rand, rev int) *metav1.PartialObjectMetadata {
	obj := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprint("n", rnd.IntN(3)), Name: fmt.Sprint("o", rnd.IntN(12)), ResourceVersion: fmt.Sprint(rev), Labels: map[string]string{},
	}}
	obj.UID = types.UID(obj.Namespace + obj.Name + fmt.Sprint(rnd.IntN(2)))
	for _, l := range []string{"a", "b", "c"} {
		if rnd.IntN(2) == 0 {
			obj.Labels[l] = fmt.Sprint(rnd.IntN(3))
		}
	}
	if rnd.IntN(2) == 0 {
		obj.OwnerReferences = []metav1.OwnerReference{{UID: types.UID(fmt.Sprint("owner-", rnd.IntN(3)))}}
	}
	return obj
}

func TestOwnWriteIsHiddenByNothingOlder(t *testing.T) {
	t.Parallel()
	object := func(rev, uid string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: types.UID(uid), ResourceVersion: rev}}
	}
	key := client.ObjectKey{Name: "a"}
	put := func(s *Store, rev, uid string) {
		s.Commit([]Delta{{Op: Put, Object: object(rev, uid), Revision: rev}}, nil)
	}
	for _, c := range []struct {
		name string
		do   func(s *Store)
		want string // revision read; "" is nothing, "?" unknown
	}{
		{"until its revision", func(s *Store) {
			put(s, "5", "u")
			s.Write(Own{Key: key, UID: "u", Revision: "9", Object: object("9", "u")})
			put(s, "7", "u")
		}, "9"},
		{"then the watch rules", func(s *Store) {
			s.Write(Own{Key: key, UID: "u", Revision: "9", Object: object("9", "u")})
			put(s, "10", "u")
		}, "10"},
		{"a late answer is dropped", func(s *Store) {
			put(s, "10", "u")
			s.Write(Own{Key: key, UID: "u", Revision: "9", Object: object("9", "u")})
		}, "10"},
		{"progress of the watch covers it", func(s *Store) {
			s.Write(Own{Key: key, UID: "u", Revision: "9", Object: object("9", "u")})
			s.Commit([]Delta{{Op: Progress, Revision: "9"}}, nil)
		}, ""},
		{"answers out of order", func(s *Store) {
			s.Write(Own{Key: key, UID: "u", Revision: "9", Object: object("9", "u")})
			s.Write(Own{Key: key, UID: "u", Revision: "8", Object: object("8", "u")})
		}, "9"},
		{"a deletion hides what came before", func(s *Store) { put(s, "5", "u"); s.Write(Own{Key: key, UID: "u", Floor: "5"}); put(s, "6", "u") }, ""},
		{"a deletion ends with a new incarnation", func(s *Store) { put(s, "5", "u"); s.Write(Own{Key: key, UID: "u", Floor: "5"}); put(s, "8", "v") }, "8"},
		{"a deletion outlives an older incarnation", func(s *Store) { s.Write(Own{Key: key, UID: "v", Floor: "8"}); put(s, "5", "u") }, ""},
		{"a deletion that the watch has delivered", func(s *Store) {
			put(s, "5", "u")
			s.Commit([]Delta{{Op: Delete, Object: object("6", "u"), Revision: "6"}}, nil)
			s.Write(Own{Key: key, UID: "u", Floor: "5"})
			put(s, "7", "v")
		}, "7"},
		{"a deletion of what was never shown, and another incarnation", func(s *Store) { s.Write(Own{Key: key, UID: "u"}); put(s, "8", "v") }, "?"},
		{"an own creation after it, delivered before its answer", func(s *Store) {
			s.Write(Own{Key: key, UID: "u"})
			put(s, "8", "v")
			s.Write(Own{Key: key, UID: "v", Revision: "8", Object: object("8", "v")})
			s.Resolve(key, s.Mark(), object("8", "v"), "8")
		}, "8"},
		{"a list asked for later covers it", func(s *Store) {
			s.Write(Own{Key: key, UID: "u"})
			mark := s.Mark()
			s.Commit([]Delta{{Op: ListBegin, Mark: mark}, {Op: PutListed, Object: object("9", "v"), Revision: "9"}, {Op: ListEnd, Revision: "9"}}, nil)
		}, "9"},
		{"a list asked for earlier does not", func(s *Store) {
			mark := s.Mark()
			s.Write(Own{Key: key, UID: "u"})
			s.Commit([]Delta{{Op: ListBegin, Mark: mark}, {Op: PutListed, Object: object("9", "u"), Revision: "9"}, {Op: ListEnd, Revision: "9"}}, nil)
		}, ""},
		{"a deletion answered after a later creation", func(s *Store) {
			s.Write(Own{Key: key, UID: "v", Revision: "20", Object: object("20", "v")})
			s.Write(Own{Key: key, UID: "u"})
		}, "?"},
		{"a creation answered after a later deletion", func(s *Store) {
			s.Write(Own{Key: key, UID: "v"})
			s.Write(Own{Key: key, UID: "u", Revision: "20", Object: object("20", "u")})
		}, "?"},
		{"a deletion answered after a later creation, known to be older", func(s *Store) {
			s.Write(Own{Key: key, UID: "v", Revision: "20", Object: object("20", "v")})
			s.Write(Own{Key: key, UID: "u", Floor: "5"})
		}, "20"},
		{"a deletion answered after another incarnation was delivered", func(s *Store) {
			put(s, "5", "u")
			put(s, "8", "v")
			s.Write(Own{Key: key, UID: "u"})
		}, "8"},
		{"a change answered after the deletion", func(s *Store) {
			s.Write(Own{Key: key, UID: "u"})
			s.Write(Own{Key: key, UID: "u", Revision: "8", Object: object("8", "u")})
		}, ""},
		{"a live read asked for before it", func(s *Store) {
			s.Write(Own{Key: key, Unknown: true, Lost: true})
			mark := s.Mark()
			s.Write(Own{Key: key, UID: "u", Unknown: true})
			s.Resolve(key, mark, object("5", "u"), "5")
		}, "?"},
		{"a live read that found nothing", func(s *Store) {
			put(s, "5", "u")
			s.Write(Own{Key: key, Unknown: true, Lost: true})
			s.Resolve(key, s.Mark(), nil, "7")
			put(s, "6", "u")
		}, ""},
		{"a deletion is not over when the object leaves the selection", func(s *Store) {
			put(s, "3", "u")
			s.Write(Own{Key: key, UID: "u"})
			s.Commit([]Delta{{Op: Delete, Object: object("5", "u"), Revision: "5"}}, nil)
			put(s, "7", "u")
		}, ""},
		{"a change that leaves the selection outlives an earlier one", func(s *Store) {
			put(s, "3", "u")
			s.Write(Own{Key: key, UID: "u", Revision: "9"})
			s.Commit([]Delta{{Op: Delete, Object: object("5", "u"), Revision: "5"}}, nil)
			put(s, "7", "u")
		}, ""},
		{"what cannot be compared is asked for", func(s *Store) { s.Write(Own{Key: key, UID: "u", Revision: "opaque", Object: object("opaque", "u")}) }, "?"},
		{"until it is delivered", func(s *Store) {
			s.Write(Own{Key: key, UID: "u", Revision: "opaque", Object: object("opaque", "u")})
			put(s, "opaque", "u")
		}, "opaque"},
	} {
		s := New("")
		c.do(s)
		obj, answer := s.Get(key)
		got := ""
		switch {
		case answer == Unknown:
			got = "?"
		case obj != nil:
			got = obj.GetResourceVersion()
		}
		if got != c.want {
			t.Errorf("%s: read %q, want %q", c.name, got, c.want)
		}
		if listed, how := s.Select(Query{}, nil); how != Unknown && len(listed) != min(len(c.want), 1) {
			t.Errorf("%s: a list has %d objects, want to agree with the read of %q", c.name, len(listed), c.want)
		}
	}
}
