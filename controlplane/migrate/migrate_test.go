// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/steer-dev/steer/controlplane"
	"github.com/steer-dev/steer/controlplane/migrate"
	"github.com/steer-dev/steer/storage"
)

// stored returns an object as kube-apiserver stores built-in kinds.
func stored(t *testing.T, apiVersion, kind string, obj interface{ Marshal() ([]byte, error) }) []byte {
	t.Helper()
	raw, err := obj.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	envelope, err := (&runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: apiVersion, Kind: kind}, Raw: raw}).Marshal()
	if err != nil {
		t.Fatal(err)
	}
	return append([]byte("k8s\x00"), envelope...)
}

const importedDefinition = `{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1beta1",
	"metadata":{"name":"widgets.example.com","uid":"u"},
	"spec":{"group":"example.com","version":"v1","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"scope":"Namespaced",
		"validation":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer","default":3}}}}}},
		"versions":[{"name":"v1","served":true,"storage":true}],"preserveUnknownFields":false},
	"status":{"conditions":[{"type":"NamesAccepted","status":"True"},{"type":"Established","status":"True"}],
		"acceptedNames":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList"},"storedVersions":["v1"]}}`

func TestDataOfKubeAPIServerIsTakenOver(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default", UID: "pod", Finalizers: []string{"a/b"}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}}
	values := map[string][]byte{
		"pods/default/web":     stored(t, "v1", "Pod", pod),
		"minions/one":          stored(t, "v1", "Node", node),
		"configmaps/default/a": []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a","namespace":"default"},"data":{"k":"v"}}` + "\n"),
		"apiextensions.k8s.io/customresourcedefinitions/widgets.example.com": []byte(importedDefinition),
		"example.com/widgets/default/w":                                      []byte(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","namespace":"default","generation":4},"spec":{}}`),

		"masterleases/10.0.0.1":           stored(t, "v1", "Endpoints", &corev1.Endpoints{}),
		"ranges/servicenodeports":         stored(t, "v1", "RangeAllocation", &corev1.RangeAllocation{}),
		"secrets/default/s":               []byte("k8s:enc:aescbc:v1:key:..."),
		"configmaps/default/other":        stored(t, "v1", "ConfigMap", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "x", Namespace: "default"}}),
		"pods/default/damaged":            stored(t, "v1", "Pod", pod)[:30],
		"pods/default/text":               []byte("text"),
		"example.org/things/default/t":    []byte(`{"apiVersion":"example.org/v1","kind":"Thing","metadata":{"name":"t","namespace":"default"}}`),
		"leasecandidates/default/unknown": stored(t, "coordination.k8s.io/v1beta1", "LeaseCandidate", &corev1.ConfigMap{}),
	}
	source := migrate.Source{Revision: 500, Keys: func(yield func(migrate.Key, error) bool) {
		for i, path := range slices.Sorted(maps.Keys(values)) {
			at := storage.Revision(100 + i)
			if !yield(migrate.Key{Path: path, Value: values[path], Created: at - 50, Modified: at}, nil) {
				return
			}
		}
	}}
	var snapshot bytes.Buffer
	report, err := migrate.Snapshot(t.Context(), source, &snapshot)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, l := range report.Left {
		left = append(left, fmt.Sprint(l.Path, ": ", l.Err))
	}
	want := map[string]string{
		"masterleases/10.0.0.1": "address", "ranges/servicenodeports": "counts", "secrets/default/s": "encrypted", "configmaps/default/other": "configmaps/default/x",
		"pods/default/damaged": "damaged", "pods/default/text": "neither", "example.org/things/default/t": "no CustomResourceDefinition", "leasecandidates/default/unknown": "LeaseCandidate",
	}
	if len(left) != len(want) {
		t.Errorf("left: %s", strings.Join(left, "\n"))
	}
	for path, reason := range want {
		if !slices.ContainsFunc(left, func(l string) bool { return strings.HasPrefix(l, path+": ") && strings.Contains(l, reason) }) {
			t.Errorf("%s was not left because of %q: %s", path, reason, strings.Join(left, "\n"))
		}
	}
	if len(report.Taken) != 5 || report.Taken["nodes"] != 1 || report.Taken["example.com/widgets"] != 1 {
		t.Errorf("taken: %v", report.Taken)
	}

	dir := t.TempDir()
	if err := controlplane.Restore(dir, &snapshot); err != nil {
		t.Fatal(err)
	}
	plane, err := controlplane.New(controlplane.Options{DataDir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop(t.Context()) })
	client, err := rest.HTTPClientFor(plane.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for path, parts := range map[string][]string{
		"/api/v1/namespaces/default/pods/web":                          {`"uid":"pod"`, `"resourceVersion":"110"`, `"phase":"Running"`, `"finalizers":["a/b"]`},
		"/api/v1/nodes/one":                                            {`"name":"one"`},
		"/api/v1/namespaces/default/configmaps/a":                      {`"data":{"k":"v"}`},
		"/apis/example.com/v1/namespaces/default/widgets/w":            {`"generation":4`, `"spec":{"size":3}`},
		"/apis/example.com/v1/widgets":                                 {`"spec":{"size":3}`},
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions":      {`"resourceVersion":"501"`, `"default":3`, `"uid":"u"`},
		"/api/v1/namespaces/default/pods?fieldSelector=status.phase=A": {`"items":[]`},
	} {
		response, err := client.Get(plane.RESTConfig().Host + path)
		if err != nil {
			t.Fatal(err)
		}
		var body bytes.Buffer
		_, _ = body.ReadFrom(response.Body)
		_ = response.Body.Close()
		for _, part := range parts {
			if !strings.Contains(body.String(), part) {
				t.Errorf("%s has no %s: %s", path, part, body.String())
			}
		}
	}
}
