// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"encoding/json"
	"net/http"
	"testing"
)

// TestSchemasOfSubresourcesNameTheirKinds: clients find a schema by the kind that it names, also
// those of discovery and of what is only created.
func TestSchemasOfSubresourcesNameTheirKinds(t *testing.T) {
	t.Parallel()
	_, api := newPlane(t)
	answer := api.open(t.Context(), http.MethodGet, "/openapi/v3/api/v1", "")
	defer answer.Body.Close()
	var document struct {
		Paths      map[string]any `json:"paths"`
		Components struct {
			Schemas map[string]struct {
				Kinds []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
			} `json:"schemas"`
		} `json:"components"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&document); err != nil {
		t.Fatalf("%s: %v", answer.Status, err)
	}
	for name, want := range map[string]struct{ Group, Version, Kind string }{
		"io.k8s.api.core.v1.Binding":                           {"", "v1", "Binding"},
		"io.k8s.api.policy.v1.Eviction":                        {"policy", "v1", "Eviction"},
		"io.k8s.api.autoscaling.v1.Scale":                      {"autoscaling", "v1", "Scale"},
		"io.k8s.api.authentication.v1.TokenRequest":            {"authentication.k8s.io", "v1", "TokenRequest"},
		"io.k8s.apimachinery.pkg.apis.meta.v1.APIResourceList": {"", "v1", "APIResourceList"},
		"io.k8s.api.core.v1.Pod":                               {"", "v1", "Pod"},
	} {
		if got := document.Components.Schemas[name].Kinds; len(got) != 1 || got[0] != want {
			t.Errorf("%s names %v, want %v", name, got, want)
		}
	}
	if document.Paths["/api/v1/"] == nil {
		t.Error("the path of the group version itself is not there")
	}
}
