// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"bytes"
	_ "embed"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

// recordedPolicies are policies with the status that the controller of Kubernetes gave
// them; the first document is a definition that one of them is about.
//
//go:embed testdata/type-checking.yaml
var recordedPolicies []byte

// numberedType is the name of a type in a message, which has a number that says nothing.
var numberedType = regexp.MustCompile(`\b(Deployment|StatefulSet|Pod|Event|ConfigMap|Job|Thing)\d+\b`)

// TestPoliciesAreTypeChecked holds what is said of expressions to
// what was recorded, and that a policy is looked at once per generation.
func TestPoliciesAreTypeChecked(t *testing.T) {
	t.Parallel()
	plane, api := newPlane(t)
	documents := bytes.Split(recordedPolicies, []byte("\n---\n"))
	const definitions, policies = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
	api.must("POST", definitions, string(documents[0]))
	var recorded []v1.ValidatingAdmissionPolicy
	for _, document := range documents[1:] {
		var p v1.ValidatingAdmissionPolicy
		if err := yaml.Unmarshal(document, &p); err != nil {
			t.Fatal(err)
		}
		recorded = append(recorded, p)
		api.must("POST", policies, string(document))
	}
	settle(t, plane)
	for _, want := range recorded {
		var got v1.ValidatingAdmissionPolicy
		answer := api.must("GET", policies+"/"+want.Name, "")
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(answer.Object, &got); err != nil {
			t.Fatal(err)
		}
		if got.Status.TypeChecking == nil {
			t.Errorf("%s: not looked at", want.Name)
			continue
		}
		warnings := got.Status.TypeChecking.ExpressionWarnings
		for i := range warnings {
			warnings[i].Warning = numberedType.ReplaceAllString(warnings[i].Warning, "$1")
		}
		if diff := cmp.Diff(want.Status, got.Status); diff != "" {
			t.Errorf("%s (-real +steer):\n%s", want.Name, diff)
		}
	}
	if writes := settle(t, plane); writes != 0 {
		t.Errorf("%d requests about policies that are known", writes)
	}
	api.must("PATCH", policies+"/right", `spec: {validations: [{expression: "object.nothing == 1"}]}`)
	settle(t, plane)
	var again v1.ValidatingAdmissionPolicy
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(api.must("GET", policies+"/right", "").Object, &again); err != nil {
		t.Fatal(err)
	}
	if again.Status.ObservedGeneration != 2 || len(again.Status.TypeChecking.ExpressionWarnings) != 1 {
		t.Errorf("after a change: %+v", again.Status)
	}
}
