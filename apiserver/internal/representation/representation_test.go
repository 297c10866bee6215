// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package representation_test

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/negotiation"
	"github.com/steer-dev/steer/apiserver/internal/registry"
	"github.com/steer-dev/steer/apiserver/internal/representation"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// TestRowsConvertAnObjectOnce: the cells and the object beside them come from one conversion.
func TestRowsConvertAnObjectOnce(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	t.Cleanup(func() { _ = store.Close() })
	g := registry.New(registry.Options{Store: store})
	conversions := 0
	served := g.Serve(&resource.Resource{
		Names:    resource.Names{Group: "example.com", Plural: "widgets", Kind: "Widget", ListKind: "WidgetList"},
		Storage:  resource.Storage{Bucket: "example.com/widgets", Version: "v1"},
		Versions: []resource.Version{{Name: "v1"}, {Name: "v2"}},
		Convert: func(_ context.Context, objects []resource.Object, version string) ([]resource.Object, error) {
			conversions += len(objects)
			out := make([]resource.Object, len(objects))
			for i, obj := range objects {
				out[i] = obj.DeepCopyObject().(resource.Object)
				out[i].GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind().GroupKind().WithVersion(version))
			}
			return out, nil
		},
	})
	const before = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"`
	rec, err := store.Commit(t.Context(), storage.Write{
		Key: served.Key("", "a"), Expect: storage.Absent, Value: []byte(before + `","name":"a"}}`), Stamp: len(before),
	})
	if err != nil {
		t.Fatal(err)
	}
	v := &served.Versions[1]
	r := &representation.Representation{Choice: negotiation.Choice{Shape: negotiation.Table, MetaVersion: "v1"}, Served: served, Version: v}
	table, err := representation.NewTables(v, metav1.IncludeObject).Record(t.Context(), g, r, rec)
	if err != nil {
		t.Fatal(err)
	}
	if row := &table.Rows[0]; table.ResourceVersion != "1" || row.Cells[0] != "a" || !strings.Contains(string(row.Object.Raw), `"apiVersion":"example.com/v2"`) {
		t.Errorf("the table is %+v", table)
	}
	if conversions != 1 {
		t.Errorf("%d conversions of one object", conversions)
	}
}
