// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package expression compiles and evaluates the expressions of admission, in the Common
// Expression Language: those of policies, and the match conditions of webhooks.
//
// A [Compiler] makes programs. An [Activation] has the values of the variables during one
// request; programs are evaluated with it within a [Budget] of cost:
//
//	compiled := compiler.Plain().CompileCELExpression(expression.Expression{Text: "object.spec.replicas <= 5"}, ...)
//	value, err := activation.Evaluate(ctx, &compiled, &budget)
package expression

import (
	"sync"

	"github.com/google/cel-go/cel"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/environment"
)

// Expression is a text in the Common Expression Language, and the types of which its
// value may be.
type Expression struct {
	// Name of a variable; empty for other expressions.
	Name string
	Text string
	// Returns are the types; see the functions below.
	Returns []*cel.Type
}

// Returning returns an expression whose value has one of some types.
func Returning(text string, types ...*cel.Type) Expression {
	return Expression{Text: text, Returns: types}
}

// Variable returns the expression of a variable, whose value may have any type.
func Variable(name, text string) Expression {
	return Expression{Name: name, Text: text, Returns: []*cel.Type{cel.AnyType, cel.DynType}}
}

// GetExpression implements admissioncel.ExpressionAccessor.
func (e Expression) GetExpression() string { return e.Text }

// ReturnTypes implements admissioncel.ExpressionAccessor.
func (e Expression) ReturnTypes() []*cel.Type { return e.Returns }

// GetName implements admissioncel.NamedExpressionAccessor.
func (e Expression) GetName() string { return e.Name }

// Compiler compiles expressions. The zero value is ready for use, by several goroutines.
type Compiler struct {
	once  sync.Once
	plain admissioncel.Compiler
}

// Environments are the declarations that all expressions of admission can use.
func Environments() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// Plain returns the compiler of expressions that use no variables of a policy.
func (c *Compiler) Plain() admissioncel.Compiler {
	c.once.Do(func() { c.plain = &serial{compiler: admissioncel.NewCompiler(Environments())} })
	return c.plain
}

// Composed returns a compiler for the expressions of one policy that has variables. It is
// not safe for concurrent use.
func Composed() (*admissioncel.CompositedCompiler, error) {
	return admissioncel.NewCompositedCompiler(Environments())
}

// serial compiles one expression at a time: to check an expression, cel-go adds the names
// of types that it has found to the environment, without a lock.
type serial struct {
	mu       sync.Mutex
	compiler admissioncel.Compiler
}

// CompileCELExpression implements [admissioncel.Compiler].
func (s *serial) CompileCELExpression(e admissioncel.ExpressionAccessor, o admissioncel.OptionalVariableDeclarations, mode environment.Type) admissioncel.CompilationResult {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.compiler.CompileCELExpression(e, o, mode)
}
