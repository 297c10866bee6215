// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestEveryFieldIsCompared changes each value of each object in turn, but for those that
// the package says it leaves out.
func TestEveryFieldIsCompared(t *testing.T) {
	t.Parallel()
	w := newWorld(rand.New(rand.NewPCG(2, 0)))
	reference, lives := New(w.run(1)), w.run(2)
	changed := 0
	for _, life := range lives {
		if life.Object.GetKind() == "Event" || life.Deleted != 0 || life.Object.GetKind() == "ReplicaSet" && idle(life.Object) {
			continue
		}
		leaves(life.Object.Object, "", func(path string) {
			if path == ".metadata.name" && life.Object.GetGenerateName() != "" {
				return // it is as good a name
			}
			changed++
			if found := Compare(reference, New(lives), nil); len(found) == 0 {
				t.Errorf("%s %s: %s is changed, and nothing differs", life.Object.GetKind(), life.Object.GetName(), path)
			}
		})
	}
	if changed < 100 {
		t.Errorf("%d values were changed", changed)
	}
	if found := Compare(reference, New(lives), nil); len(found) > 0 {
		t.Errorf("they are not as before: %v", found)
	}
}

// leaves calls try with each value below v changed, and changes it back.
func leaves(v any, path string, try func(path string)) {
	each := func(path string, value any, set func(any)) {
		switch value := value.(type) {
		case string:
			set(value + "x")
		case int64:
			set(value + 1000)
		case bool:
			set(!value)
		default:
			leaves(value, path, try)
			return
		}
		if !leftOut(path) {
			try(path)
		}
		set(value)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			each(path+"."+k, v[k], func(value any) { v[k] = value })
		}
	case []any:
		for i := range v {
			each(fmt.Sprint(path, "[", i, "]"), v[i], func(value any) { v[i] = value })
		}
	}
}

func leftOut(path string) bool {
	server := []string{".apiVersion", ".metadata.uid", ".metadata.resourceVersion", ".metadata.generation", ".metadata.creationTimestamp", ".seconds"}
	return slices.Contains(server, path) || strings.HasPrefix(path, ".metadata.managedFields") ||
		strings.HasSuffix(path, ".containerID") || strings.HasSuffix(path, ".nodePort") || strings.HasSuffix(path, "."+revisionAnnotation) ||
		strings.HasSuffix(path, "."+appliedAnnotation) // hashes of what is compared
}
