// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane"
)

// looking is an admission that looks into custom resources, and may change them.
type looking struct {
	t       *testing.T
	changes bool
}

func (l looking) Mutates(*resource.AdmissionRequest) bool { return l.changes }

func (l looking) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	d, ok := r.Object.(*resource.Doc)
	if ok && l.changes {
		content := d.Content("spec")
		err := unstructured.SetNestedField(content, "changed", "spec", "image")
		d.SetContent(content, "spec")
		return err
	}
	return l.Validate(ctx, r)
}

func (l looking) Validate(_ context.Context, r *resource.AdmissionRequest) error {
	for _, obj := range []resource.Object{r.Object, r.Old} {
		if d, ok := obj.(*resource.Doc); ok && d != nil {
			if _, found, err := unstructured.NestedInt64(d.Content(), "spec", "replicas"); !found || err != nil {
				l.t.Errorf("%s: an admission cannot look into %v: %v", r.Verb, d.Content(), err)
			}
		}
	}
	return nil
}

func TestAdmissionReadsCustomResources(t *testing.T) {
	t.Parallel()
	const items = "/apis/bench.example.com/v1/namespaces/default/items"
	for _, changes := range []bool{false, true} {
		plane, err := controlplane.New(controlplane.Options{ManualControllers: true, Admission: looking{t, changes}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := plane.Stop(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		client := &http.Client{Transport: plane.RESTConfig().Transport, Timeout: time.Minute}
		send := func(method, path, kind, body, want string) {
			t.Helper()
			request, err := http.NewRequestWithContext(t.Context(), method, plane.RESTConfig().Host+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Content-Type", kind)
			response, err := client.Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			if err != nil || response.StatusCode >= 300 || !strings.Contains(string(text), want) {
				t.Errorf("%s %s: %s: %s, %v; want %s", method, path, response.Status, text, err, want)
			}
		}
		const begin = `{"apiVersion":"bench.example.com/v1","kind":"Item","metadata":`
		image := `"image":"sent"`
		if changes {
			image = `"image":"changed"`
		}
		send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", benchmarkDefinition, "items")
		send("POST", items, "application/json", begin+`{"name":"a"},"spec":{"replicas":1,"image":"sent"}}`, image)
		send("POST", items, "application/json", begin+`{"generateName":"a-"},"spec":{"replicas":1,"image":"sent"}}`, image)
		send("PATCH", items+"/a", "application/merge-patch+json", `{"spec":{"replicas":3}}`, image)
		send("PATCH", items+"/a", "application/json-patch+json", `[{"op":"replace","path":"/spec/replicas","value":4}]`, `"replicas":4`)
		send("PATCH", items+"/a/status", "application/merge-patch+json", `{"status":{"ready":1}}`, `"ready":1`)
		send("PATCH", items+"/a?fieldManager=m&force=true", "application/apply-patch+yaml", begin+`{"name":"a"},"spec":{"replicas":5}}`, `"replicas":5`)
		send("DELETE", items+"/a", "application/json", ``, "")
	}
}
