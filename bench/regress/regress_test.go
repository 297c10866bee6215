// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package regress_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/steer-dev/steer/bench/regress"
)

func TestTheLeastOfEachBenchmarkCounts(t *testing.T) {
	t.Parallel()
	got, err := regress.Parse(strings.NewReader(`goos: linux
BenchmarkReads/get         	     300	      2560 ns/op	    5233 B/op	      12 allocs/op
BenchmarkReads/get         	     300	      2109 ns/op	    5232 B/op	      13 allocs/op
BenchmarkList/newest      	     300	   5717545 ns/op	        57.18 ns/record	     104 B/op	       3 allocs/op
BenchmarkDecode 	     300	    104713 ns/op	  60.02 MB/s	   15329 B/op	     164 allocs/op
ok  	x	1s
`))
	want := map[string]regress.Figure{
		"Reads/get": {Allocs: 12, Bytes: 5232, Time: 2109}, "List/newest": {Allocs: 3, Bytes: 104, Time: 5717545},
		"Decode": {Allocs: 164, Bytes: 15329, Time: 104713},
	}
	if err != nil || !maps.Equal(want, got) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestEveryDifferenceIsNamed(t *testing.T) {
	t.Parallel()
	figures := map[string]regress.Figure{"a": {Allocs: 1, Bytes: 2, Time: 3}, "b": {Allocs: 1, Bytes: 2, Time: 3},
		"near": {Allocs: 1000, Bytes: 1000, Near: 0.01, Time: 3}, "large": {Allocs: 9, Bytes: 40_000, Time: 3}}
	before := &regress.Record{Go: "go1", Figures: figures}
	for name, test := range map[string]struct {
		change func(*regress.Record)
		want   string
	}{
		"nothing":       {func(*regress.Record) {}, ""},
		"an allocation": {func(r *regress.Record) { r.Figures["a"] = regress.Figure{Allocs: 2, Bytes: 2, Time: 3} }, "2 allocations, recorded were 1"},
		"one less":      {func(r *regress.Record) { r.Figures["a"] = regress.Figure{Allocs: 0, Bytes: 2, Time: 3} }, "0 allocations, recorded were 1"},
		"rounding":      {func(r *regress.Record) { r.Figures["a"] = regress.Figure{Allocs: 1, Bytes: 1, Time: 3} }, ""},
		"near":          {func(r *regress.Record) { r.Figures["near"] = regress.Figure{Allocs: 1009, Bytes: 991, Time: 3} }, ""},
		"not near":      {func(r *regress.Record) { r.Figures["near"] = regress.Figure{Allocs: 1011, Bytes: 1000, Time: 3} }, "1011 allocations, recorded were 1000"},
		"some of many":  {func(r *regress.Record) { r.Figures["large"] = regress.Figure{Allocs: 9, Bytes: 40_020, Time: 3} }, ""},
		"more of many":  {func(r *regress.Record) { r.Figures["large"] = regress.Figure{Allocs: 9, Bytes: 40_021, Time: 3} }, "40021 bytes, recorded were 40000"},
		"two bytes":     {func(r *regress.Record) { r.Figures["a"] = regress.Figure{Allocs: 1, Bytes: 4, Time: 3} }, "4 bytes, recorded were 2"},
		"time in slack": {func(r *regress.Record) { r.Figures["a"] = regress.Figure{Allocs: 1, Bytes: 2, Time: 5.9} }, ""},
		"time":          {func(r *regress.Record) { r.Figures["a"] = regress.Figure{Allocs: 1, Bytes: 2, Time: 6.1} }, "more than 2.0 times slower"},
		"one is gone":   {func(r *regress.Record) { delete(r.Figures, "b") }, "no such benchmark"},
		"one is new":    {func(r *regress.Record) { r.Figures["c"] = regress.Figure{} }, "not recorded"},
		"another Go":    {func(r *regress.Record) { r.Go = "go2" }, "cannot be compared"},
	} {
		now := &regress.Record{Go: "go1", Figures: maps.Clone(figures)}
		test.change(now)
		got := strings.Join(regress.Compare(before, now, 2), "\n")
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestWhatWasSlowOnceIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	suites := []regress.Suite{{Package: "./queue"}, {Package: "./storage"}}
	before := &regress.Record{Figures: map[string]regress.Figure{"queue.Add": {Time: 1}, "storage.Get": {Time: 1}, "storage.List": {Time: 1}}}
	now := &regress.Record{Figures: map[string]regress.Figure{"queue.Add": {Time: 3}, "storage.Get": {Time: 9, Allocs: 7}, "storage.List": {Time: 5}, "storage.New": {Time: 9}}}
	slow := regress.Slow(before, now, suites, 4)
	if len(slow) != 1 || slow[0].Package != "./storage" {
		t.Fatalf("slow are %v, want ./storage alone, once", slow)
	}
	now.Keep(&regress.Record{Figures: map[string]regress.Figure{"storage.Get": {Time: 2, Allocs: 8}, "storage.List": {Time: 6}, "storage.Old": {Time: 1}}})
	want := map[string]regress.Figure{"queue.Add": {Time: 3}, "storage.Get": {Time: 2, Allocs: 7}, "storage.List": {Time: 5}, "storage.New": {Time: 9}}
	if !maps.Equal(want, now.Figures) {
		t.Errorf("kept are %v, want %v", now.Figures, want)
	}
	if slow := regress.Slow(before, now, suites, 4); len(slow) != 1 {
		t.Errorf("storage.List stays slow, and is not named: %v", slow)
	}
}
