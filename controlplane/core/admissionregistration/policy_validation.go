// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admissionregistration

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// policyCheck is the check of one policy: its variables are known to the
// expressions below them.
type policyCheck struct {
	params   bool // there are parameters
	compiler func() admissioncel.Compiler
	// before are the expressions that the policy had.
	before struct{ conditions, validations, messages, annotations, configurations sets.Set[string] }
}

func (c *rules) validatePolicy(p, old *v1.ValidatingAdmissionPolicy) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &p.Spec
	f := root.Child("spec")
	check := policyCheck{params: s.ParamKind != nil, compiler: c.Plain}
	if old != nil {
		check.remember(&old.Spec)
	}
	checkAbout(&f, s.FailurePolicy, s.ParamKind, s.MatchConstraints)
	if old == nil || !equality.Semantic.DeepEqual(s.ParamKind, old.Spec.ParamKind) ||
		!equality.Semantic.DeepEqual(s.MatchConditions, old.Spec.MatchConditions) {
		c.checkConditions(&f, conditions{list: s.MatchConditions, params: s.ParamKind != nil, before: check.before.conditions})
	}
	check.variables(&f, s.Variables)
	if len(s.Validations)+len(s.AuditAnnotations) == 0 {
		const one = "validations or auditAnnotations must contain at least one item"
		f.Required("validations", one)
		f.Required("auditAnnotations", one)
		return errs
	}
	list := f.Child("validations")
	for i := range s.Validations {
		at := list.Index(i)
		check.validation(&at, &s.Validations[i])
	}
	check.annotations(&f, p.Name, s.AuditAnnotations)
	return errs
}

// checkAbout has the rules of what policies of both kinds say of what they are
// about.
func checkAbout(f *valid.Field, failure *v1.FailurePolicyType, params *v1.ParamKind, m *v1.MatchResources) {
	valid.Supported(f, "failurePolicy", kind.Value(failure), v1.Fail, v1.Ignore)
	if params != nil {
		at := f.Child("paramKind")
		checkParamKind(&at, params)
	}
	if m == nil {
		f.Required("matchConstraints", "")
		return
	}
	at := f.Child("matchConstraints")
	checkMatch(&at, m)
	if len(m.ResourceRules) == 0 {
		at.Required("resourceRules", "")
	}
}

func (p *policyCheck) remember(s *v1.ValidatingAdmissionPolicySpec) {
	b := &p.before
	b.conditions, b.validations, b.messages, b.annotations = expressionsOf(s.MatchConditions), sets.New[string](), sets.New[string](), sets.New[string]()
	for _, v := range s.Validations {
		b.validations.Insert(v.Expression)
		b.messages.Insert(v.MessageExpression)
	}
	for _, a := range s.AuditAnnotations {
		b.annotations.Insert(a.ValueExpression)
	}
}

// options tell which names expressions may use.
func (p *policyCheck) options(authorizer bool) admissioncel.OptionalVariableDeclarations {
	return admissioncel.OptionalVariableDeclarations{HasParams: p.params, HasAuthorizer: authorizer}
}

func (p *policyCheck) variables(in *valid.Field, list []v1.Variable) {
	if len(list) == 0 {
		return
	}
	f := in.Child("variables")
	composed, err := expression.Composed()
	if err != nil {
		f.Add(field.InternalError(f.Path(), fmt.Errorf("make compiler of variables: %w", err)))
		return
	}
	p.compiler = func() admissioncel.Compiler { return composed }
	for i, v := range list {
		at := f.Index(i)
		if strings.TrimSpace(v.Name) == "" {
			at.Required("name", "name is not specified")
		} else if !isIdentifier(v.Name) {
			at.Invalid("name", v.Name, "must be a valid CEL identifier")
		}
		if strings.TrimSpace(v.Expression) == "" {
			at.Required("expression", "expression is not specified")
			continue
		}
		checkCompiled(&at, "expression", v.Expression, composed.CompileAndStoreVariable(
			expression.Variable(v.Name, v.Expression),
			p.options(true), stored(p.before.validations, v.Expression)))
	}
}

