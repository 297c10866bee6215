// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/resource"
)

// cronTab is the version of a definition with one of everything.
const cronTab = `
name: v1
served: true
storage: true
subresources:
  status: {}
  scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}
schema:
  openAPIV3Schema:
    type: object
    properties:
      spec:
        type: object
        required: [cronSpec]
        x-kubernetes-validations:
        - rule: "self.replicas < 10"
          message: too many
        properties:
          cronSpec: {type: string, pattern: '^\S+$'}
          replicas: {type: integer, default: 1}
          note: {type: string, nullable: true}
          image: {type: string, default: busybox}
          tags: {type: array, x-kubernetes-list-type: set, items: {type: string}}
          template: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}
      status:
        type: object
        properties:
          replicas: {type: integer}
          phase: {type: string, enum: [Good, Bad]}
`

func cronTabStrategy(t *testing.T) *strategy {
	t.Helper()
	var v v1.CustomResourceDefinitionVersion
	if err := yaml.UnmarshalStrict([]byte(cronTab), &v); err != nil {
		t.Fatal(err)
	}
	s, err := NewSchemas().Of(&v)
	if err != nil {
		t.Fatal(err)
	}
	out := &strategy{schema: s, hasStatus: true, scale: newScale(s, v.Subresources.Scale)}
	out.kind.Group, out.kind.Version, out.kind.Kind = "stable.example.com", "v1", "CronTab"
	return out
}

func object(t *testing.T, text string) *resource.Doc {
	t.Helper()
	out := &resource.Doc{}
	content, err := yaml.YAMLToJSON([]byte("apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata: {name: x, namespace: default}\n" + text))
	if err != nil {
		t.Fatal(err)
	}
	if err := out.UnmarshalJSON(content); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRulesEndAtTheirCostLimit evaluates a rule that no definition may have, because
// its estimated cost is too high: a thousand million steps.
func TestRulesEndAtTheirCostLimit(t *testing.T) {
	t.Parallel()
	const costly = `
name: v1
served: true
storage: true
schema:
  openAPIV3Schema:
    type: object
    properties:
      spec:
        type: object
        properties:
          numbers: {type: array, items: {type: integer}}
        x-kubernetes-validations:
        - rule: self.numbers.all(x, self.numbers.all(y, self.numbers.all(z, x + y + z >= 0)))
`
	var v v1.CustomResourceDefinitionVersion
	if err := yaml.UnmarshalStrict([]byte(costly), &v); err != nil {
		t.Fatal(err)
	}
	schema, err := NewSchemas().Of(&v)
	if err != nil {
		t.Fatal(err)
	}
	s := &strategy{schema: schema}
	s.kind.Group, s.kind.Version, s.kind.Kind = "stable.example.com", "v1", "CronTab"
	errs := s.Validate(t.Context(), object(t, "spec: {numbers: ["+strings.Repeat("1, ", 999)+"1]}"), nil)
	if len(errs) != 1 || !strings.Contains(errs[0].Error(), "call cost exceeds limit") {
		t.Errorf("errors %v, want that the cost exceeds the limit", errs)
	}
}

func TestStrategySetsDefaultsAndPrunes(t *testing.T) {
	t.Parallel()
	s := cronTabStrategy(t)
	obj := object(t, `
spec:
  cronSpec: x
  note: null
  image: null
  colour: red
  template: {apiVersion: v1, kind: Pod, metadata: {name: pod, colour: red}, spec: {any: thing}}
extra: 1
`)
	unknown, err := s.Default(obj)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"extra", "spec.colour", "spec.template.metadata.colour"}, unknown); diff != "" {
		t.Errorf("unknown fields (-want +got):\n%s", diff)
	}
	want := map[string]any{
		"cronSpec": "x", "note": nil, "image": "busybox", "replicas": int64(1),
		"template": map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "pod"}, "spec": map[string]any{"any": "thing"}},
	}
	if diff := cmp.Diff(want, obj.Content()["spec"]); diff != "" {
		t.Errorf("spec (-want +got):\n%s", diff)
	}
}

