// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"sync"
	"sync/atomic"

	"github.com/google/cel-go/cel"
	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// program has the compiled expressions of a policy. It is immutable.
type program struct {
	variables   *expression.Variables
	conditions  *match.Conditions
	validations []validation
	annotations []annotation
	mutations   []mutation
	// messages is how many validations have a messageExpression.
	messages int
	// failure is why nothing could be compiled; nil as a rule: an expression that does not
	// compile is an error of its own.
	failure error
}

type (
	compiled = admissioncel.CompilationResult

	validation struct {
		compiled compiled
		// message is nil without a messageExpression.
		message *compiled
		rule    *v1.Validation
	}
	annotation struct {
		compiled compiled
		rule     *v1.AuditAnnotation
	}
	mutation struct {
		compiled compiled
		kind     v1.PatchType
	}
)

// source is the specification of a policy of either kind; the other one is nil.
type source struct {
	validating *v1.ValidatingAdmissionPolicySpec
	mutating   *v1.MutatingAdmissionPolicySpec
}

// compile compiles a policy, in the environment that knows all that was ever accepted.
func (s source) compile(name string, compiler *expression.Compiler) *program {
	var conditions []v1.MatchCondition
	var variables []v1.Variable
	var options admissioncel.OptionalVariableDeclarations
	var failure *v1.FailurePolicyType
	if s.validating != nil {
		failure = s.validating.FailurePolicy
		conditions, variables, options.HasParams = s.validating.MatchConditions, s.validating.Variables, s.validating.ParamKind != nil
	} else {
		failure = s.mutating.FailurePolicy
		conditions, variables, options.HasParams = s.mutating.MatchConditions, s.mutating.Variables, s.mutating.ParamKind != nil
	}
	options.HasAuthorizer = true
	c, out := compiler.Plain(), &program{}
	if len(variables) > 0 {
		composed, err := expression.Composed()
		if err != nil {
			out.failure = err
			return out
		}
		c, out.variables = composed, &expression.Variables{}
		for _, v := range variables {
			out.variables.Add(v.Name, composed.CompileAndStoreVariable(expression.Variable(v.Name, v.Expression), options, environment.StoredExpressions))
		}
	}
	out.conditions = match.NewConditions(conditions, match.ConditionOptions{
		Name: name, Kind: "policy", Type: "validate", FailurePolicy: failure,
		Params: options.HasParams, Compiler: c, Variables: out.variables,
	})
	if s.validating != nil {
		out.validate(c, s.validating, options)
	} else {
		out.mutate(c, s.mutating, options)
	}
	return out
}

func (p *program) validate(c admissioncel.Compiler, s *v1.ValidatingAdmissionPolicySpec, options admissioncel.OptionalVariableDeclarations) {
	stored := environment.StoredExpressions
	noAuthorizer := options
	noAuthorizer.HasAuthorizer = false
	for i := range s.Validations {
		rule := &s.Validations[i]
		v := validation{rule: rule, compiled: c.CompileCELExpression(expression.Returning(rule.Expression, cel.BoolType), options, stored)}
		if rule.MessageExpression != "" {
			message := c.CompileCELExpression(expression.Returning(rule.MessageExpression, cel.StringType), noAuthorizer, stored)
			v.message = &message
			p.messages++
		}
		p.validations = append(p.validations, v)
	}
	for i := range s.AuditAnnotations {
		rule := &s.AuditAnnotations[i]
		p.annotations = append(p.annotations, annotation{
			rule: rule, compiled: c.CompileCELExpression(expression.Returning(rule.ValueExpression, cel.StringType, cel.NullType), options, stored),
		})
	}
}

func (p *program) mutate(c admissioncel.Compiler, s *v1.MutatingAdmissionPolicySpec, options admissioncel.OptionalVariableDeclarations) {
	options.HasPatchTypes = true
	for i := range s.Mutations {
		m := &s.Mutations[i]
		var text string
		var returns *cel.Type
		switch {
		case m.PatchType == v1.PatchTypeApplyConfiguration && m.ApplyConfiguration != nil:
			text, returns = m.ApplyConfiguration.Expression, cel.ObjectType("Object")
		case m.PatchType == v1.PatchTypeJSONPatch && m.JSONPatch != nil:
			text, returns = m.JSONPatch.Expression, cel.ListType(cel.ObjectType("JSONPatch"))
		default:
			continue
		}
		p.mutations = append(p.mutations, mutation{
			kind: m.PatchType, compiled: c.CompileCELExpression(expression.Returning(text, returns), options, environment.StoredExpressions),
		})
	}
}

