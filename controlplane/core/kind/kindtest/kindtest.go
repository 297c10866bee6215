// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kindtest tests the rules of a built-in kind without a server: a table
// changes one valid object, and names the errors, warnings or defaults that follow.
//
//	var widgets = kindtest.Kind{Resources: Resources(), APIVersion: "example.com/v1", Kind: "Widget", Valid: `
//	metadata: {name: w}
//	spec: {size: 1}`}
//
//	widgets.Create(t, []kindtest.Case{
//		{"negative", "spec.size: -1", "spec.size: Invalid value: -1: must be greater than or equal to 0"},
//	})
//
// It runs the strategy of the kind alone: metadata that all kinds share, admission and
// allocation of addresses are tested where they are.
package kindtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Kind is a version of a built-in kind with a valid object.
type Kind struct {
	// Resources hold the kind.
	Resources []*resource.Resource
	// APIVersion and Kind of the objects.
	APIVersion, Kind string
	// Subresource through which updates go; empty: the object itself.
	Subresource string
	// Valid is an object in YAML that every rule admits, without apiVersion and kind.
	Valid string
}

// Case is a row of a table: a name, a change of the valid object, and what is wanted.
//
// The change holds lines "path: value": the path is of member names and indexes of
// lists, separated by dots; the value is YAML, and null removes the member. What is
// wanted are errors or warnings, one to a line, of which "..." at the end leaves out the
// rest; or members of the object in the form of the change.
type Case [3]string

func (c Case) name() string   { return c[0] }
func (c Case) change() string { return c[1] }
func (c Case) want() string   { return c[2] }

// With returns the kind with another valid object.
func (k Kind) With(t testing.TB, change string) Kind {
	t.Helper()
	raw, err := json.Marshal(k.object(t, change))
	if err != nil {
		t.Fatal(err)
	}
	k.Valid = string(raw)
	return k
}

// Create checks the errors of creations. The valid object itself has none.
func (k Kind) Create(t *testing.T, cases []Case) {
	t.Helper()
	k.run(t, "create", append([]Case{{"valid"}}, cases...), func(t *testing.T, c Case) {
		t.Helper()
		obj, strategy := k.prepared(t, k.object(t, c.change()), nil)
		compare(t, c.want(), errorLines(strategy.Validate(t.Context(), obj, nil)))
	})
}

// Update checks the errors of updates of the valid object, through the subresource if
// the kind has one. The update that changes nothing has none.
func (k Kind) Update(t *testing.T, cases []Case) {
	t.Helper()
	k.run(t, "update", append([]Case{{"valid"}}, cases...), func(t *testing.T, c Case) {
		t.Helper()
		old := k.stored(t)
		obj, strategy := k.prepared(t, changed(t, old, c.change()), old)
		compare(t, c.want(), errorLines(strategy.Validate(t.Context(), obj, old)))
	})
}

// Warnings checks the warnings of creations, or of updates through the subresource.
func (k Kind) Warnings(t *testing.T, cases []Case) {
	t.Helper()
	k.run(t, "warnings", cases, func(t *testing.T, c Case) {
		t.Helper()
		obj, old, strategy := k.written(t, c.change())
		compare(t, c.want(), strategy.Warnings(t.Context(), obj, old))
	})
}

// Defaults checks members of the object that is stored for a creation, or for an update
// through the subresource.
func (k Kind) Defaults(t *testing.T, cases []Case) {
	t.Helper()
	k.run(t, "defaults", cases, func(t *testing.T, c Case) {
		t.Helper()
		obj, _, _ := k.written(t, c.change())
		var got []string
		for line := range strings.Lines(c.want()) {
			path, _, _ := strings.Cut(strings.TrimSpace(line), ": ")
			raw, err := json.Marshal(member(plain(t, obj), strings.Split(path, ".")))
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, path+": "+canonical(t, string(raw)))
		}
		want := ""
		for line := range strings.Lines(c.want()) {
			path, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			want += path + ": " + canonical(t, value) + "\n"
		}
		compare(t, want, got)
	})
}

// Row checks the cells of the table, joined by " | "; the times in them are "<unknown>",
// as the objects have none.
func (k Kind) Row(t *testing.T, cases []Case) {
	t.Helper()
	k.run(t, "row", cases, func(t *testing.T, c Case) {
		t.Helper()
		version := k.find(t)
		obj := version.New()
		decode(t, k.object(t, c.change()), obj)
		cells, err := version.Printer.Cells(obj)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, cell := range cells {
			out = append(out, fmt.Sprint(cell))
		}
		compare(t, c.want(), []string{strings.Join(out, " | ")})
	})
}

// run checks each case as a sub-test of its own, named verb/case. A failure names the line of
// the table.
func (k Kind) run(t *testing.T, verb string, cases []Case, check func(t *testing.T, c Case)) {
	t.Helper()
	for _, c := range cases {
		t.Run(verb+"/"+c.name(), func(t *testing.T) {
			t.Helper()
			t.Parallel()
			check(t, c)
		})
	}
}

