// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane"
)

// TestObjectsOfARetiredVersionAreServedInTheOthers: once a version is neither served nor the
// storage version, which is how it is retired, the objects that are stored in it are read,
// written and deleted through another, and their definition can be deleted.
func TestObjectsOfARetiredVersionAreServedInTheOthers(t *testing.T) {
	t.Parallel()
	const schema = "schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}"
	versions := func(old, current string) string {
		return "spec: {versions: [{name: v1alpha2, " + old + ", " + schema + "}, {name: v1beta1, " + current + ", " + schema + "}]}"
	}
	plane, api := planeOf(t, controlplane.Options{ManualControllers: true})
	api.must("POST", definitions, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gadgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gadgets, kind: Gadget}
  versions:
  - {name: v1alpha2, served: true, storage: true, `+schema+`}
  - {name: v1beta1, served: true, storage: false, `+schema+`}
`)
	const alpha, beta = "/apis/example.com/v1alpha2/namespaces/default/gadgets", "/apis/example.com/v1beta1/namespaces/default/gadgets"
	for _, name := range []string{"a", "b", "c"} {
		api.must("POST", alpha, "{apiVersion: example.com/v1alpha2, kind: Gadget, metadata: {name: "+name+"}, spec: {size: 1}}")
	}
	api.must("PATCH", definitions+"/gadgets.example.com", versions("served: true, storage: false", "served: true, storage: true"))
	api.must("PATCH", definitions+"/gadgets.example.com", versions("served: false, storage: false", "served: true, storage: true"))

	if code, _ := api.do("GET", alpha+"/a", ""); code != 404 {
		t.Errorf("the version that is not served answers %d", code)
	}
	got := api.must("GET", beta+"/a", "")
	equal(t, "read", "example.com/v1beta1", got.GetAPIVersion())
	if items, _ := api.must("GET", beta, "").Object["items"].([]any); len(items) != 3 {
		t.Errorf("%d objects are listed, want 3", len(items))
	}
	api.must("PUT", beta+"/a", "{apiVersion: example.com/v1beta1, kind: Gadget, metadata: {name: a, resourceVersion: '"+got.GetResourceVersion()+"'}, spec: {size: 2}}")
	api.must("PATCH", beta+"/b", "spec: {size: 3}")
	equal(t, "patched", any(map[string]any{"size": int64(3)}), api.must("GET", beta+"/b", "").Object["spec"])
	api.must("DELETE", beta+"/a", "")
	api.must("DELETE", definitions+"/gadgets.example.com", "")
	settle(t, plane)
	if code, body := api.do("GET", definitions+"/gadgets.example.com", ""); code != 404 {
		t.Errorf("the definition is still there: %s", body)
	}
}
