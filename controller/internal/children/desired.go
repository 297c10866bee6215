// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/codec"
)

// AppliedAnnotation says, on a child, of which set it is and what was last applied
// to it: the name of the controller and the set, a hash of the body, and where the
// server keeps something else than it was sent a hash of that.
const AppliedAnnotation = "steer.dev/applied"

// mark is the value of the annotation.
type mark struct {
	set       string
	body      uint64
	deviation uint64 // 0 for none
}

func (m mark) String() string {
	text := fmt.Sprintf("%s/%016x", m.set, m.body)
	if m.deviation != 0 {
		text += fmt.Sprintf("/%016x", m.deviation)
	}
	return text
}

// markOf returns the mark of a child; the zero mark for none.
func markOf(child client.Object) (m mark) {
	parts := strings.Split(child.GetAnnotations()[AppliedAnnotation], "/")
	m.set = parts[0]
	for i, n := range []*uint64{&m.body, &m.deviation} {
		if len(parts) > i+1 {
			*n, _ = strconv.ParseUint(parts[i+1], 16, 64) // one of another writer matches nothing
		}
	}
	return m
}

// put marks a child.
func (m mark) put(child client.Object) {
	annotations := maps.Clone(child.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[AppliedAnnotation] = m.String()
	child.SetAnnotations(annotations)
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
	if body, err = codec.ApplyBody(child, s.kindOf); err != nil {
		return nil, mark{}, err
	}
	hash, err := hashOf(map[string]any{"body": body, "legacy": s.Legacy})
	return body, mark{set: s.FullName, body: hash}, err
}

// storeStringData moves the stringData of a Secret to its data, as the server
// does: stringData cannot be read.
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

// deviationOf is a hash of what an object has otherwise than a body says, 0 when it
// has all of the body.
func deviationOf(obj client.Object, body map[string]any) (uint64, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return 0, err
	}
	places := map[string]any{}
	for k, want := range body {
		switch k {
		case "status", "apiVersion", "kind": // no read shows them in this form
			continue
		}
		if place := deviation(content[k], want); place != nil {
			places[k] = place
		}
	}
	if len(places) == 0 {
		return 0, nil
	}
	return hashOf(places)
}

// deviation returns what is there instead of what is wanted, by place; nil when all
// that is wanted is there. Lists must have the same length: what a server adds to
// the elements does not count, added elements do.
func deviation(have, want any) any {
	places := map[string]any{}
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return instead(have)
		}
		for k, v := range w {
			if place := deviation(h[k], v); place != nil {
				places[k] = place
			}
		}
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return instead(have)
		}
		for i := range w {
			if place := deviation(h[i], w[i]); place != nil {
				places[strconv.Itoa(i)] = place
			}
		}
	default:
		if !equalScalars(have, want) {
			return instead(have)
		}
	}
	if len(places) == 0 {
		return nil
	}
	return places
}

func instead(have any) any { return []any{have} }

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

// kindOf is client.KindOf with the scheme of the set's client.
func (s *Set) kindOf(obj runtime.Object) (schema.GroupVersionKind, error) {
	return client.KindOf(s.Client.Scheme(), obj)
}
