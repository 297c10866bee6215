// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/custom/internal/fast"
	"github.com/steer-dev/steer/apiserver/resource"
)

// TestStrategyLeavesOutWhatNeedsNoLibrary sends random objects through the rules with what is
// certain without the library, and with the library alone.
func TestStrategyLeavesOutWhatNeedsNoLibrary(t *testing.T) {
	t.Parallel()
	rules, valid, refused := cronTabStrategy(t), 0, 0
	for seed := range uint64(600) {
		ways := [2][]outcome{}
		for form := range ways {
			s := *rules
			if seed%3 == 0 {
				s.scale = nil
			}
			r := rand.New(rand.NewPCG(seed, 5))
			if form == 0 {
				s.schema = withoutFastPaths(t, s.schema)
			}
			var old *resource.Doc
			for range 6 {
				obj := randomCronTab(r)
				if old != nil && r.IntN(3) > 0 {
					obj.SetMember("spec", old.Member("spec"))
				}
				before := old
				o := treat(t, &s, obj, before, old != nil && r.IntN(3) == 0)
				ways[form] = append(ways[form], o)
				if len(o.Errors) > 0 {
					refused++
					continue
				}
				valid++
				old = obj.Copy()
			}
		}
		if diff := cmp.Diff(ways[0], ways[1]); diff != "" {
			t.Fatalf("seed %d (-with the library +without):\n%s", seed, diff)
		}
	}
	if valid < 1000 || refused < 500 {
		t.Errorf("%d valid, %d refused: the comparison is not worth much", valid, refused)
	}
}

// withoutFastPaths returns a schema for which everything goes to the library.
func withoutFastPaths(t *testing.T, s *Schema) *Schema {
	t.Helper()
	v, err := s.validators()
	if err != nil {
		t.Fatal(err)
	}
	full := *v
	full.fastObject, full.fastStatus = nil, nil
	out := *s
	out.defaulted = func() *fast.Defaulted { return nil }
	out.validators = func() (*validators, error) { return &full, nil }
	return &out
}

// outcome is all that the rules do to an object.
type outcome struct {
	Unknown, Errors, Warnings []string
	Object                    map[string]any
}

func treat(t *testing.T, s *strategy, obj, old *resource.Doc, status bool) outcome {
	t.Helper()
	ctx := context.Background()
	var rules resource.Strategy = s
	if status {
		rules = statusStrategy{s}
	}
	unknown, err := rules.Default(obj)
	if err != nil {
		t.Fatal(err)
	}
	var before resource.Object
	if old != nil {
		before = old
	}
	rules.Prepare(ctx, obj, before)
	var errs field.ErrorList
	if errs = rules.Validate(ctx, obj, before); len(errs) == 0 {
		errs = nil
	}
	o := outcome{Unknown: unknown, Warnings: rules.Warnings(ctx, obj, before), Object: obj.Content()}
	for _, err := range errs {
		o.Errors = append(o.Errors, err.Error())
	}
	slices.Sort(o.Errors) // those of the schema come in no order
	return o
}

// randomCronTab is mostly valid.
func randomCronTab(r *rand.Rand) *resource.Doc {
	usual := func(usual any, odd ...any) any {
		if r.IntN(8) == 0 {
			return odd[r.IntN(len(odd))]
		}
		return usual
	}
	spec, status := map[string]any{}, map[string]any{}
	set := func(into map[string]any, name string, value any) {
		if r.IntN(4) > 0 {
			into[name] = value
		}
	}
	spec["cronSpec"] = usual("x", "x y", int64(1), nil)
	set(spec, "replicas", usual(int64(1), int64(20), int64(-1), 1.0, 1.5, "1"))
	set(spec, "image", usual("a", nil, ""))
	set(spec, "note", usual(nil, "<b>\n", "é"))
	set(spec, "tags", usual([]any{"a", "b"}, []any{"a", "a"}, []any{int64(1)}, []any{}))
	if r.IntN(6) == 0 {
		spec["colour"] = "red"
	}
	if r.IntN(6) == 0 {
		spec["template"] = map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "pod", "colour": "red"}, "spec": map[string]any{"a": 1.0}}
	}
	set(status, "replicas", usual(int64(1), int64(-1), "1"))
	set(status, "phase", usual("Good", "Odd", nil))
	out := map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": map[string]any{"name": "x", "namespace": "default"},
		"spec": usual(spec, nil, "text", []any{}),
	}
	set(out, "status", status)
	if r.IntN(8) == 0 {
		out["extra"] = int64(1)
	}
	return resource.NewDoc(out)
}
