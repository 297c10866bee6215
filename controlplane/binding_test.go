// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestPodIsBoundOnce(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	const pods = "/api/v1/namespaces/default/pods"
	for _, name := range []string{"free", "gated"} {
		gates := ""
		if name == "gated" {
			gates = "schedulingGates: [{name: example.com/wait}], "
		}
		api.must("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: "+name+"}, spec: {"+gates+"containers: [{name: x, image: x}]}}")
	}
	binding := func(name, target string) string {
		return "{apiVersion: v1, kind: Binding, metadata: {name: " + name + ", labels: {zone: a}}, target: {" + target + "}}"
	}
	equal(t, "other name", `400 BadRequest: name in URL does not match name in Binding object`,
		api.refused("POST", pods+"/free/binding", binding("other", "kind: Node, name: node-1")))
	equal(t, "gated", `409 Conflict: Operation cannot be fulfilled on pods/binding "gated": pod gated has non-empty .spec.schedulingGates`,
		api.refused("POST", pods+"/gated/binding", binding("gated", "name: node-1")))
	equal(t, "absent", `404 NotFound: pods "absent" not found`, api.refused("POST", pods+"/absent/binding", binding("absent", "name: node-1")))
	status := api.must("POST", pods+"/free/binding", binding("free", "kind: Node, name: node-1"))
	equal(t, "answer", map[string]any{"kind": "Status", "apiVersion": "v1", "metadata": map[string]any{}, "status": "Success", "code": int64(201)}, status.Object)
	equal(t, "again", `409 Conflict: Operation cannot be fulfilled on pods/binding "free": pod free is already assigned to node "node-1"`,
		api.refused("POST", pods+"/free/binding", binding("free", "name: node-1")))
	pod := api.must("GET", pods+"/free", "")
	node, _, _ := unstructured.NestedString(pod.Object, "spec", "nodeName")
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	equal(t, "node", "node-1", node)
	equal(t, "labels", map[string]string{"zone": "a"}, pod.GetLabels())
	equal(t, "generation", int64(1), pod.GetGeneration())
	if len(conditions) != 1 || conditions[0].(map[string]any)["type"] != "PodScheduled" {
		t.Errorf("conditions %v", conditions)
	}
}