// isIdentifier reports whether a name can be one in expressions.
func isIdentifier(name string) bool {
	for i, c := range name {
		letter := c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	reserved := []string{
		"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
		"loop", "package", "namespace", "return", "var", "void", "while",
	}
	return name != "" && !slices.Contains(reserved, name)
}

func (p *policyCheck) validation(f *valid.Field, v *v1.Validation) {
	const empty = "must be non-empty if specified"
	if strings.TrimSpace(v.Expression) == "" {
		f.Required("expression", "expression is not specified")
	} else {
		checkCompiled(f, "expression", v.Expression, p.compiler().CompileCELExpression(
			expression.Returning(v.Expression, cel.BoolType), p.options(true), stored(p.before.validations, v.Expression)))
	}
	switch {
	case v.MessageExpression == "":
	case strings.TrimSpace(v.MessageExpression) == "":
		f.Invalid("messageExpression", v.MessageExpression, empty)
	default:
		checkCompiled(f, "messageExpression", v.MessageExpression, p.compiler().CompileCELExpression(
			expression.Returning(v.MessageExpression, cel.StringType), p.options(false), stored(p.before.messages, v.MessageExpression)))
	}
	switch text := strings.TrimSpace(v.Message); {
	case v.Message == "":
	case text == "":
		f.Invalid("message", v.Message, empty)
	case strings.ContainsAny(text, "\n\r"):
		f.Invalid("message", v.Message, "must not contain line breaks")
	}
	if v.Reason != nil {
		valid.Supported(f, "reason", *v.Reason, metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonRequestEntityTooLarge)
	}
}

func (p *policyCheck) annotations(in *valid.Field, policy string, list []v1.AuditAnnotation) {
	const most, longest = 20, 5 << 10
	f, keys := in.Child("auditAnnotations"), sets.New[string]()
	if len(list) > most {
		f.Invalid(valid.Self, list, fmt.Sprintf("must not have more than %d auditAnnotations", most))
	}
	for i, a := range list {
		at := f.Index(i)
		if policy == "" {
			at.Invalid("key", a.Key, "requires metadata.name be non-empty")
		} else {
			at.Qualified("key", policy+"/"+a.Key)
		}
		switch text := strings.TrimSpace(a.ValueExpression); {
		case text == "":
			at.Required("valueExpression", "valueExpression is not specified")
		case len(text) > longest:
			at.Required("valueExpression", fmt.Sprintf("must not exceed %d bytes in length", longest))
		default:
			checkCompiled(&at, "valueExpression", a.ValueExpression, p.compiler().CompileCELExpression(
				expression.Returning(text, cel.StringType, cel.NullType), p.options(true), stored(p.before.annotations, a.ValueExpression)))
		}
		if keys.Has(a.Key) {
			at.Duplicate("key", a.Key)
		}
		keys.Insert(a.Key)
	}
}

func checkParamKind(f *valid.Field, k *v1.ParamKind) {
	if f.NonEmpty("apiVersion", k.APIVersion) {
		group, version, ok := strings.Cut(k.APIVersion, "/")
		if !ok {
			group, version = "", group
		}
		switch {
		case strings.Contains(version, "/"):
			f.Invalid("apiVersion", k.APIVersion, "unexpected GroupVersion string: "+k.APIVersion)
		default:
			if problems := validation.IsDNS1123Subdomain(group); group != "" && len(problems) > 0 {
				f.Invalid("apiVersion", group, strings.Join(problems, ","))
			}
			if version == "" {
				f.Invalid("apiVersion", k.APIVersion, "version must be specified")
			} else if problems := validation.IsDNS1035Label(version); len(problems) > 0 {
				f.Invalid("apiVersion", version, strings.Join(problems, ","))
			}
		}
	}
	if f.NonEmpty("kind", k.Kind) {
		if problems := validation.IsDNS1035Label(strings.ToLower(k.Kind)); len(problems) > 0 {
			f.Invalid("kind", k.Kind, "may have mixed case, but should otherwise match: "+strings.Join(problems, ","))
		}
	}
}

func validateBinding(b, _ *v1.ValidatingAdmissionPolicyBinding) field.ErrorList {
	var errs field.ErrorList
	root, s := valid.Root(&errs), &b.Spec
	f := root.Child("spec")
	checkBound(&f, s.PolicyName, s.ParamRef, s.MatchResources)
	list, seen := f.Child("validationActions"), sets.New[v1.ValidationAction]()
	for i, a := range s.ValidationActions {
		at := list.Index(i)
		valid.Supported(&at, valid.Self, a, v1.Audit, v1.Deny, v1.Warn)
		if seen.Has(a) {
			at.Duplicate(valid.Self, a)
		}
		seen.Insert(a)
	}
	if seen.HasAll(v1.Deny, v1.Warn) {
		list.Invalid(valid.Self, s.ValidationActions, "must not contain both Deny and Warn (repeating the same validation failure information "+
			"in the API response and headers serves no purpose)")
	}
	return errs
}

// checkBound has the rules of what bindings of all policies have in common.
func checkBound(f *valid.Field, policy string, params *v1.ParamRef, match *v1.MatchResources) {
	if policy != "" {
		f.Subdomain("policyName", policy)
	}
	if params != nil {
		at := f.Child("paramRef")
		checkParamRef(&at, params)
	}
	if match != nil {
		at := f.Child("matchResources")
		checkMatch(&at, match)
	}
}

func checkParamRef(f *valid.Field, r *v1.ParamRef) {
	const either = "name and selector are mutually exclusive"
	both := r.Name != "" && r.Selector != nil
	if r.Name != "" {
		f.PathSegment("name", r.Name)
	}
	if both {
		f.Forbidden("name", either)
	}
	f.Selector("selector", r.Selector)
	if both {
		f.Forbidden("selector", either)
	}
	if r.Name == "" && r.Selector == nil {
		f.Required(valid.Self, "one of name or selector must be specified")
	}
	if a := kind.Value(r.ParameterNotFoundAction); f.NonEmpty("parameterNotFoundAction", string(a)) {
		valid.Supported(f, "parameterNotFoundAction", a, v1.DenyAction, v1.AllowAction)
	}
}
