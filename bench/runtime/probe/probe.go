// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package probe measures an operator's runtime from inside its process: one
// controller on the items of the benchmark, which reads its object and does
// nothing.
package probe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/steer-dev/steer/bench/runtime/micro"
)

// Side is a runtime under test.
type Side interface {
	// Run runs a manager with the controller until ctx ends; the controller
	// calls seen for every object that it reconciles.
	Run(ctx context.Context, config *rest.Config, seen func(name string)) error
	// Operate runs a manager like Run as the program of an operator does: with
	// all that belongs to a process of its own. It need not return.
	Operate(config *rest.Config, seen func(name string)) error
	// Get and List read from the cache; they may be called once everything was
	// seen.
	Get(ctx context.Context, namespace, name string) error
	List(ctx context.Context) (int, error)
	// Change writes the replicas of an object through the manager's client;
	// Replicas reads them with it.
	Change(ctx context.Context, namespace, name string, replicas int32) error
	Replicas(ctx context.Context, namespace, name string) (int32, error)
	// Contend runs a manager like Run that takes part in leader election and
	// gives the lease up when it ends; warm is called once its caches are.
	Contend(ctx context.Context, config *rest.Config, warm func(), seen func(name string)) error
}

// Result is what a probe prints.
type Result struct {
	SyncMillis    float64 `json:"syncMillis"`
	SyncCPUMillis float64 `json:"syncCPUMillis"`
	LiveHeapMB    float64 `json:"liveHeapMB"`
	PeakMB        float64 `json:"peakMB"`
	EventP50      float64 `json:"eventP50Millis"`
	EventP99      float64 `json:"eventP99Millis"`
	GetNanos      float64 `json:"getNanos"`
	GetAllocs     float64 `json:"getAllocs"`
	ListMillis    float64 `json:"listMillis"`
	// OwnWriteP50 is how long after the answer to a write a read shows it, StaleReads
	// the share of first reads that do not, in percent.
	OwnWriteP50 float64 `json:"ownWriteP50Micros"`
	StaleReads  float64 `json:"staleReadsPercent"`
}

