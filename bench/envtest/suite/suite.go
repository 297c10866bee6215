// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suite is a suite of tests that each take an environment of their own
// from controller-runtime's envtest: start it with a definition, create an object
// of that and read it back, stop it. The programs come from the folder that
// KUBEBUILDER_ASSETS names, as always.
package suite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// patience is how long a program may take to start or stop.
const patience = 2 * time.Minute

// Suite says what to run.
type Suite struct {
	// Tests is how many tests there are, AtOnce how many run at a time.
	Tests, AtOnce int
	// Within is how long tests are begun; those under way are finished.
	Within time.Duration
	// Definitions is the folder of the definitions to install.
	Definitions string
}

// Result is what a suite took.
type Result struct {
	Tests []Test `json:"tests"`
	// Wall is the time from the first test to the end of the last.
	Wall time.Duration `json:"wall"`
	// SuiteCPU is the time of the suite itself, PlanesCPU that of the programs it
	// started.
	SuiteCPU  time.Duration `json:"suiteCPU"`
	PlanesCPU time.Duration `json:"planesCPU"`
}

// Test is what one test took: until Start has returned, what it is about, and
// until Stop has returned.
type Test struct {
	Start time.Duration `json:"start"`
	Body  time.Duration `json:"body"`
	Stop  time.Duration `json:"stop"`
}

// Run runs the tests. The first that fails ends the suite.
func (s Suite) Run(ctx context.Context) (out Result, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begin := time.Now()
	var (
		all  sync.WaitGroup
		next atomic.Int64
		mu   sync.Mutex
	)
	for range s.AtOnce {
		all.Go(func() {
			for ctx.Err() == nil && time.Since(begin) < s.Within && int(next.Add(1)) <= s.Tests {
				one, err := s.test(ctx)
				if err != nil {
					cancel(err)
					return
				}
				mu.Lock()
				out.Tests = append(out.Tests, one)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	out.Wall = time.Since(begin)
	if err := context.Cause(ctx); err != nil {
		return out, err
	}
	if out.SuiteCPU, err = spent(syscall.RUSAGE_SELF); err != nil {
		return out, err
	}
	out.PlanesCPU, err = spent(syscall.RUSAGE_CHILDREN)
	return out, err
}

// spent returns the CPU time of this process, or of its children that ended.
func spent(who int) (time.Duration, error) {
	var usage syscall.Rusage
	err := syscall.Getrusage(who, &usage)
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), err
}

// test is one test.
func (s Suite) test(ctx context.Context) (out Test, err error) {
	begin := time.Now()
	env := &envtest.Environment{
		CRDDirectoryPaths: []string{s.Definitions}, ErrorIfCRDPathMissing: true,
		// A busy machine is measured as such, not as an error.
		ControlPlaneStartTimeout: patience, ControlPlaneStopTimeout: patience,
	}
	config, err := env.Start()
	if err != nil {
		return out, err
	}
	started := time.Now()
	defer func() {
		done := time.Now()
		err = errors.Join(err, env.Stop())
		out = Test{Start: started.Sub(begin), Body: done.Sub(started), Stop: time.Since(done)}
	}()
	c, err := client.New(config, client.Options{})
	if err != nil {
		return out, err
	}
	gauge := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "bench.example.com/v1", "kind": "Gauge",
		"spec": map[string]any{"unit": "bar"},
	}}
	gauge.SetNamespace(metav1.NamespaceDefault)
	gauge.SetName("pressure")
	if err := c.Create(ctx, gauge); err != nil {
		return out, err
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(gauge), gauge); err != nil {
		return out, err
	}
	if limit, _, _ := unstructured.NestedInt64(gauge.Object, "spec", "limit"); limit != 100 { // another type is as wrong
		return out, fmt.Errorf("the default of the definition is missing: %v", gauge.Object)
	}
	return out, nil
}
