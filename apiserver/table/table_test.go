// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package table

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
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

// TestCustomCells compares with the cells of kube-apiserver for the same objects
// and columns.
func TestCustomCells(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // the fake clock is at 2000-01-01
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
			var content map[string]any
			if err := json.Unmarshal([]byte(test.doc), &content); err != nil {
				t.Fatal(err)
			}
			for _, m := range []string{"replicas", "ratio"} { // as the API decoder reads numbers
				if spec, ok := content["spec"].(map[string]any); ok {
					if f, ok := spec[m].(float64); ok && f == float64(int64(f)) {
						spec[m] = int64(f)
					}
				}
			}
			obj := resource.NewDoc(content)
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
	p, err = NewCustom([]Column{columns[0], {Name: "Broken", Path: ".spec[", Type: "string"}, columns[1]})
	if err == nil || !strings.Contains(err.Error(), "Broken") {
		t.Errorf("a broken path: %v", err)
	}
	if diff := cmp.Diff(want[:2], p.Columns()); diff != "" {
		t.Errorf("columns before the broken one (-want +got):\n%s", diff)
	}
}

func TestRowsAreMadeAtTheSameTime(t *testing.T) {
	t.Parallel()
	p, err := NewCustom(columns)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range int64(4) {
		all.Go(func() {
			for range 50 {
				cells, err := p.Cells(resource.NewDoc(map[string]any{"spec": map[string]any{"replicas": i, "tags": []any{i}}}))
				if err != nil || cells[1] != i || cells[3] != fmt.Sprint(i) {
					t.Errorf("cells of %d: %v, %v", i, cells, err)
				}
			}
		})
	}
	all.Wait()
}
