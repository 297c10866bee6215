// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"encoding/json"
	"net/http"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane"
)

// TestPathsThatAreNotServed asks for versions that a group of Kubernetes has lost, and for groups
// that there are not: kube-apiserver 1.37.2 answers the first with a Status, the others as text.
func TestPathsThatAreNotServed(t *testing.T) {
	t.Parallel()
	_, api := planeOf(t, controlplane.Options{ManualControllers: true})
	for _, test := range []struct{ method, path string }{
		{"GET", "/apis/apps/v1beta1/deployments"},
		{"GET", "/apis/apps/v1beta1/namespaces/default/deployments/a"},
		{"POST", "/apis/apps/v1beta1/namespaces/default/deployments"},
		{"OPTIONS", "/apis/apps/v1beta1/deployments"},
		{"GET", "/apis/apps/v1beta1"},
		{"GET", "/apis/apps/v1beta1/"},
		{"GET", "/apis/apps/foo"},
		{"GET", "/apis/apps/v1/foo"},
		{"GET", "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions"},
		{"GET", "/apis/apiextensions.k8s.io/v1beta1"},
		{"GET", "/apis/apiregistration.k8s.io/v1beta1/apiservices"},
		{"GET", "/apis/policy/v1beta1/poddisruptionbudgets"},
		{"GET", "/api/v2"},
		{"GET", "/api/v2/pods"},
	} {
		code, body := api.do(test.method, test.path, "")
		var got metav1.Status
		err := json.Unmarshal(body, &got)
		if code != http.StatusNotFound || err != nil || got.Kind != "Status" || got.Reason != metav1.StatusReasonNotFound || got.Message != "the server could not find the requested resource" {
			t.Errorf("%s %s: %d %s, want a Status", test.method, test.path, code, body)
		}
	}
	for _, path := range []string{"/apis/nogroup", "/apis/nogroup/v1", "/apis/nogroup/v1/foo", "/apis//apps/v1/deployments", "/unknown"} {
		if code, body := api.do("GET", path, ""); code != http.StatusNotFound || string(body) != "404 page not found\n" {
			t.Errorf("GET %s: %d %q, want text", path, code, body)
		}
	}
}
