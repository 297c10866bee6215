// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var columns = []Column{
	{Name: "Replicas", Type: "integer", Path: ".spec.replicas", Description: "how many"},
	{Name: "Colour", Type: "string", Path: ".spec.colour", Priority: 1},
	{Name: "Tags", Type: "string", Path: ".spec.tags[*]"},
	{Name: "When", Type: "date", Path: ".spec.when"},
	{Name: "Ready", Type: "string", Path: `.status.conditions[?(@.type=="Ready")].status`},
	{Name: "Ratio", Type: "number", Path: ".spec.ratio"},
	{Name: "On", Type: "boolean", Path: ".spec.flag"},
	{Name: "Obj", Type: "string", Path: ".spec.obj"},
	{Name: "Label", Type: "string", Path: `.metadata.labels.example\.com/x`},
	{Name: "Age", Type: "date", Path: ".metadata.creationTimestamp"},
}

// TestCustomCells has the cells that kube-apiserver 1.36.3 shows for the same
// objects and columns.
func TestCustomCells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the clock stands at 2000-01-01
		p, err := NewCustom(columns)
		if err != nil {
			t.Fatal(err)
		}
		created := time.Now().Add(-5 * time.Minute).UTC().Format(time.RFC3339)
		for _, test := range []struct {
			doc  string
			want []any
		}{
			{`{"metadata":{"name":"a","creationTimestamp":"` + created + `","labels":{"example.com/x":"l"}},"spec":{"replicas":3,"colour":"red","tags":["x","z"],"when":"1999-01-01T00:00:00Z","ratio":1.5,"flag":true,"obj":{"a":{"b":1}}},
			   "status":{"conditions":[{"type":"Done","status":"False"},{"type":"Ready","status":"True"}]}}`,
				[]any{"a", int64(3), "red", "x", "365d", "True", 1.5, true, `{"a":{"b":1}}`, "l", "5m"}},
			{`{"metadata":{"name":"b"}}`, []any{"b", nil, nil, nil, nil, nil, nil, nil, nil, nil, nil}},
			{`{"metadata":{"name":"c","creationTimestamp":null},"spec":{"replicas":"many","colour":7,"tags":[],"when":"soon","ratio":2,"flag":"yes","obj":null}}`,
				[]any{"c", nil, "7", nil, "<invalid>", nil, float64(2), nil, "<no value>", nil, nil}},
		} {
			obj := &unstructured.Unstructured{}
			if err := json.Unmarshal([]byte(test.doc), &obj.Object); err != nil {
				t.Fatal(err)
			}
			for _, m := range []string{"replicas", "ratio"} { // as the API decoder reads numbers
				if spec, ok := obj.Object["spec"].(map[string]any); ok {
					if f, ok := spec[m].(float64); ok && f == float64(int64(f)) {
						spec[m] = int64(f)
					}
				}
			}
			got, err := p.Cells(obj)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("cells of %s (-want +got):\n%s", obj.GetName(), diff)
			}
		}
	})
}

func TestColumnDefinitions(t *testing.T) {
	t.Parallel()
	p, err := NewCustom(columns[:2])
	if err != nil {
		t.Fatal(err)
	}
	want := []metav1.TableColumnDefinition{
		NameColumn(),
		{Name: "Replicas", Type: "integer", Description: "how many"},
		{Name: "Colour", Type: "string", Description: "Custom resource definition column (in JSONPath format): .spec.colour", Priority: 1},
	}
	if diff := cmp.Diff(want, p.Columns()); diff != "" {
		t.Errorf("columns (-want +got):\n%s", diff)
	}
	if _, err := NewCustom([]Column{{Path: ".spec[", Type: "string"}}); err == nil {
		t.Error("a broken path was accepted")
	}
}

func TestRowsCarryWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"a": "b"}}, Data: map[string]string{"k": "v"}}
	for include, want := range map[metav1.IncludeObjectPolicy]string{
		metav1.IncludeNone:     `null`,
		metav1.IncludeMetadata: `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"c","labels":{"a":"b"}}}`,
		"":                     `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"c","labels":{"a":"b"}}}`,
		metav1.IncludeObject:   `{"metadata":{"name":"c","labels":{"a":"b"}},"data":{"k":"v"}}`,
	} {
		row, err := Row(Default(), obj, include)
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(row.Object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", include, diff)
		}
		if diff := cmp.Diff([]any{"c", "<unknown>"}, row.Cells); diff != "" {
			t.Errorf("cells (-want +got):\n%s", diff)
		}
	}
	if _, err := Row(Default(), obj, "Everything"); err == nil {
		t.Error("an unknown includeObject was accepted")
	}
}

func TestUnstructuredMetadataIsComplete(t *testing.T) {
	t.Parallel()
	now := metav1.Unix(1, 0)
	grace := int64(3)
	full := metav1.ObjectMeta{
		Name: "n", GenerateName: "g", Namespace: "ns", UID: "u", ResourceVersion: "5", Generation: 2, CreationTimestamp: now,
		DeletionTimestamp: &now, DeletionGracePeriodSeconds: &grace, Labels: map[string]string{"a": "b"}, Annotations: map[string]string{"c": "d"},
		OwnerReferences: []metav1.OwnerReference{{Name: "o", UID: "x"}}, Finalizers: []string{"f"},
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m", FieldsType: "FieldsV1"}},
	}
	raw, err := json.Marshal(map[string]any{"metadata": full})
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := json.Unmarshal(raw, &obj.Object); err != nil {
		t.Fatal(err)
	}
	obj.Object["metadata"].(map[string]any)["generation"] = int64(2)
	obj.Object["metadata"].(map[string]any)["deletionGracePeriodSeconds"] = int64(3)
	got, err := json.Marshal(partial(obj).ObjectMeta)
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(full)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}
