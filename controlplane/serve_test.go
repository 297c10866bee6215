// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/storage"
)

func TestOptionalVersionsAreServedWhereTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	const group = "/apis/admissionregistration.k8s.io/"
	_, usual := newPlane(t)
	if code, answer := usual.do("GET", group+"v1beta1/mutatingadmissionpolicies", ""); code != 404 {
		t.Errorf("by default: %d %s", code, answer)
	}
	_, api := planeOf(t, controlplane.Options{ManualControllers: true, Serve: controlplane.OptionalVersions()})
	response := api.open(t.Context(), http.MethodPost, group+"v1beta1/mutatingadmissionpolicies", `
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicy
metadata: {name: labels}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{operations: [CREATE], apiGroups: [""], apiVersions: [v1], resources: [configmaps]}]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"a": "b"}}}'}`)
	text, err := io.ReadAll(response.Body)
	response.Body.Close()
	warning := "admissionregistration.k8s.io/v1beta1 MutatingAdmissionPolicy is deprecated in v1.37+, unavailable in v1.40+; use admissionregistration.k8s.io/v1 MutatingAdmissionPolicy"
	if err != nil || response.StatusCode != 201 || !strings.Contains(response.Header.Get("Warning"), warning) {
		t.Fatalf("%d %s, with the warning %q (%v)", response.StatusCode, text, response.Header.Get("Warning"), err)
	}
	api.must("POST", group+"v1beta1/mutatingadmissionpolicybindings", `
apiVersion: admissionregistration.k8s.io/v1beta1
kind: MutatingAdmissionPolicyBinding
metadata: {name: labels}
spec: {policyName: labels}`)
	if made := api.must("POST", configMaps, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"); made.GetLabels()["a"] != "b" {
		t.Errorf("the policy is not in force: %v", made.Object)
	}
	for version, other := range map[string]string{"v1": "v1beta1", "v1beta1": "v1"} {
		policy := api.must("GET", group+version+"/mutatingadmissionpolicies/labels", "")
		fails, _, _ := unstructured.NestedString(policy.Object, "spec", "failurePolicy")
		if policy.GetAPIVersion() != "admissionregistration.k8s.io/"+version || fails != "Fail" {
			t.Errorf("as %s: %v", version, policy.Object)
		}
		if code, answer := api.do("PATCH", group+version+"/mutatingadmissionpolicies/labels", "{spec: {mutations: []}}"); code != 422 {
			t.Errorf("without mutations, as %s: %d %s; the rules are those of %s", version, code, answer, other)
		}
	}
	_, err = controlplane.New(controlplane.Options{Store: storage.NewMemory(storage.MemoryOptions{}), Serve: []string{"batch/v2"}})
	if err == nil || !strings.Contains(err.Error(), `Options.Serve: "batch/v2": there are [admissionregistration.k8s.io/v1beta1]`) {
		t.Errorf("another version: %v", err)
	}
}
