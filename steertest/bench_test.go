// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package steertest_test

import (
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/steertest"
)

// BenchmarkNew measures a control plane for a test, from nothing to ready.
func BenchmarkNew(b *testing.B) {
	s := scheme(b)
	steertest.New(b, steertest.Options{Scheme: s}) // the first one makes the template
	defer processor(b)()
	for b.Loop() {
		steertest.New(b, steertest.Options{Scheme: s})
	}
}

// BenchmarkFirstReconcile measures the same with an operator, up to what its
// first reconcile has written.
func BenchmarkFirstReconcile(b *testing.B) {
	s := scheme(b)
	steertest.New(b, steertest.Options{Scheme: s})
	defer processor(b)()
	for b.Loop() {
		env := steertest.New(b, steertest.Options{Scheme: s, Setup: setup})
		env.Create(configMap("source"))
		steertest.Wait(env, "default/copy", func(*corev1.ConfigMap) bool { return true })
	}
}

// processor reports the processor time of an iteration, all goroutines included:
// on a busy machine it says more than the clock.
func processor(b *testing.B) func() {
	b.Helper()
	used := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := used()
	return func() { b.ReportMetric(float64(used()-before)/float64(time.Millisecond)/float64(b.N), "cpu-ms/op") }
}
