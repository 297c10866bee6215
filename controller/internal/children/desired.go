// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"hash/fnv"
	"reflect"
)

func hashOf(body map[string]any) (uint64, error) {
	data, err := json.Marshal(body) // maps are sorted
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64(), nil
}

// contains tells that everything in want is in have. Lists must have the same
// length: what a server adds to the elements does not count, added elements do.
func contains(have, want any, root bool) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if root && (k == "status" || k == "apiVersion" || k == "kind") {
				continue
			}
			if !contains(h[k], v, false) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return false
		}
		for i := range w {
			if !contains(h[i], w[i], false) {
				return false
			}
		}
		return true
	}
	return equalScalars(have, want)
}

// equalScalars compares values of which one may come from a Go type and the
// other from JSON.
func equalScalars(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return float64(n.Int()), true
	case n.CanUint():
		return float64(n.Uint()), true
	case n.CanFloat():
		return n.Float(), true
	}
	return 0, false
}
