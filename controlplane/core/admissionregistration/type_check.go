// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/version"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"
	celopenapi "k8s.io/apiserver/pkg/cel/openapi"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/steer-dev/steer/apiserver/openapi/gotypes"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// mostTypes is how many types a policy is checked against at most.
const mostTypes = 10

// typed is a kind, and how its objects are described to expressions; nil: not at all.
type typed struct {
	kind schema.GroupVersionKind
	decl *apiservercel.DeclType
}

// checkTypes compiles the expressions of a policy once for each kind that it names, and
// returns the type errors, in the words of Kubernetes (KEP-3488). The time makes
// names of types that are no others.
func checkTypes(p *v1.ValidatingAdmissionPolicy, served []*resource.Resource, now time.Time) []v1.ExpressionWarning {
	about := describe(kindsOf(p, served), served, now)
	if len(about) == 0 {
		return nil
	}
	params := typed{}
	if k := p.Spec.ParamKind; k != nil {
		params.kind = schema.FromAPIVersionAndKind(k.APIVersion, k.Kind)
		if found := describe([]schema.GroupVersionKind{params.kind}, served, now); len(found) > 0 {
			params = found[0]
		}
	}
	var envs []*admissioncel.CompositedCompiler
	for _, t := range about {
		envs = append(envs, typeCompiler(t.decl, params, p.Spec.Variables))
	}
	var out []v1.ExpressionWarning
	check := func(path *field.Path, text string) {
		var problems []string
		for i, t := range about {
			if envs[i] == nil {
				continue
			}
			result := envs[i].CompileCELExpression(expression.Returning(text, cel.AnyType), typeOptions(params), environment.StoredExpressions)
			if err := result.Error; err != nil && err.Type == apiservercel.ErrorTypeInvalid {
				problems = append(problems, fmt.Sprintf("%v: %s\n", t.kind, err))
			} else if err != nil {
				problems = append(problems, fmt.Sprintf("%v: type checking error: %v\n", t.kind, err))
			}
		}
		if len(problems) > 0 {
			out = append(out, v1.ExpressionWarning{FieldRef: path.String(), Warning: strings.Join(problems, "\n")})
		}
	}
	list := field.NewPath("spec", "validations")
	for i, v := range p.Spec.Validations {
		check(list.Index(i).Child("expression"), v.Expression)
		if v.MessageExpression != "" {
			check(list.Index(i).Child("messageExpression"), v.MessageExpression)
		}
	}
	return out
}

// kindsOf are the kinds that the rules of a policy name, in order. Rules with wildcards
// name none, and neither do subresources.
func kindsOf(p *v1.ValidatingAdmissionPolicy, served []*resource.Resource) []schema.GroupVersionKind {
	if p.Spec.MatchConstraints == nil {
		return nil
	}
	found := sets.New[schema.GroupVersionKind]()
	for i := range p.Spec.MatchConstraints.ResourceRules {
		rule := &p.Spec.MatchConstraints.ResourceRules[i].Rule
		wild := func(s string) bool { return strings.Contains(s, "*") }
		if slices.ContainsFunc(rule.APIGroups, wild) || slices.ContainsFunc(rule.APIVersions, wild) {
			continue
		}
		count := 0
		for _, group := range slices.Sorted(slices.Values(rule.APIGroups)) {
			for _, version := range slices.Sorted(slices.Values(rule.APIVersions)) {
				for _, plural := range slices.Sorted(slices.Values(rule.Resources)) {
					for _, k := range named(served, group, version, plural) {
						found.Insert(k)
						if count++; count == mostTypes {
							return ordered(found)
						}
					}
				}
			}
		}
	}
	return ordered(found)
}

func ordered(kinds sets.Set[schema.GroupVersionKind]) []schema.GroupVersionKind {
	return slices.SortedFunc(slices.Values(kinds.UnsortedList()), func(a, b schema.GroupVersionKind) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Kind, b.Kind))
	})
}

// named returns the kinds of a resource. One without a group is looked for in all groups,
// as by the mapper of Kubernetes.
func named(served []*resource.Resource, group, version, plural string) []schema.GroupVersionKind {
	var out []schema.GroupVersionKind
	for _, r := range served {
		if group != "" && r.Group != group || r.Plural != plural && r.Singular != plural {
			continue
		}
		for i := range r.Versions {
			if v := &r.Versions[i]; v.Name == version && !v.NotServed {
				out = append(out, r.GroupVersionKind(version))
			}
		}
	}
	return out
}

// describe returns those of some kinds that are served and described.
func describe(kinds []schema.GroupVersionKind, served []*resource.Resource, now time.Time) []typed {
	var out []typed
	for _, k := range kinds {
		s := schemaOf(k, served)
		if s == nil {
			continue
		}
		decl := common.SchemaDeclType(&celopenapi.Schema{Schema: s}, true)
		if decl != nil {
			decl = decl.MaybeAssignTypeName(fmt.Sprintf("%s%d", k.Kind, now.Nanosecond()))
		}
		out = append(out, typed{k, decl})
	}
	return out
}

// schemaOf describes a kind without references; nil: it is not served.
func schemaOf(k schema.GroupVersionKind, served []*resource.Resource) *spec.Schema {
	for _, r := range served {
		if r.Group != k.Group || r.Kind != k.Kind {
			continue
		}
		for i := range r.Versions {
			v := &r.Versions[i]
			switch {
			case v.Name != k.Version || v.NotServed:
			case v.Schema != nil:
				return customSchema(v.Schema)
			case v.New != nil:
				return inlined(reflect.TypeOf(v.New()).Elem())
			}
		}
	}
	return nil
}

