// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/steer-dev/steer/controlplane"
)

// BenchmarkFirstCustomResource is the time from nothing to the first custom
// resource, its definition included, in a process that has done it before.
func BenchmarkFirstCustomResource(b *testing.B) {
	for b.Loop() {
		plane, err := controlplane.New(controlplane.Options{ManualControllers: true})
		if err != nil {
			b.Fatal(err)
		}
		api := apiOf(b, plane.RESTConfig())
		api.must("POST", definitions, cronTabCRD("crontabs", "CronTab", "ct"))
		api.must("POST", cronTabs, cronTab("a"))
		if err := plane.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNew is the price of another plane in a process that has one.
func BenchmarkNew(b *testing.B) {
	kept := make([]*controlplane.Plane, 0, b.N)
	goroutines := runtime.NumGoroutine()
	before := heap()
	b.ResetTimer()
	for range b.N {
		plane, err := controlplane.New(controlplane.Options{ManualControllers: true})
		if err != nil {
			b.Fatal(err)
		}
		kept = append(kept, plane)
	}
	b.StopTimer()
	b.ReportMetric(float64(heap()-before)/float64(b.N)/1024, "KiB/plane")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines)/float64(b.N), "goroutines/plane")
	for _, plane := range kept {
		if err := plane.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestPlanesAreCheap holds planes to be cheap enough for one per test.
func TestPlanesAreCheap(t *testing.T) {
	// Not parallel: it counts memory and goroutines of the whole process.
	first, err := controlplane.New(controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Stop(context.Background())
	const count = 200
	planes := make([]*controlplane.Plane, 0, count)
	goroutines, before, start := runtime.NumGoroutine(), heap(), time.Now()
	for range count {
		plane, err := controlplane.New(controlplane.Options{})
		if err != nil {
			t.Fatal(err)
		}
		planes = append(planes, plane)
	}
	took, size := time.Since(start)/count, (heap()-before)/count
	t.Logf("%v and %d KiB per plane", took, size/1024)
	if size > 1<<20 {
		t.Errorf("%d bytes per plane, at most 1 MiB wanted", size)
	}
	if more := runtime.NumGoroutine() - goroutines; more > 0 {
		t.Errorf("%d goroutines more for planes that are idle", more)
	}
	for i, plane := range planes {
		if i%50 == 0 {
			api := apiOf(t, plane.RESTConfig())
			api.must("POST", configMaps, configMap("mine"))
			if got := api.names(configMaps); len(got) != 1 {
				t.Errorf("plane %d has %v", i, got)
			}
		}
		if err := plane.Stop(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}
