// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fast_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/apiserver/custom/internal/fast"
	"github.com/steer-dev/steer/apiserver/resource"
)

// TestDefaultLeavesDefaultedObjectsUnchanged compares the fast path with pruning on random
// schemas and values.
func TestDefaultLeavesDefaultedObjectsUnchanged(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	compared, left := 0, 0
	for range 4000 {
		structural := randomStructural(r, 3)
		short := fast.NewDefaulted(structural, true)
		for range 10 {
			content := map[string]any{"apiVersion": "v1", "kind": "A", "metadata": map[string]any{"name": "x"}}
			for range r.IntN(4) {
				content[fmt.Sprint("p", r.IntN(3))] = randomContent(r, 3)
			}
			pruned := runtime.DeepCopyJSON(content)
			unknown := pruning.PruneWithOptions(pruned, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
			defaulting.PruneNonNullableNullsWithoutDefaults(pruned, structural)
			defaulting.Default(pruned, structural)
			same := cmp.Equal(pruned, content) && len(unknown) == 0
			accepted := short.Accepts(resource.NewDoc(content))
			switch {
			case !accepted:
				compared++
			case same:
				left++
			default:
				text, _ := json.Marshal(content)
				t.Fatalf("%#v: %s is pruned to %v (%v)", structural, text, pruned, unknown)
			}
		}
	}
	if compared < 1000 || left < 1000 {
		t.Errorf("compared %d objects that change and %d that do not, want many of each", compared, left)
	}
}

func randomStructural(r *rand.Rand, depth int) *schema.Structural {
	s := &schema.Structural{}
	s.Nullable = r.IntN(4) == 0
	if r.IntN(6) == 0 {
		s.Default.Object = "d"
	}
	s.XPreserveUnknownFields = r.IntN(5) == 0
	s.XEmbeddedResource = r.IntN(12) == 0
	if depth == 0 {
		return s
	}
	if r.IntN(3) > 0 {
		s.Properties = map[string]schema.Structural{}
		for range 1 + r.IntN(3) {
			s.Properties[fmt.Sprint("p", r.IntN(3))] = *randomStructural(r, depth-1)
		}
	}
	if r.IntN(4) == 0 {
		s.AdditionalProperties = &schema.StructuralOrBool{Bool: true}
		if r.IntN(3) > 0 {
			s.AdditionalProperties.Structural = randomStructural(r, depth-1)
		}
	}
	if r.IntN(2) == 0 {
		s.Items = randomStructural(r, depth-1)
	}
	return s
}

func randomContent(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case n == 0:
		return nil
	case n < 4 || depth == 0:
		return []any{"a", int64(1), true, 1.5}[r.IntN(4)]
	case n < 6:
		out := []any{}
		for range r.IntN(3) {
			out = append(out, randomContent(r, depth-1))
		}
		return out
	default:
		out := map[string]any{}
		for range r.IntN(3) {
			out[fmt.Sprint("p", r.IntN(3))] = randomContent(r, depth-1)
		}
		return out
	}
}
