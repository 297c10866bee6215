// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/manifest"
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
	local := newLocalWebhooks(server.Listener.Addr().String())
	plane, stop, err := StartPlane(t.Context(), controlplane.Options{Webhooks: webhookclient.Options{Resolve: local.resolve}})
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
	now, later := local.divide(nil, objects)
	if len(now) != 1 || len(later) != 1 {
		t.Fatalf("%d objects come before the operator, and %d after", len(now), len(later))
	}
	applied := make(chan error, 1)
	go func() { applied <- local.applyOnceServed(t.Context(), c, later, io.Discard) }()
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

func TestDevGivesCommandsACertificateWhereControllerRuntimeLooks(t *testing.T) {
	t.Parallel()
	env, err := environment(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var temporary string
	for _, variable := range env {
		if dir, ok := strings.CutPrefix(variable, "TMPDIR="); ok {
			temporary = dir
		}
	}
	dir := filepath.Join(temporary, "k8s-webhook-server", "serving-certs")
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	bundle, err := os.ReadFile(filepath.Join(dir, "ca.crt"))
	if err != nil || !roots.AppendCertsFromPEM(bundle) {
		t.Fatal(err)
	}
	for _, name := range []string{"localhost", "127.0.0.1"} {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, DNSName: name, CurrentTime: time.Now()}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDevFindsWhatAProjectOfKubebuilderInstalls(t *testing.T) {
	t.Parallel()
	const website = "../../testdata/website"
	k, err := readKustomized(website)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(k.manifests, " "), website+"/config/crd/bases "+website+"/config/webhook/manifests.yaml"; filepath.ToSlash(got) != want {
		t.Errorf("manifests: %s, want %s", got, want)
	}
	if len(k.conversions) != 1 || k.conversions[0].GetName() != "websites.apps.example.com" {
		t.Errorf("conversions: %v", k.conversions)
	}
	if k, err := readKustomized(t.TempDir()); err != nil || k.manifests != nil || k.conversions != nil {
		t.Errorf("a folder that is no project: %v, %v", k, err)
	}
}

func TestDevReadsThePatchesThatTheKustomizationNames(t *testing.T) {
	t.Parallel()
	const patch = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: NAME.example.com, annotations: {a: b}}\nspec: SPEC\n"
	conversion := "{conversion: {strategy: Webhook}, group: x}"
	for name, c := range map[string]struct {
		kustomization string
		want          int
	}{
		"none":          {"resources: []", 0},
		"commented out": {"patches:\n# - path: patches/one.yaml\n", 0},
		"patches":       {"patches:\n- path: patches/one.yaml\n- path: patches/labels.yaml\n- patch: '[]'\n", 1},
		"older":         {"patchesStrategicMerge:\n- patches/one.yaml\n", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for file, text := range map[string]string{
				"PROJECT": "version: \"3\"\n", "config/crd/kustomization.yaml": c.kustomization,
				"config/crd/patches/one.yaml":    strings.NewReplacer("NAME", "one", "SPEC", conversion).Replace(patch),
				"config/crd/patches/labels.yaml": strings.NewReplacer("NAME", "one", "SPEC", "{}").Replace(patch),
			} {
				file = filepath.Join(dir, filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			k, err := readKustomized(dir)
			if err != nil || len(k.conversions) != c.want {
				t.Fatalf("%d conversions, want %d; %v", len(k.conversions), c.want, err)
			}
			for _, o := range k.conversions {
				spec := o.Object["spec"].(map[string]any)
				if len(spec) != 1 || spec["conversion"] == nil || len(o.GetAnnotations()) > 0 {
					t.Errorf("more than the conversion is patched: %v", o.Object)
				}
			}
		})
	}
}

func TestWebhooksOfAnOperatorAtABreakpointGetTheLongestTime(t *testing.T) {
	t.Parallel()
	hooks := map[string]any{"webhooks": []any{map[string]any{"name": "a", "timeoutSeconds": int64(5)}, map[string]any{"name": "b"}}}
	service := map[string]any{"kind": "Service"}
	bePatient([]manifest.Object{{Unstructured: &unstructured.Unstructured{Object: hooks}}, {Unstructured: &unstructured.Unstructured{Object: service}}})
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
