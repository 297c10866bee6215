// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"net/http"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestEvictionsStopAtTheBudget: the controller keeps the status, under the
// role that it has, and evictions follow it.
func TestEvictionsStopAtTheBudget(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	settle := func() {
		t.Helper()
		if _, err := plane.Settle(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	const pods, budget = "/api/v1/namespaces/default/pods", "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
	settle()
	for _, name := range []string{"a", "b", "c"} {
		api.must("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: "+name+", labels: {app: web}}, spec: {nodeName: node1, containers: [{name: c, image: i}]}}")
		api.must("PATCH", pods+"/"+name+"/status", `status: {phase: Running, conditions: [{type: Ready, status: "True"}]}`)
	}
	api.must("POST", budget, "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}}")
	settle()
	evict := func(name string) int {
		t.Helper()
		code, _ := api.do("POST", pods+"/"+name+"/eviction", "{apiVersion: policy/v1, kind: Eviction, metadata: {name: "+name+"}}")
		return code
	}
	equal(t, "the first", http.StatusCreated, evict("a"))
	settle()
	equal(t, "the second", http.StatusTooManyRequests, evict("b"))
	api.must("PATCH", budget+"/web", "spec: {minAvailable: 1}")
	settle()
	equal(t, "when the budget is larger", http.StatusCreated, evict("b"))
	settle()
	status := api.must("GET", budget+"/web", "")
	healthy, _, _ := unstructured.NestedInt64(status.Object, "status", "currentHealthy")
	equal(t, "healthy", int64(1), healthy)
}