// customSchema describes a custom resource with the metadata that all have.
func customSchema(s *spec.Schema) *spec.Schema {
	out := *s
	out.Properties = map[string]spec.Schema{
		"apiVersion": *spec.StringProperty(), "kind": *spec.StringProperty(), "metadata": *inlined(reflect.TypeFor[metav1.ObjectMeta]()),
	}
	for name, property := range s.Properties {
		if _, ours := out.Properties[name]; !ours {
			out.Properties[name] = property
		}
	}
	return &out
}

// inlined describes a type of Go.
func inlined(t reflect.Type) *spec.Schema {
	all := inlining{definitions: gotypes.Definitions(gotypes.Kubernetes(), t), inside: sets.New[string]()}
	return all.schema(spec.RefSchema(gotypes.RefPrefix + gotypes.Name(t)))
}

// inlining puts definitions in the place of references to them.
type inlining struct {
	definitions map[string]*spec.Schema
	inside      sets.Set[string] // definitions that are being put somewhere
}

func (in *inlining) schema(s *spec.Schema) *spec.Schema {
	if s == nil {
		return nil
	}
	ref := s.Ref.String()
	for i := range s.AllOf { // beside what stands there, a reference is wrapped
		ref = cmp.Or(ref, s.AllOf[i].Ref.String())
	}
	if ref != "" {
		if in.inside.Has(ref) || in.definitions[strings.TrimPrefix(ref, gotypes.RefPrefix)] == nil {
			return &spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"object"}}}
		}
		in.inside.Insert(ref)
		defer in.inside.Delete(ref)
		return in.schema(in.definitions[strings.TrimPrefix(ref, gotypes.RefPrefix)])
	}
	out := *s
	if len(s.Properties) > 0 {
		out.Properties = make(map[string]spec.Schema, len(s.Properties))
		for name := range s.Properties {
			property := s.Properties[name]
			out.Properties[name] = *in.schema(&property)
		}
	}
	if s.AdditionalProperties != nil {
		out.AdditionalProperties = &spec.SchemaOrBool{Allows: s.AdditionalProperties.Allows, Schema: in.schema(s.AdditionalProperties.Schema)}
	}
	if s.Items != nil {
		out.Items = &spec.SchemaOrArray{Schema: in.schema(s.Items.Schema)}
	}
	return &out
}

func typeOptions(params typed) admissioncel.OptionalVariableDeclarations {
	return admissioncel.OptionalVariableDeclarations{HasParams: !params.kind.Empty(), HasAuthorizer: true}
}

// typeCompiler compiles expressions about objects of one type, which may use variables;
// nil: there can be none.
func typeCompiler(object *apiservercel.DeclType, params typed, variables []v1.Variable) *admissioncel.CompositedCompiler {
	request, namespace := admissioncel.BuildRequestType(), admissioncel.BuildNamespaceType()
	types := []*apiservercel.DeclType{namespace, request}
	vars := []cel.EnvOption{
		cel.Variable(admissioncel.NamespaceVarName, namespace.CelType()), cel.Variable(admissioncel.RequestVarName, request.CelType()),
		cel.Variable("authorizer", library.AuthorizerType),
	}
	add := func(t *apiservercel.DeclType, names ...string) {
		as := cel.DynType
		if t != nil {
			types, as = append(types, t), t.CelType()
		}
		for _, name := range names {
			vars = append(vars, cel.Variable(name, as))
		}
	}
	add(object, admissioncel.ObjectVarName, admissioncel.OldObjectVarName)
	if !params.kind.Empty() {
		add(params.decl, admissioncel.ParamsVarName)
	}
	env, err := expression.Environments().Extend(environment.VersionedOptions{IntroducedVersion: version.MajorMinor(1, 0), EnvOptions: vars, DeclTypes: types})
	if err != nil {
		return nil
	}
	c, err := admissioncel.NewCompositedCompilerForTypeChecking(env)
	if err != nil {
		return nil
	}
	c.Compiler = typesOnly{c}
	for _, v := range variables {
		c.CompileAndStoreVariable(expression.Variable(v.Name, v.Expression), typeOptions(params), environment.StoredExpressions)
	}
	return c
}

// typesOnly compiles as far as types are known.
type typesOnly struct {
	in *admissioncel.CompositedCompiler
}

// CompileCELExpression implements [admissioncel.Compiler].
func (t typesOnly) CompileCELExpression(e admissioncel.ExpressionAccessor, _ admissioncel.OptionalVariableDeclarations, mode environment.Type) admissioncel.CompilationResult {
	refuse := func(kind apiservercel.ErrorType, detail string) admissioncel.CompilationResult {
		return admissioncel.CompilationResult{Error: &apiservercel.Error{Type: kind, Detail: detail}, ExpressionAccessor: e}
	}
	env, err := t.in.Env(mode)
	if err != nil {
		return refuse(apiservercel.ErrorTypeInternal, fmt.Sprintf("fail to build env: %v", err))
	}
	ast, issues := env.Compile(e.GetExpression())
	if issues != nil {
		return refuse(apiservercel.ErrorTypeInvalid, issues.String())
	}
	return admissioncel.CompilationResult{OutputType: ast.OutputType()}
}