func (k Kind) find(t testing.TB) *resource.Version {
	t.Helper()
	for _, r := range k.Resources {
		for i := range r.Versions {
			if gvk := r.GroupVersionKind(r.Versions[i].Name); gvk.GroupVersion().String() == k.APIVersion && gvk.Kind == k.Kind {
				return &r.Versions[i]
			}
		}
	}
	t.Fatalf("%s %s is not in the resources", k.APIVersion, k.Kind)
	return nil
}

// strategy of the kind, or of its subresource.
func (k Kind) strategy(t testing.TB, subresource string) resource.Strategy {
	t.Helper()
	version := k.find(t)
	if subresource == "" {
		return version.Strategy
	}
	if s := version.Subresource(subresource); s != nil {
		return s.Strategy
	}
	t.Fatalf("%s has no subresource %s", k.Kind, subresource)
	return nil
}

// object returns the valid object with a change.
func (k Kind) object(t testing.TB, change string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := yaml.Unmarshal([]byte(k.Valid), &o); err != nil {
		t.Fatal(err)
	}
	o["apiVersion"], o["kind"] = k.APIVersion, k.Kind
	return apply(t, o, change)
}

// stored returns the valid object as a creation stores it, with the status that the
// valid object has.
func (k Kind) stored(t testing.TB) resource.Object {
	t.Helper()
	version := k.find(t)
	o := k.object(t, "")
	obj := version.New()
	decode(t, o, obj)
	s := k.strategy(t, "")
	if _, err := s.Default(obj); err != nil {
		t.Fatal(err)
	}
	identify(obj)
	s.Prepare(t.Context(), obj, nil)
	if status := o["status"]; status != nil {
		with := plain(t, obj)
		with["status"] = status
		obj = version.New()
		decode(t, with, obj)
	}
	return obj
}

// written returns a creation, or an update through the subresource, up to validation.
func (k Kind) written(t testing.TB, change string) (obj, old resource.Object, _ resource.Strategy) {
	t.Helper()
	if k.Subresource == "" {
		obj, strategy := k.prepared(t, k.object(t, change), nil)
		return obj, nil, strategy
	}
	old = k.stored(t)
	obj, strategy := k.prepared(t, changed(t, old, change), old)
	return obj, old, strategy
}

func (k Kind) prepared(t testing.TB, o map[string]any, old resource.Object) (resource.Object, resource.Strategy) {
	t.Helper()
	version := k.find(t)
	obj := version.New()
	decode(t, o, obj)
	identify(obj)
	subresource := k.Subresource
	if old == nil {
		subresource = ""
	}
	s := k.strategy(t, subresource)
	if _, err := s.Default(obj); err != nil {
		t.Fatal(err)
	}
	s.Prepare(context.Background(), obj, old)
	return obj, s
}

// identify sets what the server sets in metadata before validation.
func identify(obj resource.Object) { obj.SetUID(types.UID("uid")) }

func changed(t testing.TB, obj resource.Object, change string) map[string]any {
	t.Helper()
	return apply(t, plain(t, obj), change)
}

// apply changes an object by the lines of [Case].
func apply(t testing.TB, o map[string]any, change string) map[string]any {
	t.Helper()
	for line := range strings.Lines(change) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		path, text, ok := strings.Cut(line, ": ")
		if !ok {
			t.Fatalf("change %q has no value", line)
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("change %q: %v", line, err)
		}
		set(t, o, strings.Split(path, "."), value)
	}
	return o
}

// set sets a member, and makes the objects on the way to it.
func set(t testing.TB, in any, path []string, value any) {
	t.Helper()
	switch at := in.(type) {
	case map[string]any:
		switch {
		case len(path) > 1:
			if at[path[0]] == nil {
				at[path[0]] = map[string]any{}
			}
			set(t, at[path[0]], path[1:], value)
		case value == nil:
			delete(at, path[0])
		default:
			at[path[0]] = value
		}
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i >= len(at) {
			t.Fatalf("no element %q in a list of %d", path[0], len(at))
		}
		if len(path) > 1 {
			set(t, at[i], path[1:], value)
		} else {
			at[i] = value
		}
	default:
		t.Fatalf("%v has no member %q", in, path[0])
	}
}

// member returns the value at a path, nil if there is none.
func member(in any, path []string) any {
	for _, name := range path {
		switch at := in.(type) {
		case map[string]any:
			in = at[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(at) {
				return nil
			}
			in = at[i]
		default:
			return nil
		}
	}
	return in
}

func decode(t testing.TB, o map[string]any, into resource.Object) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatal(err)
	}
}

func plain(t testing.TB, obj resource.Object) map[string]any {
	t.Helper()
	raw, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var o map[string]any
	if err := json.Unmarshal(raw, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// canonical returns YAML as JSON with sorted members.
func canonical(t testing.TB, text string) string {
	t.Helper()
	var v any
	if err := yaml.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// errorLines returns the first line of each error: in some the difference follows.
func errorLines(errs field.ErrorList) []string {
	var out []string
	for _, err := range errs {
		first, _, _ := strings.Cut(err.Error(), "\n")
		out = append(out, first)
	}
	return out
}

func compare(t *testing.T, want string, got []string) {
	t.Helper()
	var lines []string
	for line := range strings.Lines(want) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	for i, line := range lines {
		if begin, cut := strings.CutSuffix(line, "..."); cut && i < len(got) && strings.HasPrefix(got[i], begin) {
			lines[i] = got[i]
		}
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
