// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package expression

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	admissionv1 "k8s.io/api/admission/v1"
	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/authentication/user"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// deployment is an object that expressions of the tests are about.
func deployment() map[string]any {
	return map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"name": "web", "namespace": "default", "labels": map[string]any{"app": "web"}},
		"spec": map[string]any{
			"replicas": int64(7),
			"template": map[string]any{"spec": map[string]any{"containers": []any{
				map[string]any{"name": "a", "image": "registry/a:1"}, map[string]any{"name": "b", "image": "b"},
			}}},
		},
	}
}

// write is what both the library of kube-apiserver and this package evaluate expressions
// about.
func write() (*admission.VersionedAttributes, Values) {
	object := &unstructured.Unstructured{Object: deployment()}
	kind, gvr := schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	attributes := admission.NewAttributesRecord(object, nil, kind, "default", "web", gvr, "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "ann"})
	versioned, err := admission.NewVersionedAttributes(attributes, kind, nil) // which has nothing to convert
	if err != nil {
		panic(err)
	}
	return versioned, Values{
		Object: object.Object,
		Request: func() any {
			request, err := runtime.DefaultUnstructuredConverter.ToUnstructured(requestOf(attributes))
			if err != nil {
				panic(err)
			}
			return request
		},
	}
}

func requestOf(a admission.Attributes) *admissionv1.AdmissionRequest {
	return admissioncel.CreateAdmissionRequest(a, metav1.GroupVersionResource(a.GetResource()), metav1.GroupVersionKind(a.GetKind()))
}

// results are the values or errors of a list of expressions, and what is left of the
// budget.
func results(budget int64, failure error, list ...string) string {
	if failure != nil {
		return "failed: " + failure.Error()
	}
	return fmt.Sprintf("%s, %d left", strings.Join(list, ", "), budget)
}

func shown(value any, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprint(value)
}

// TestActivationAgreesWithTheLibraryOfKubeAPIServer compares values, errors and costs with
// those of the evaluator that kube-apiserver has.
func TestActivationAgreesWithTheLibraryOfKubeAPIServer(t *testing.T) {
	t.Parallel()
	type list []string
	variables := list{"replicas=object.spec.replicas", "images=object.spec.template.spec.containers.map(c, c.image)", "broken=object.spec.nothing", "twice=variables.replicas * 2", "wrong=1 +"}
	for name, c := range map[string]struct {
		variables, expressions list
		budget                 int64
	}{
		"plain":                 {expressions: list{"object.spec.replicas <= 5", "object.metadata.name == 'web'", "oldObject == null", "namespaceObject == null"}, budget: 1000},
		"request":               {expressions: list{"request.operation == 'CREATE'", "request.userInfo.username == 'ann'", "request.dryRun == false"}, budget: 1000},
		"error":                 {expressions: list{"object.spec.nothing == 1", "true"}, budget: 1000},
		"does not compile":      {expressions: list{"object.", "true"}, budget: 1000},
		"another type":          {expressions: list{"1", "true"}, budget: 1000},
		"variables":             {variables, list{"variables.replicas > 5", "variables.images.all(i, i.contains('/'))", "variables.twice == 14", "variables.replicas == 7"}, 1000},
		"variable with error":   {variables, list{"variables.broken == 1", "variables.broken == 2", "has(variables.replicas)"}, 1000},
		"variable not compiled": {variables, list{"variables.wrong == 1"}, 1000},
		"out of budget":         {variables, list{"variables.images.all(i, i != '')", "variables.images.all(i, i != 'a')", "true"}, 12},
		"variable too costly":   {variables, list{"variables.twice == 14", "true"}, 2},
		"costly call":           {expressions: list{"[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, [0,1,2,3,4,5,6,7,8,9].all(f, a+b+c+d+e+f < 100))))))"}, budget: 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			compiler, err := Composed()
			if err != nil {
				t.Fatal(err)
			}
			var options admissioncel.OptionalVariableDeclarations
			known := &Variables{}
			for _, v := range c.variables {
				name, text, _ := strings.Cut(v, "=")
				known.Add(name, compiler.CompileAndStoreVariable(Variable(name, text), options, environment.StoredExpressions))
			}
			var accessors []admissioncel.ExpressionAccessor
			for _, text := range c.expressions {
				accessors = append(accessors, Returning(text, cel.BoolType))
			}
			attributes, values := write()
			evaluated, left, err := compiler.CompileCondition(accessors, options, environment.StoredExpressions).
				ForInput(t.Context(), attributes, requestOf(attributes.Attributes), admissioncel.OptionalVariableBindings{}, nil, c.budget)
			var want []string
			for _, e := range evaluated {
				want = append(want, shown(e.EvalResult, e.Error))
			}

			a, budget := &Activation{Values: values, Variables: known}, Budget(c.budget)
			var got []string
			var failure error
			for _, accessor := range accessors {
				compiled := compiler.CompileCELExpression(accessor, options, environment.StoredExpressions)
				result, err := a.Evaluate(t.Context(), &compiled, &budget)
				if failure = err; failure != nil {
					break
				}
				got = append(got, shown(result.Value, result.Err))
			}
			if got, want := results(int64(budget), failure, got...), results(left, err, want...); got != want {
				t.Errorf("steer:\n%s\nkube-apiserver:\n%s", got, want)
			}
		})
	}
}

