// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
	"github.com/steer-dev/steer/cmd/steer/internal/dev"
	"github.com/steer-dev/steer/cmd/steer/internal/dev/webhooks"
	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/webhookclient"
)

func TestDevAppliesWebhookConfigurationsOnceTheyAreServed(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			t.Errorf("read a review: %v", err)
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "not today"}}
		if err := json.NewEncoder(w).Encode(review); err != nil {
			t.Errorf("answer a review: %v", err)
		}
	}))
	t.Cleanup(server.Close)
	local := webhooks.New(server.Listener.Addr().String())
	plane, stop, err := dev.StartPlane(t.Context(), controlplane.Options{Webhooks: webhookclient.Options{Resolve: local.Resolve}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stop(); err != nil {
			t.Error(err)
		}
	})
	c, err := client.New(plane.RESTConfig(), client.Options{FieldOwner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifest.Parse("test", []byte(`
apiVersion: v1
kind: ConfigMap
metadata: {name: refused, namespace: default}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: refuse}
webhooks:
- name: refuse.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig: {service: {namespace: operators, name: hook}}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
`))
	if err != nil {
		t.Fatal(err)
	}
	now, later := local.Divide(nil, objects)
	if len(now) != 1 || len(later) != 1 {
		t.Fatalf("%d objects come before the operator, and %d after", len(now), len(later))
	}
	applied := make(chan error, 1)
	go func() { applied <- local.ApplyOnceServed(t.Context(), c, later, io.Discard) }()
	if err := manifest.Apply(t.Context(), c, "", now); err != nil {
		t.Errorf("a webhook is called that is not served: %v", err)
	}
	server.StartTLS()
	if err := <-applied; err != nil {
		t.Fatal(err)
	}
	// There is no caBundle, and the certificate is not one of the Service.
	now[0].SetName("another")
	if err := manifest.Apply(t.Context(), c, "", now); err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("got %v, want a denial", err)
	}
}

func TestWebhooksOfAnOperatorAtABreakpointGetTheLongestTime(t *testing.T) {
	t.Parallel()
	hooks := map[string]any{"webhooks": []any{map[string]any{"name": "a", "timeoutSeconds": int64(5)}, map[string]any{"name": "b"}}}
	service := map[string]any{"kind": "Service"}
	webhooks.BePatient([]manifest.Object{{Unstructured: &unstructured.Unstructured{Object: hooks}}, {Unstructured: &unstructured.Unstructured{Object: service}}})
	want := map[string]any{"webhooks": []any{
		map[string]any{"name": "a", "timeoutSeconds": int64(30)}, map[string]any{"name": "b", "timeoutSeconds": int64(30)},
	}}
	if diff := cmp.Diff(want, hooks); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"kind": "Service"}, service); diff != "" {
		t.Errorf("another object (-want +got):\n%s", diff)
	}
}
