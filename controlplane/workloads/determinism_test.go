// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/controlplane/workloads"
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
			for _, obj := range []object{deployment("web", 5), deployment("slow", 3), statefulSet(3), job("x")} {
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
