// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"sync"

	"github.com/google/cel-go/cel"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

// expression is a text in the Common Expression Language, and the types of which
// its value may be.
type expression struct {
	name    string // of a variable
	text    string
	returns []*cel.Type
}

// GetExpression implements admissioncel.ExpressionAccessor.
func (e expression) GetExpression() string { return e.text }

// ReturnTypes implements admissioncel.ExpressionAccessor.
func (e expression) ReturnTypes() []*cel.Type { return e.returns }

// GetName implements admissioncel.NamedExpressionAccessor.
func (e expression) GetName() string { return e.name }

// compilers compile expressions. The zero value is ready for use, by several
// goroutines.
type compilers struct {
	once   sync.Once
	shared admissioncel.Compiler
}

func environments() *environment.EnvSet {
	return environment.MustBaseEnvSet(environment.DefaultCompatibilityVersion())
}

// plain returns the compiler of expressions that use no variables.
func (c *compilers) plain() admissioncel.Compiler {
	c.once.Do(func() { c.shared = &serial{compiler: admissioncel.NewCompiler(environments())} })
	return c.shared
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

// stored tells in which environment an expression is compiled: one that was
// accepted before may use what has gone since.
func stored(before sets.Set[string], text string) environment.Type {
	if before.Has(text) {
		return environment.StoredExpressions
	}
	return environment.NewExpressions
}

// checkCompiled reports why an expression did not compile; value is the text that
// was given.
func checkCompiled(f *valid.Field, name, value string, result admissioncel.CompilationResult) {
	switch err := result.Error; {
	case err == nil:
	case err.Type == apiservercel.ErrorTypeInvalid:
		f.Invalid(name, value, err.Detail)
	default:
		f.Add(field.InternalError(f.PathOf(name), err))
	}
}
