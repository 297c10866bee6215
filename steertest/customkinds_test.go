// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
)

// structural makes random structural schemas and objects of them.
type structural struct{ *rand.Rand }

// scalar is a schema of a value without parts.
func (r structural) scalar() map[string]any {
	switch r.IntN(6) {
	case 0:
		return map[string]any{"type": "integer", "format": "int64"}
	case 1:
		return map[string]any{"type": "number"}
	case 2:
		return map[string]any{"type": "boolean"}
	case 3:
		return map[string]any{"x-kubernetes-int-or-string": true}
	}
	return map[string]any{"type": "string"}
}

// schema is any schema, with a default here and there.
func (r structural) schema(depth int) map[string]any {
	var s map[string]any
	kind := r.IntN(9)
	if depth == 0 {
		kind = 0
	}
	switch kind {
	case 0, 1:
		s = r.scalar()
	case 2:
		s = map[string]any{"type": "object", "additionalProperties": r.schema(depth - 1)}
	case 3:
		s = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	case 4:
		s = map[string]any{"type": "array", "x-kubernetes-list-type": "atomic", "items": r.schema(depth - 1)}
	case 5:
		s = map[string]any{"type": "array", "x-kubernetes-list-type": "set", "items": map[string]any{"type": "string"}}
	case 6:
		items := r.object(depth - 1)
		items["properties"].(map[string]any)["key"] = map[string]any{"type": "string"}
		items["required"] = []any{"key"}
		s = map[string]any{"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": []any{"key"}, "items": items}
	default:
		s = r.object(depth - 1)
		if r.IntN(4) == 0 {
			s["x-kubernetes-map-type"] = "atomic"
		}
	}
	if r.IntN(3) == 0 {
		s["default"] = r.value(s)
	} else if r.IntN(4) == 0 {
		s["nullable"] = true
	}
	return s
}

func (r structural) object(depth int) map[string]any {
	properties := map[string]any{}
	for i := range 1 + r.IntN(4) {
		properties[fmt.Sprint("f", i)] = r.schema(max(depth, 0))
	}
	return map[string]any{"type": "object", "properties": properties}
}

// value is a valid one; fields are left out at random.
func (r structural) value(s map[string]any) any {
	if s["nullable"] == true && r.IntN(4) == 0 {
		return nil
	}
	if s["x-kubernetes-int-or-string"] == true {
		if r.IntN(2) == 0 {
			return fmt.Sprint(r.IntN(100))
		}
		return int64(r.IntN(100))
	}
	switch s["type"] {
	case "integer":
		return r.Int64() - r.Int64()
	case "number":
		return []any{1.0, 0.1, 1e21, -2.5, int64(7)}[r.IntN(5)]
	case "boolean":
		return r.IntN(2) == 0
	case "string":
		return []any{"", "a", "1", "1000m", "true", "ü\n"}[r.IntN(6)]
	case "array":
		list := []any{}
		for i := range r.IntN(4) {
			v := r.value(s["items"].(map[string]any))
			switch s["x-kubernetes-list-type"] {
			case "set":
				v = fmt.Sprint("e", i)
			case "map":
				v.(map[string]any)["key"] = fmt.Sprint("k", i)
			}
			list = append(list, v)
		}
		return list
	}
	out := map[string]any{}
	if properties, ok := s["properties"].(map[string]any); ok {
		for i := range len(properties) + 1 { // in order, for the sake of the seed
			name := fmt.Sprint("f", i)
			if p, ok := properties[name].(map[string]any); ok && r.IntN(3) > 0 {
				out[name] = r.value(p)
			}
		}
	} else if more, ok := s["additionalProperties"].(map[string]any); ok {
		for i := range r.IntN(3) {
			out[fmt.Sprint("m", i)] = r.value(more)
		}
	} else if r.IntN(3) > 0 {
		unknown := r.object(1)
		out["unknown"] = r.value(unknown)
		out["empty"] = []any{map[string]any{}, []any{}}[r.IntN(2)]
	}
	return out
}

// TestEveryCustomKindIsAppliedOnce declares objects of random kinds, and demands of
// them what TestEveryBuiltInKindIsAppliedOnce does.
func TestEveryCustomKindIsAppliedOnce(t *testing.T) {
	t.Parallel()
	const kinds = 24
	specs, file := make([]map[string]any, kinds), filepath.Join(t.TempDir(), "crds.yaml")
	var manifests []string
	for i := range kinds {
		random := structural{rand.New(rand.NewPCG(15, uint64(i)))}
		specs[i] = random.object(3)
		singular := fmt.Sprint("random", i)
		data, err := json.Marshal(map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
			"metadata": map[string]any{"name": singular + "s.example.com"},
			"spec": map[string]any{
				"group": "example.com", "scope": "Namespaced",
				"names": map[string]any{"kind": fmt.Sprint("Random", i), "plural": singular + "s", "singular": singular, "listKind": fmt.Sprint("Random", i, "List")},
				"versions": []any{map[string]any{
					"name": "v1", "served": true, "storage": true,
					"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "properties": map[string]any{"spec": specs[i]}}},
				}},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		manifests = append(manifests, string(data))
	}
	if err := os.WriteFile(file, []byte(strings.Join(manifests, "\n---\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range kinds {
		t.Run(fmt.Sprint("Random", i), func(t *testing.T) {
			t.Parallel()
			random := structural{rand.New(rand.NewPCG(16, uint64(i)))}
			for n := range 2 {
				child := client.NewUnstructured(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: fmt.Sprint("Random", i)})
				child.SetName("child")
				child.Object["spec"] = random.value(specs[i])
				name := fmt.Sprint("object ", n, " ", child.Object["spec"])
				if !appliedOnce(t, name, child, file) {
					t.Errorf("%s was refused", name)
				}
			}
		})
	}
}