func TestStrategySeparatesStatus(t *testing.T) {
	t.Parallel()
	s, ctx := cronTabStrategy(t), context.Background()
	obj := object(t, "spec: {cronSpec: x}\nstatus: {phase: Good}")
	s.Prepare(ctx, obj, nil)
	if obj.Content()["status"] != nil || obj.GetGeneration() != 1 {
		t.Errorf("creation: status %v, generation %d", obj.Content()["status"], obj.GetGeneration())
	}

	stored := object(t, "spec: {cronSpec: x}\nstatus: {phase: Good}")
	stored.SetGeneration(3)
	same := object(t, "spec: {cronSpec: x}\nstatus: {phase: Bad}")
	same.SetLabels(map[string]string{"a": "b"})
	s.Prepare(ctx, same, stored)
	if diff := cmp.Diff(stored.Content()["status"], same.Content()["status"]); diff != "" || same.GetGeneration() != 3 {
		t.Errorf("update of labels: generation %d, status (-want +got):\n%s", same.GetGeneration(), diff)
	}
	changed := object(t, "spec: {cronSpec: y}")
	s.Prepare(ctx, changed, stored)
	if changed.GetGeneration() != 4 || changed.Content()["status"] == nil {
		t.Errorf("update of spec: generation %d, status %v", changed.GetGeneration(), changed.Content()["status"])
	}

	status := object(t, "spec: {cronSpec: z}\nstatus: {phase: Bad}")
	statusStrategy{s}.Prepare(ctx, status, stored)
	want := object(t, "spec: {cronSpec: x}\nstatus: {phase: Bad}")
	want.SetGeneration(3)
	if diff := cmp.Diff(want.Content(), status.Content()); diff != "" {
		t.Errorf("status update (-want +got):\n%s", diff)
	}
}

func TestStrategyValidatesObjects(t *testing.T) {
	t.Parallel()
	s := cronTabStrategy(t)
	for _, test := range []struct {
		name, old, obj string
		status         bool
		want           []string
	}{
		{name: "good", obj: "spec: {cronSpec: x, replicas: 1}"},
		{name: "required field and rules", obj: "spec: {replicas: 20}", want: []string{
			"spec.cronSpec: Required value",
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		}},
		{name: "rule", obj: "spec: {cronSpec: x, replicas: 20}", want: []string{"spec: Invalid value: too many"}},
		{name: "pattern", obj: "spec: {cronSpec: 'x y', replicas: 1}", want: []string{`spec.cronSpec: Invalid value: "x y": spec.cronSpec in body should match '^\S+$'`}},
		{name: "set", obj: "spec: {cronSpec: x, replicas: 1, tags: [a, a]}", want: []string{`spec.tags[1]: Duplicate value: "a"`}},
		{name: "negative replicas", obj: "spec: {cronSpec: x, replicas: -1}", want: []string{".spec.replicas: Invalid value: -1: should be a non-negative integer"}},
		{name: "unchanged wrongs are forgiven", old: "spec: {cronSpec: 'x y', replicas: 1, tags: [a, a]}", obj: "spec: {cronSpec: 'x y', replicas: 2, tags: [a, a]}"},
		{name: "status only looks at status", status: true, old: "spec: {cronSpec: 'x y', replicas: 1}", obj: "spec: {cronSpec: 'x y', replicas: 1}\nstatus: {phase: Odd}", want: []string{
			`status.phase: Unsupported value: "Odd": supported values: "Good", "Bad"`,
			`<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation`,
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			ctx, obj := context.Background(), object(t, test.obj)
			var got []string
			errs := s.Validate(ctx, obj, nil)
			if test.old != "" {
				errs = s.Validate(ctx, obj, object(t, test.old))
			}
			if test.status {
				errs = statusStrategy{s}.Validate(ctx, obj, object(t, test.old))
			}
			for _, err := range errs {
				got = append(got, err.Error())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("errors (-want +got):\n%s", diff)
			}
		})
	}
}

func TestColumnsShowWhatTheirPathsFind(t *testing.T) {
	t.Parallel()
	p := newPrinter([]v1.CustomResourceColumnDefinition{
		{Name: "Spec", Type: "string", JSONPath: ".spec.cronSpec"},
		{Name: "Replicas", Type: "integer", JSONPath: ".spec.replicas"},
		{Name: "Missing", Type: "string", JSONPath: ".spec.nothing"},
		{Name: "Wrong", Type: "integer", JSONPath: ".spec.cronSpec"},
		{Name: "When", Type: "date", JSONPath: ".spec.when"},
	})
	cells, err := p.Cells(object(t, "spec: {cronSpec: x, replicas: 3, when: never}"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"x", "x", int64(3), nil, nil, "<invalid>"}, cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
}

func TestDeprecatedVersionsNameTheirSuccessor(t *testing.T) {
	t.Parallel()
	crd := &v1.CustomResourceDefinition{Spec: v1.CustomResourceDefinitionSpec{
		Group: "example.com", Names: v1.CustomResourceDefinitionNames{Kind: "Widget"},
	}}
	for _, name := range []string{"v1beta1", "v1", "v2alpha1"} {
		crd.Spec.Versions = append(crd.Spec.Versions, v1.CustomResourceDefinitionVersion{Name: name, Served: true})
	}
	if got, want := deprecation(crd, &crd.Spec.Versions[0]), "example.com/v1beta1 Widget is deprecated; use example.com/v1 Widget"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := deprecation(crd, &crd.Spec.Versions[1]), "example.com/v1 Widget is deprecated"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