// weight estimates the memory of the program in bytes: what an expression takes without
// its text was measured (BenchmarkPrograms).
func (s source) weight() int64 {
	const each, composed, perByte = 48 << 10, 96 << 10, 64
	weight := int64(0)
	add := func(texts ...string) {
		for _, text := range texts {
			if text != "" {
				weight += each + perByte*int64(len(text))
			}
		}
	}
	conditions := func(list []v1.MatchCondition, variables []v1.Variable) {
		for i := range list {
			add(list[i].Expression)
		}
		if len(variables) > 0 {
			weight += composed
		}
		for i := range variables {
			add(variables[i].Expression)
		}
	}
	if v := s.validating; v != nil {
		conditions(v.MatchConditions, v.Variables)
		for i := range v.Validations {
			add(v.Validations[i].Expression, v.Validations[i].MessageExpression)
		}
		for i := range v.AuditAnnotations {
			add(v.AuditAnnotations[i].ValueExpression)
		}
		return weight
	}
	conditions(s.mutating.MatchConditions, s.mutating.Variables)
	for i := range s.mutating.Mutations {
		m := &s.mutating.Mutations[i]
		if m.ApplyConfiguration != nil {
			add(m.ApplyConfiguration.Expression)
		}
		if m.JSONPatch != nil {
			add(m.JSONPatch.Expression)
		}
	}
	return weight
}

// slot is the place of the program of one generation of a policy.
type slot struct {
	uid        types.UID
	generation int64
	source     source

	compiling sync.Mutex // once
	program   atomic.Pointer[program]
	used      atomic.Int64 // the clock of programs at the last use
}

// slotOf returns the slot of a policy: that of its last version if the specification is
// the same.
func slotOf(before *definition, uid types.UID, generation int64, s source) *slot {
	if before != nil && before.program.uid == uid && before.program.generation == generation {
		return before.program
	}
	return &slot{uid: uid, generation: generation, source: s}
}

// mostMemory is how much memory the programs of all policies of one kind may take. Those
// that were not used for the longest time are compiled again when they are needed.
const mostMemory = 128 << 20

// programs compiles policies when they are first needed, and bounds the memory of what it
// keeps. It is safe for concurrent use.
type programs struct {
	compiler *expression.Compiler
	clock    atomic.Int64
	// most replaces mostMemory; 0: it does not.
	most int64

	mu     sync.Mutex
	kept   sets.Set[*slot]
	memory int64
}

// of returns the program of a policy.
func (p *programs) of(d *definition) *program {
	s := d.program
	s.used.Store(p.clock.Add(1))
	if out := s.program.Load(); out != nil {
		return out
	}
	s.compiling.Lock()
	defer s.compiling.Unlock()
	if out := s.program.Load(); out != nil {
		return out
	}
	out := s.source.compile(d.name, p.compiler)
	s.program.Store(out)
	p.keep(s)
	return out
}

// keep counts a new program, and drops those that were not used for the longest time while
// there are too many.
func (p *programs) keep(s *slot) {
	most := int64(mostMemory)
	if p.most > 0 {
		most = p.most
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kept == nil {
		p.kept = sets.New[*slot]()
	}
	p.kept.Insert(s)
	p.memory += s.source.weight()
	for p.memory > most {
		var oldest *slot
		for k := range p.kept {
			if oldest == nil || k.used.Load() < oldest.used.Load() {
				oldest = k
			}
		}
		p.drop(oldest)
	}
}

// drop forgets a program that is kept.
func (p *programs) drop(s *slot) {
	p.kept.Delete(s)
	p.memory -= s.source.weight()
	s.program.Store(nil)
}

// retain drops the programs of all other policies.
func (p *programs) retain(slots sets.Set[*slot]) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.kept {
		if !slots.Has(s) {
			p.drop(s)
		}
	}
}

// reasonOf is the reason of a refusal by a validation.
func reasonOf(rule *v1.Validation) metav1.StatusReason {
	if rule.Reason == nil {
		return metav1.StatusReasonInvalid
	}
	return *rule.Reason
}
