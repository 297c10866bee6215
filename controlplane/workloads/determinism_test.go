// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/workloads"
	"github.com/steer-dev/steer/steertest"
)

// TestSameSeedGivesSameBytes runs one script several times under the plane's own
// loop: all objects must be the same to the byte.
func TestSameSeedGivesSameBytes(t *testing.T) {
	t.Parallel()
	var first []string
	for run := range 10 {
		var now []string
		synctest.Test(t, func(t *testing.T) {
			c := newLoop(t, workloads.Outcome{Selector: "app=slow", After: 3 * time.Second})
			for _, obj := range []object{deployment("web", 5), deployment("slow", 3), statefulSet("db", 3), job("x")} {
				synctest.Wait()
				if err := c.Client.Create(t.Context(), obj); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			var d appsv1.Deployment
			c.get("web", &d)
			d.Spec.Template.Spec.Containers[0].Image = "example.com/main:2"
			c.update(&d)
			synctest.Wait()
			transport, err := rest.HTTPClientFor(c.Config)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{"/api/v1/pods", "/apis/apps/v1/deployments", "/apis/apps/v1/replicasets", "/apis/apps/v1/statefulsets", "/apis/batch/v1/jobs"} {
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.Config.Host+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				response, err := transport.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				body, err := io.ReadAll(response.Body)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close() // was read to its end
				now = append(now, string(body))
			}
		})
		if run == 0 {
			first = now
			if n := strings.Count(first[0], `"phase":"Running"`); n != 11 {
				t.Fatalf("%d Pods run, want 11", n)
			}
			continue
		}
		if diff := cmp.Diff(first, now); diff != "" {
			t.Fatalf("run %d differs (-first +this):\n%s", run+1, diff)
		}
	}
}

// BenchmarkDeploymentToAvailable measures a Deployment of three replicas, from
// its creation until a client sees that it is available, on a control plane that runs
// its controllers and is at rest. The bound is 10 ms. settled-cpu-ms/op says what it
// takes until nothing is left to do, Events included, whatever else the machine does.
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
