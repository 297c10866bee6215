// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package storagetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/steer-dev/steer/storage"
)

func views() []check {
	return []check{
		{"a view does not change when the store does", func(t *tester) {
			t.put("b", "a", "1")
			t.put("b", "b", "1")
			v := t.view(0)
			t.put("b", "a", "2")
			t.delete("b", "b")
			t.put("b", "c", "1")
			t.equal([]seen{{"b", "a", "1", 1, 1}, {"b", "b", "1", 2, 2}}, t.contents(v, "b", "", ""))
			t.equal(2, t.step(v.Revision()))
		}},
		{"a view shows every write acknowledged before it was opened", func(t *tester) {
			for i := range 100 {
				rec := t.put("b", fmt.Sprint(i%7), fmt.Sprint(i))
				v := t.view(0)
				t.equal(i+1, t.step(v.Revision()))
				if v.Get(rec.Key) != rec || t.Latest().Get(rec.Key) != rec {
					t.Fatalf("got %v, want what was written", t.see(v.Get(rec.Key)))
				}
			}
		}},
		{"a key can be read without a view, as of the newest acknowledged write", func(t *tester) {
			get := func() *storage.Record { return t.Get(key("b", "a")) }
			t.equal((*seen)(nil), t.see(get()))
			for i := range 10 {
				if rec := t.put("b", "a", fmt.Sprint(i)); get() != rec {
					t.Fatalf("got %v, want what was written", t.see(get()))
				}
			}
			v := t.view(0)
			t.delete("b", "a")
			t.equal((*seen)(nil), t.see(get()))
			t.equal("9", t.see(v.Get(key("b", "a"))).Value)
		}},
		{"a bucket was touched by its newest write, forgotten or not", func(t *tester) {
			touched := func(buckets ...string) int { return t.step(t.LastModified(buckets...)) }
			t.equal(storage.Revision(0), t.LastModified("b", "c"))
			t.put("b", "a", "1")
			t.put("c", "a", "1")
			t.put("b", "a", "2")
			t.put("d", "a", "1")
			t.equal([]int{3, 2, 3}, []int{touched("b"), touched("c"), touched("c", "b")})
			t.equal(storage.Revision(0), t.LastModified("none"))
			t.delete("c", "a")
			t.compact(5)
			t.equal([]int{3, 5}, []int{touched("b"), touched("c")})
		}},
		{"views at old revisions show what was then", func(t *tester) {
			t.put("b", "a", "1")
			t.put("b", "a", "2")
			t.put("c", "x", "1")
			t.delete("b", "a")
			t.put("b", "a", "3")
			for at, want := range [][]seen{
				{}, {{"b", "a", "1", 1, 1}}, {{"b", "a", "2", 1, 2}}, {{"b", "a", "2", 1, 2}}, {}, {{"b", "a", "3", 5, 5}},
			} {
				if at == 0 {
					continue // means the newest
				}
				v := t.view(t.at(at))
				t.equal(t.at(at), v.Revision())
				t.equal(len(want), v.Count("b", "", ""))
				if len(want) > 0 {
					t.equal(want, t.contents(v, "b", "", ""))
				}
			}
			t.equal([]string{"b"}, buckets(t.view(t.at(2))))
			t.equal([]string{"c"}, buckets(t.view(t.at(4))))
		}},
		{"a revision above the newest lies in the future", func(t *tester) {
			t.put("b", "a", "1")
			_, err := t.View(context.Background(), t.at(1)+1<<40)
			t.wantErr(err, storage.ErrFuture)
		}},
	}
}

func lists() []check {
	return []check{
		{"Get returns nil for what does not exist", func(t *tester) {
			t.put("b", "a", "1")
			for _, k := range []storage.Key{key("b", "aa"), key("b", ""), key("", "a"), key("c", "a")} {
				if r := t.view(0).Get(k); r != nil {
					t.Fatalf("%v: got %v", k, t.see(r))
				}
			}
		}},
		{"Ascend yields names with the prefix, not below start, in byte order", func(t *tester) {
			all := []string{"a", "a-b/x", "a/x", "a/y", "a0", "b/x", "b\xff", "b\xff\xff", "c"}
			for _, i := range []int{4, 2, 8, 0, 6, 1, 7, 3, 5} {
				t.put("b", all[i], "")
				t.put("bb", all[i], "")
			}
			v := t.view(0)
			for _, tt := range []struct {
				prefix, start string
				want          []string
			}{
				{"", "", all},
				{"a/", "", []string{"a/x", "a/y"}},
				{"a/", "a/xx", []string{"a/y"}},
				{"a/", "b", nil},
				{"a", "", []string{"a", "a-b/x", "a/x", "a/y", "a0"}},
				{"", "b/y", []string{"b\xff", "b\xff\xff", "c"}},
				{"b\xff", "", []string{"b\xff", "b\xff\xff"}},
				{"b\xff\xff", "", []string{"b\xff\xff"}},
				{"\xff", "", nil},
				{"d", "", nil},
			} {
				t.equal(tt.want, names(v, tt.prefix, tt.start))
				t.equal(len(tt.want), v.Count("b", tt.prefix, tt.start))
			}
			t.equal(0, v.Count("none", "", ""))
			for range v.Ascend("b", "", "") {
				break // stopping early is allowed
			}
		}},
		{"Buckets yields the names of the buckets that hold records", func(t *tester) {
			t.put("b", "x", "")
			t.put("a", "x", "")
			t.put("c/d", "x", "")
			t.delete("b", "x")
			t.equal([]string{"a", "c/d"}, buckets(t.view(0)))
		}},
		{"large buckets are complete and counted", func(t *tester) {
			var want []string
			for i := range 3000 {
				name := fmt.Sprintf("ns%d/%d", i%10, i*7919%3000)
				want = append(want, name)
				t.put("b", name, name)
			}
			slices.Sort(want)
			v := t.view(0)
			t.equal(want, names(v, "", ""))
			t.equal(300, v.Count("b", "ns3/", ""))
			t.equal(len(names(v, "ns3/", "ns3/2")), v.Count("b", "ns3/", "ns3/2"))
			for i, name := range want {
				if i%3 > 0 {
					t.delete("b", name)
				}
			}
			t.equal(1000, len(names(t.view(0), "", "")))
			t.equal(1000, t.view(0).Count("b", "", ""))
			t.equal(want, names(t.view(t.at(3000)), "", ""))
		}},
	}
}
