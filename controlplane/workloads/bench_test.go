// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package workloads_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/steertest"
)

// BenchmarkDeploymentToAvailable measures a Deployment of three replicas, from
// its creation until a client sees that it is available, on a control plane that runs
// its controllers and is at rest. The bound is 10 ms. settled-cpu-ms/op says what it
// takes until nothing is left to do, Events included, regardless of the load of the machine.
func BenchmarkDeploymentToAvailable(b *testing.B) {
	c := start(b, controlplane.Options{Workloads: &workloads.Options{}})
	c.available(deployment("first", 1))
	n := 0
	var spent time.Duration
	for b.Loop() {
		n++
		d := deployment(fmt.Sprint("web-", n), 3)
		began := processorTime(b)
		c.available(d)
		b.StopTimer()
		c.Settled()
		spent += processorTime(b) - began
		if err := c.Client.Delete(c.Context(), d); err != nil {
			b.Fatal(err)
		}
		c.Settled()
		b.StartTimer()
	}
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(n), "settled-cpu-ms/op")
}

// BenchmarkFirstDeployment is the same for the first Deployment of a control plane
// that has just started and is at rest. What a process prepares only once for all
// of its planes is in the first iteration alone.
func BenchmarkFirstDeployment(b *testing.B) {
	n := 0
	var spent time.Duration
	for b.Loop() {
		n++
		b.StopTimer()
		c := start(b, controlplane.Options{Workloads: &workloads.Options{}})
		c.Settled()
		d := deployment("web", 3)
		b.StartTimer()
		began := processorTime(b)
		c.available(d)
		b.StopTimer()
		c.Settled()
		spent += processorTime(b) - began
		b.StartTimer()
	}
	b.ReportMetric(float64(spent.Microseconds())/1000/float64(n), "settled-cpu-ms/op")
}

// available creates a Deployment and waits until a client sees it available.
func (c *cluster) available(d *appsv1.Deployment) {
	c.Helper()
	c.Create(d)
	steertest.Wait(c.Env, "default/"+d.Name, func(d *appsv1.Deployment) bool { return d.Status.AvailableReplicas == *d.Spec.Replicas })
}

// processorTime is what the process has used of it.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
