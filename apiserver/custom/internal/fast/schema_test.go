// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package fast_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/custom/internal/fast"
	"github.com/steer-dev/steer/apiserver/internal/doc"
	"github.com/steer-dev/steer/apiserver/resource"
)

func TestSchemaAcceptsSimpleSchemas(t *testing.T) {
	t.Parallel()
	var schema spec.Schema
	err := json.Unmarshal([]byte(`{"type":"object","required":["spec"],"properties":{"spec":{"type":"object","properties":{
"n":{"type":"integer","format":"int32","minimum":1,"maximum":9},"ratio":{"type":"number"},"on":{"type":"boolean"},"any":{},
"phase":{"type":"string","enum":["a","b"]},"name":{"type":"string","pattern":"^x","minLength":1,"maxLength":3},
"port":{"type":["integer","string"],"anyOf":[{"type":"integer"},{"type":"string"}]},"at":{"type":"string","format":"date-time"},
"null":{"type":"string","nullable":true},"list":{"type":"array","maxItems":2,"items":{"type":"string"}},
"map":{"type":"object","additionalProperties":{"type":"integer"}}}}}}`), &schema)
	if err != nil {
		t.Fatal(err)
	}
	p := fast.New(&schema)
	for value, want := range map[string]bool{
		`{"spec":{"n":9,"ratio":1.5,"on":true,"any":[1,{}],"phase":"a","name":"xyz","port":"http","at":"2026-01-02T03:04:05Z","null":null,"list":["a"],"map":{"a":1}}}`: true,
		`{"spec":{"ratio":1,"port":80},"status":{}}`: true,
		`{}`:                           false,
		`{"spec":{"n":0}}`:             false,
		`{"spec":{"n":10}}`:            false,
		`{"spec":{"n":"1"}}`:           false,
		`{"spec":{"on":1}}`:            false,
		`{"spec":{"phase":"c"}}`:       false,
		`{"spec":{"name":"abc"}}`:      false,
		`{"spec":{"name":"xabc"}}`:     false,
		`{"spec":{"name":null}}`:       false,
		`{"spec":{"port":1.5}}`:        false,
		`{"spec":{"at":"today"}}`:      false,
		`{"spec":{"list":[1]}}`:        false,
		`{"spec":{"list":["","",""]}}`: false,
		`{"spec":{"map":{"a":"b"}}}`:   false,
		`{"spec":[]}`:                  false,
	} {
		content := map[string]any{}
		if err := utiljson.Unmarshal([]byte(value), &content); err != nil {
			t.Fatal(err)
		}
		if got := p.Accepts(resource.NewDoc(content)); got != want {
			t.Errorf("%s: accepted %t, want %t", value, got, want)
		}
	}
}

// TestSchemaNeverAcceptsWhatValidationRefuses compares the two on random
// schemas and values.
func TestSchemaNeverAcceptsWhatValidationRefuses(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	accepted, refused := 0, 0
	for range 6000 {
		schema := randomSchema(r, 3)
		p, full := fast.New(schema), validation.NewSchemaValidatorFromOpenAPI(schema)
		for range 10 {
			value := randomValue(r, 3)
			valid := full.Validate(value).IsValid()
			passes := p.AcceptsValue(doc.Of(value))
			if content, isObject := value.(map[string]any); isObject {
				passes = p.Accepts(resource.NewDoc(content))
			}
			switch {
			case !passes:
				if !valid {
					refused++
				}
			case valid:
				accepted++
			default:
				text, _ := json.Marshal(schema)
				t.Fatalf("schema %s accepts %#v: %v", text, value, full.Validate(value).Errors)
			}
		}
	}
	if accepted < 1000 || refused < 1000 {
		t.Errorf("%d accepted, %d refused: the comparison is not worth much", accepted, refused)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomSchema(r *rand.Rand, depth int) *spec.Schema {
	s := &spec.Schema{}
	s.Nullable = r.IntN(4) == 0
	kinds := []string{"string", "integer", "number", "boolean", "object", "array"}
	switch r.IntN(10) {
	case 0:
	case 1:
		s.Type = spec.StringOrArray{"integer", "string"}
	default:
		s.Type = spec.StringOrArray{pick(r, kinds...)}
	}
	some := func() *int64 { return pick(r, nil, nil, new(int64(r.IntN(3)))) }
	s.MinLength, s.MaxLength, s.MinItems, s.MaxItems, s.MinProperties, s.MaxProperties = some(), some(), some(), some(), some(), some()
	s.Format = pick(r, "", "", "", "int32", "int64", "double", "date-time", "uuid", "unheard-of")
	s.Minimum = pick(r, nil, nil, new(1.0), new(0.5), new(5e9))
	s.Maximum = pick(r, nil, nil, new(3.0), new(2.5), new(5e9))
	s.Pattern = pick(r, "", "", "", "^a")
	if r.IntN(8) == 0 {
		s.Enum = []any{"a", pick[any](r, "b", int64(1), nil)}
	}
	if r.IntN(12) == 0 {
		s.ExclusiveMaximum, s.UniqueItems = true, true
	}
	if depth == 0 {
		return s
	}
	if r.IntN(12) == 0 {
		s.AnyOf = []spec.Schema{*randomSchema(r, 0), *randomSchema(r, 0)}
	}
	if r.IntN(2) == 0 {
		s.Items = &spec.SchemaOrArray{Schema: randomSchema(r, depth-1)}
	}
	for i := range r.IntN(3) {
		if s.Properties == nil {
			s.Properties = map[string]spec.Schema{}
		}
		s.Properties[fmt.Sprint("p", i)] = *randomSchema(r, depth-1)
	}
	s.Required = pick(r, nil, nil, []string{"p0"})
	switch r.IntN(4) {
	case 0:
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: r.IntN(4) > 0, Schema: randomSchema(r, depth-1)}
	case 1:
		s.AdditionalProperties = &spec.SchemaOrBool{Allows: r.IntN(2) == 0}
	}
	return s
}

func randomValue(r *rand.Rand, depth int) any {
	switch r.IntN(9) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return pick(r, int64(0), 1, 2, 3, 1<<31, 1<<60)
	case 3:
		return pick(r, 0.5, 2, 1e18)
	case 4, 5:
		return pick(r, "", "a", "b", "aé", "2026-01-02T03:04:05Z")
	case 6:
		list := []any{}
		for range r.IntN(3) * min(depth, 1) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	}
	members := map[string]any{}
	for i := range r.IntN(4) * min(depth, 1) {
		members[fmt.Sprint("p", i)] = randomValue(r, depth-1)
	}
	return members
}
