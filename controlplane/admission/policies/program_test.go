// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	v1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/steer-dev/steer/controlplane/internal/expression"
)

func policyOf(before *definition, uid string, generation int64, expressions ...string) *definition {
	s := &v1.ValidatingAdmissionPolicySpec{}
	for _, text := range expressions {
		s.Validations = append(s.Validations, v1.Validation{Expression: text})
	}
	return &definition{name: uid, program: slotOf(before, types.UID(uid), generation, source{validating: s})}
}

func TestProgramsAreCompiledOncePerGeneration(t *testing.T) {
	t.Parallel()
	p := &programs{compiler: new(expression.Compiler)}
	first := policyOf(nil, "a", 1, "true")
	var all sync.WaitGroup
	var got [8]*program
	for i := range got {
		all.Go(func() { got[i] = p.of(first) })
	}
	all.Wait()
	for _, one := range got {
		if one == nil || one != got[0] {
			t.Fatal("several programs of one policy")
		}
	}
	if status := policyOf(first, "a", 1, "true"); p.of(status) != got[0] {
		t.Error("a change of the status compiles the policy again")
	}
	if spec := policyOf(first, "a", 2, "false"); p.of(spec) == got[0] {
		t.Error("a new generation has the old program")
	}
	if other := policyOf(first, "b", 1, "false"); p.of(other) == got[0] {
		t.Error("another policy of the same name has the old program")
	}
}

func TestProgramsAreBoundedInMemory(t *testing.T) {
	t.Parallel()
	small := policyOf(nil, "weight", 1, "true")
	p := &programs{compiler: new(expression.Compiler), most: 3 * small.program.source.weight()}
	var all []*definition
	for i := range 5 {
		all = append(all, policyOf(nil, fmt.Sprint(i), 1, "true"))
		p.of(all[i])
		p.of(all[0]) // stays in use
	}
	var kept []string
	for _, d := range all {
		if d.program.program.Load() != nil {
			kept = append(kept, d.name)
		}
	}
	if got := strings.Join(kept, " "); got != "0 3 4" || p.memory > p.most {
		t.Errorf("kept %s, in %d bytes of %d", got, p.memory, p.most)
	}
	if p.of(all[1]) == nil {
		t.Error("a program that was dropped is not compiled again")
	}
	large := policyOf(nil, "large", 1, strings.Repeat("true && ", 10000)+"true", "true", "true", "true")
	if p.of(large) == nil || p.memory > p.most {
		t.Errorf("%d bytes of %d are kept", p.memory, p.most)
	}
	p.retain(sets.New[*slot]())
	if p.memory != 0 || len(p.kept) != 0 {
		t.Errorf("%d bytes of policies that are gone are kept", p.memory)
	}
}

// BenchmarkPrograms is what compiling a policy costs.
func BenchmarkPrograms(b *testing.B) {
	for name, variables := range map[string][]v1.Variable{"plain": nil, "variables": {{Name: "r", Expression: "object.spec.replicas"}}} {
		b.Run(name, func(b *testing.B) {
			compiler := new(expression.Compiler)
			compiler.Plain()
			s := source{validating: &v1.ValidatingAdmissionPolicySpec{Variables: variables, Validations: []v1.Validation{{Expression: "object.spec.replicas <= 5"}}}}
			b.ReportAllocs()
			for b.Loop() {
				s.compile("bench", compiler)
			}
		})
	}
}