// Main measures a side, or its single steps, and prints the result as JSON.
func Main(side Side, steps micro.Side) {
	flags := flag.NewFlagSet("probe", flag.ExitOnError) // of our own: a side may have claimed names in the global one
	kubeconfig := flags.String("kubeconfig", "", "the server")
	objects := flags.Int("objects", 1000, "how many items there are")
	events := flags.Int("events", 1000, "how many changes to time, at most as many as there are items")
	single := flags.Bool("micro", false, "measure single steps, without a server")
	idle := flags.Bool("idle", false, "measure a manager at rest, without a server")
	failing := flags.Bool("failover", false, "measure the hand-over from one leader to the next")
	recording := flags.Bool("record", false, "measure what the flight recorder takes of a reconcile with a status write")
	sync := flags.String("sync", "", "measure the first sync of objects in this form, without a server")
	growth := flags.Bool("growth", false, "measure how costs grow, without a server")
	_ = flags.Parse(os.Args[1:]) // exits itself
	var result any
	var err error
	switch {
	case *single:
		result, err = micro.Measure(context.Background(), steps, processCPU, *objects)
	case *idle:
		result, err = micro.Idle(side.Operate)
	case *failing:
		result, err = failover(side, *kubeconfig)
	case *recording:
		result, err = record(steps, *kubeconfig)
	case *sync != "":
		result, err = micro.Sync(context.Background(), steps, processCPU, *sync, *objects)
	case *growth:
		result, err = micro.Growth{Objects: *objects}.Measure(context.Background(), steps, processCPU)
	default:
		result, err = measure(side, *kubeconfig, *objects, *events)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(result)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}

// record measures the flight recorder; a side that has none has no result.
func record(steps micro.Side, kubeconfig string) (micro.Result, error) {
	side, ok := steps.(micro.Recording)
	if !ok {
		return micro.Result{}, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1
	return micro.Record(context.Background(), side, config, processCPU)
}

// sightings counts the objects that were seen and wakes those who wait for one.
type sightings struct {
	mu     sync.Mutex
	names  map[string]bool
	want   int
	all    chan struct{}
	waited string
	came   chan time.Time
}

func (s *sightings) seen(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.names[name] {
		s.names[name] = true
		if len(s.names) == s.want {
			close(s.all)
		}
	}
	if name == s.waited {
		s.waited = ""
		s.came <- time.Now()
	}
}

func (s *sightings) await(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waited = name
}

const collection = "/apis/bench.example.com/v1/namespaces/default/items"

func measure(side Side, kubeconfig string, objects, events int) (result Result, err error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return result, err
	}
	config.QPS, config.Burst = -1, -1
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s := &sightings{names: map[string]bool{}, want: objects, all: make(chan struct{}), came: make(chan time.Time, 1)}
	ended := make(chan error, 1)
	begin, cpu := time.Now(), processCPU()
	go func() { ended <- side.Run(ctx, rest.CopyConfig(config), s.seen) }()
	defer func() {
		cancel()
		err = errors.Join(err, ignoreCanceled(<-ended))
	}()
	select {
	case <-s.all:
	case err := <-ended:
		ended <- nil
		return result, fmt.Errorf("the manager ended: %w", err)
	case <-ctx.Done():
		return result, fmt.Errorf("%d of %d objects were reconciled: %w", len(s.names), objects, ctx.Err())
	}
	result.SyncMillis = millis(time.Since(begin))
	result.SyncCPUMillis = millis(processCPU() - cpu)
	peak, err := micro.Resident("VmHWM:")
	if err != nil {
		return result, err
	}
	result.PeakMB = peak / 1e6
	runtime.GC()
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	result.LiveHeapMB = float64(memory.HeapAlloc) / 1e6

	if err := timeEvents(ctx, config, s, events, &result); err != nil {
		return result, err
	}
	if err := timeOwnWrites(ctx, side, events, &result); err != nil {
		return result, err
	}
	return result, timeReads(ctx, side, &result)
}

// timeEvents changes objects one after the other and measures from the send to
// the reconcile.
func timeEvents(ctx context.Context, config *rest.Config, s *sightings, events int, result *Result) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	var latencies []float64
	for i := range events {
		name := fmt.Sprintf("item-%06d", i)
		s.await(name)
		sent := time.Now()
		body := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, sent.UnixMicro()%2e9) // never what it was, whenever that was
		request, err := http.NewRequestWithContext(ctx, http.MethodPatch, config.Host+collection+"/"+name, bytes.NewReader(body))
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/merge-patch+json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("change %s: %s: %w", name, response.Status, err)
		}
		select {
		case at := <-s.came:
			latencies = append(latencies, millis(at.Sub(sent)))
		case <-ctx.Done():
			return fmt.Errorf("no reconcile of %s: %w", name, ctx.Err())
		}
	}
	slices.Sort(latencies)
	result.EventP50, result.EventP99 = latencies[len(latencies)/2], latencies[len(latencies)*99/100]
	return nil
}

// timeOwnWrites writes, and reads until the reads show it.
func timeOwnWrites(ctx context.Context, side Side, writes int, result *Result) error {
	const pause = 20 * time.Microsecond
	var waits []float64
	stale := 0
	for i := range writes {
		name, want := fmt.Sprintf("item-%06d", i), int32(time.Now().UnixNano()%1e8)*10+int32(i%10) // never what it was
		if err := side.Change(ctx, "default", name, want); err != nil {
			return err
		}
		written := time.Now()
		for reads := 0; ; reads++ {
			is, err := side.Replicas(ctx, "default", name)
			if err != nil {
				return err
			}
			if is == want {
				waits = append(waits, float64(time.Since(written).Nanoseconds())/1000)
				break
			}
			if reads == 0 {
				stale++
			}
			time.Sleep(pause)
		}
	}
	slices.Sort(waits)
	result.OwnWriteP50, result.StaleReads = waits[len(waits)/2], 100*float64(stale)/float64(writes)
	return nil
}

func timeReads(ctx context.Context, side Side, result *Result) error {
	const gets, lists = 20000, 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu := processCPU()
	for i := range gets {
		if err := side.Get(ctx, "default", fmt.Sprintf("item-%06d", i%100)); err != nil {
			return err
		}
	}
	result.GetNanos = float64(processCPU()-cpu) / gets
	runtime.ReadMemStats(&after)
	result.GetAllocs = float64(after.Mallocs-before.Mallocs) / gets
	cpu = processCPU()
	for range lists {
		if _, err := side.List(ctx); err != nil {
			return err
		}
	}
	result.ListMillis = millis(processCPU()-cpu) / lists
	return nil
}

func ignoreCanceled(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func millis(d time.Duration) float64 { return d.Seconds() * 1000 }
