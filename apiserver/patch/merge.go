// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/internal/jsontext"
)

// mergePatch is a JSON merge patch: members of the patch replace members of the
// document, null removes, objects merge.
//
// Lists replace lists as a whole. In one respect kube-apiserver differs from RFC 7396:
// members that are null are removed from objects inside a list too, unless the list
// replaces an object.
type mergePatch struct {
	findings
	body map[string]any
}

func parseMerge(body []byte, o Options) (Patch, error) {
	p := &mergePatch{}
	var err error
	if p.body, p.findings, err = decodeObject(body, o.Strict); err != nil {
		return nil, badRequest("error decoding patch: %v", err)
	}
	if p.body == nil {
		return nil, badRequest("Invalid JSON Patch")
	}
	return p, nil
}

// Apply implements [Patch]: members that are objects are merged as text.
func (p *mergePatch) Apply(d *doc.Doc) (*doc.Doc, error) {
	out, rest := d.Copy(), map[string]any{}
	for name, value := range p.body {
		if text, ok := mergeText(d.Member(name), value); ok {
			out.SetMember(name, doc.OfText(text))
		} else {
			rest[name] = value
		}
	}
	if len(rest) == 0 {
		return out, nil
	}
	return decoded(out, slices.Collect(maps.Keys(rest)), namesManagedFields(rest), func(content map[string]any) (map[string]any, error) {
		return merge(content, rest), nil
	})
}

// merge returns doc with the patch applied, sharing the unchanged parts.
func merge(doc, patch map[string]any) map[string]any {
	out := maps.Clone(doc)
	if out == nil {
		out = make(map[string]any, len(patch))
	}
	for key, value := range patch {
		if value == nil {
			delete(out, key)
			continue
		}
		current, isObject := out[key].(map[string]any)
		switch value := value.(type) {
		case map[string]any:
			if isObject {
				out[key] = merge(current, value)
			} else {
				out[key] = withoutNulls(value)
			}
		default:
			if isObject {
				out[key] = runtime.DeepCopyJSONValue(value)
			} else {
				out[key] = withoutNulls(value)
			}
		}
	}
	return out
}

// withoutNulls copies a value and leaves out members of objects that are null.
func withoutNulls(value any) any {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for k, v := range value {
			if v != nil {
				out[k] = withoutNulls(v)
			}
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, v := range value {
			out[i] = withoutNulls(v)
		}
		return out
	default:
		return value
	}
}

// decodeObject decodes a JSON object as Kubernetes does: member names are
// case-sensitive and integers stay integers.
func decodeObject(body []byte, strict bool) (map[string]any, []error, error) {
	out, plain := jsontext.Unmarshal(body)
	if plain {
		return out, nil, nil
	}
	if strict {
		found, err := kjson.UnmarshalStrict(body, &out)
		return out, found, err
	}
	return out, nil, kjson.UnmarshalCaseSensitivePreserveInts(body, &out)
}
