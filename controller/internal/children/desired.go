// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/steer-dev/steer/client"
)

// AppliedAnnotation says, on a child, of which set it is and what was last applied
// to it: the name of the controller, of the set, and a hash.
const AppliedAnnotation = "steer.dev/applied"

// mark is the value of the annotation.
type mark struct {
	set  string
	hash uint64
}

func (m mark) String() string { return fmt.Sprintf("%s/%016x", m.set, m.hash) }

// setOf returns the name of the set that a child is marked with, "" for none.
func setOf(child client.Object) string {
	set, _, _ := strings.Cut(child.GetAnnotations()[AppliedAnnotation], "/")
	return set
}

// desire is what is to be applied: the body without the mark, and the mark.
func (s *Set) desire(ref Ref, child client.Object) (body map[string]any, m mark, err error) {
	if annotations := child.GetAnnotations(); annotations[AppliedAnnotation] != "" {
		annotations = maps.Clone(annotations) // the object was applied before
		delete(annotations, AppliedAnnotation)
		child.SetAnnotations(annotations)
	}
	if ref.GVK == corev1.SchemeGroupVersion.WithKind("Secret") {
		storeStringData(child)
	}
	if body, err = client.ApplyBody(s.Client.Scheme(), child); err != nil {
		return nil, mark{}, err
	}
	hash, err := hashOf(map[string]any{"body": body, "legacy": s.Legacy})
	return body, mark{s.FullName, hash}, err
}

// storeStringData moves the stringData of a Secret to its data, as the server
// does: nobody can read it where it was written.
func storeStringData(secret client.Object) {
	switch s := secret.(type) {
	case *corev1.Secret:
		if len(s.StringData) == 0 {
			return
		}
		data := maps.Clone(s.Data)
		if data == nil {
			data = map[string][]byte{}
		}
		for k, v := range s.StringData {
			data[k] = []byte(v)
		}
		s.Data, s.StringData = data, nil
	case runtime.Unstructured:
		content := s.UnstructuredContent()
		text, ok := content["stringData"].(map[string]any)
		if !ok {
			return
		}
		content = maps.Clone(content)
		delete(content, "stringData")
		was, _ := content["data"].(map[string]any)
		data := maps.Clone(was)
		if data == nil {
			data = map[string]any{}
		}
		for k, v := range text {
			data[k] = []byte(fmt.Sprint(v))
		}
		encoded, err := json.Marshal(data) // bytes become base64
		if err != nil || json.Unmarshal(encoded, &data) != nil {
			return
		}
		content["data"] = data
		s.SetUnstructuredContent(content)
	}
}

func hashOf(value any) (uint64, error) {
	data, err := json.Marshal(value) // maps are sorted
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64(), nil
}

// hidden are the fields of a body that no read shows in this form.
func hidden(field string) bool { return field == "status" || field == "apiVersion" || field == "kind" }

// contains reports whether everything in want is in have. Lists must have the
// same length: what a server adds to the elements does not count, added elements
// do.
func contains(have, want any, root bool) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if root && hidden(k) {
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

// stateOf is a hash of what an object has where a body says something: lists and
// scalars as they are, maps by the keys of the body.
func stateOf(have, body map[string]any) (uint64, error) { return hashOf(project(have, body, true)) }

func project(have any, want any, root bool) any {
	h, ok1 := have.(map[string]any)
	w, ok2 := want.(map[string]any)
	if !ok1 || !ok2 {
		return have
	}
	out := map[string]any{}
	for k, v := range w {
		if root && hidden(k) {
			continue
		}
		out[k] = project(h[k], v, false)
	}
	return out
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