func TestActivationEndsWithItsContext(t *testing.T) {
	t.Parallel()
	var c Compiler
	const slow = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, a+b+c < 100)))"
	compiled := c.Plain().CompileCELExpression(Returning(slow, cel.BoolType), admissioncel.OptionalVariableDeclarations{}, environment.StoredExpressions)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, values := write()
	a, budget := &Activation{Values: values}, PolicyBudget
	if result, err := a.Evaluate(ctx, &compiled, &budget); err == nil && result.Err == nil {
		t.Errorf("evaluated to %v", result.Value)
	}
}

func TestConditionsHoldUnlessOneIsFalse(t *testing.T) {
	t.Parallel()
	var compiler Compiler
	for want, conditions := range map[string][]string{
		"true":  {"true", "object.spec.replicas == 7"},
		"false": {"true", "object.spec.nothing == 1", "object.spec.replicas == 8"},
		"expression 'object.spec.nothing == 1' resulted in error: no such key: nothing":                                        {"true", "object.spec.nothing == 1"},
		"[expression 'object.a == 1' resulted in error: no such key: a, compilation error: must evaluate to bool but got int]": {"object.a == 1", "1"},
		"true ": nil,
	} {
		var list []v1.MatchCondition
		for i, text := range conditions {
			list = append(list, v1.MatchCondition{Name: fmt.Sprint(i), Expression: text})
		}
		_, values := write()
		c := CompileConditions(compiler.Plain(), list, admissioncel.OptionalVariableDeclarations{})
		holds, _, err := c.Match(t.Context(), &Activation{Values: values})
		if got := shown(holds, err); got != strings.TrimSpace(want) {
			t.Errorf("%q: %s, want %s", conditions, got, want)
		}
	}
}

func TestConditionsAreWithinTheirBudget(t *testing.T) {
	t.Parallel()
	var compiler Compiler
	const costly = "[0,1,2,3,4,5,6,7,8,9].all(a, [0,1,2,3,4,5,6,7,8,9].all(b, [0,1,2,3,4,5,6,7,8,9].all(c, [0,1,2,3,4,5,6,7,8,9].all(d, [0,1,2,3,4,5,6,7,8,9].all(e, a+b+c+d+e < 100)))))"
	var list []v1.MatchCondition
	for range 4 {
		list = append(list, v1.MatchCondition{Expression: costly})
	}
	_, values := write()
	c := CompileConditions(compiler.Plain(), list, admissioncel.OptionalVariableDeclarations{})
	if _, _, err := c.Match(t.Context(), &Activation{Values: values}); !errors.Is(err, apiservercel.ErrOutOfBudget) {
		t.Errorf("%v", err)
	}
}

func TestCompilerIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var compiler Compiler
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			compiled := compiler.Plain().CompileCELExpression(Returning(fmt.Sprintf("object.a%d == [timestamp('2020-01-01T00:00:00Z')]", i), cel.BoolType),
				admissioncel.OptionalVariableDeclarations{HasParams: i%2 == 0}, environment.StoredExpressions)
			_, values := write()
			budget := PolicyBudget
			if compiled.Error != nil {
				t.Error(compiled.Error)
				return
			}
			if result, err := (&Activation{Values: values}).Evaluate(t.Context(), &compiled, &budget); err != nil || result.Err == nil || result.Value == types.True {
				t.Errorf("%+v, %v", result, err)
			}
		})
	}
	all.Wait()
}
