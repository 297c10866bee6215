// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fast_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/steer-dev/steer/apiserver/custom/internal/fast"
	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/resource"
)

// seeds are schemas with values of them.
func seeds(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","required":["spec"],"properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","format":"int32","minimum":1,"maximum":9},"ratio":{"type":"number"},"on":{"type":"boolean"},"phase":{"type":"string","enum":["a","b"],"default":"a"},"name":{"type":"string","pattern":"^x","minLength":1,"maxLength":3}}}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"port":{"x-kubernetes-int-or-string":true},"at":{"type":"string","format":"date-time"},"null":{"type":"string","nullable":true},"list":{"type":"array","maxItems":2,"items":{"type":"string"}},"map":{"type":"object","additionalProperties":{"type":"integer"}}}}}}`,
		`{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{"type":"object","x-kubernetes-embedded-resource":true}}}`,
	} {
		for _, value := range []string{
			`{"spec":{"n":9,"ratio":1.5,"on":true,"phase":"a","name":"xyz"}}`, `{"spec":{"n":0,"name":null,"unknown":{}}}`, `{"spec":{"port":80,"at":"2026-01-02T03:04:05Z","null":null,"list":["a"],"map":{"a":1}}}`,
			`{"spec":{"port":"http","list":[1,null],"map":{"a":null}},"status":{}}`, `{"spec":{"apiVersion":"v1","kind":"A","metadata":{}}}`, `{}`,
		} {
			f.Add(schema, value)
		}
	}
}

// parsed returns a schema and a value; false if they are none.
func parsed(text, value string) (*apiextensions.JSONSchemaProps, map[string]any, bool) {
	var external apiextensionsv1.JSONSchemaProps
	var internal apiextensions.JSONSchemaProps
	content := map[string]any{}
	if json.Unmarshal([]byte(text), &external) != nil || utiljson.Unmarshal([]byte(value), &content) != nil || content == nil {
		return nil, nil, false
	}
	if apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&external, &internal, nil) != nil {
		return nil, nil, false
	}
	return &internal, content, true
}

// FuzzSchema: what a schema certainly accepts, the validators of the library accept.
func FuzzSchema(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text, value string) {
		internal, content, ok := parsed(text, value)
		if !ok {
			return
		}
		full, props, err := validation.NewSchemaValidator(internal)
		if err != nil {
			return
		}
		short := fast.New(props)
		accepted := short.Accepts(resource.NewDoc(content))
		if short.AcceptsValue(doc.Of(content)) && !accepted && content["metadata"] == nil { // metadata is not looked into
			t.Errorf("%s accepts %s in one form only", text, value)
		}
		if result := full.Validate(content); accepted && !result.IsValid() {
			t.Errorf("%s accepts %s: %v", text, value, result.Errors)
		}
	})
}

// FuzzDefaulted: pruning and defaulting leave objects that are accepted as they are.
func FuzzDefaulted(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, text, value string) {
		internal, content, ok := parsed(text, value)
		if !ok {
			return
		}
		structural, err := schema.NewStructural(internal)
		if err != nil || !fast.NewDefaulted(structural, true).Accepts(resource.NewDoc(content)) {
			return
		}
		pruned := runtime.DeepCopyJSON(content)
		unknown := pruning.PruneWithOptions(pruned, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
		defaulting.PruneNonNullableNullsWithoutDefaults(pruned, structural)
		defaulting.Default(pruned, structural)
		if !cmp.Equal(pruned, content) || len(unknown) > 0 {
			t.Errorf("%s: %s is pruned to %v (%v)", text, value, pruned, unknown)
		}
	})
}
