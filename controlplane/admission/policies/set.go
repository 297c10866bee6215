// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	v1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/internal/derived"
	"github.com/steer-dev/steer/storage"
)

// set has the policies of one kind that are in force: those with a binding. A policy or
// binding is in force when the answer of its write is sent. A set is safe for concurrent use.
type set struct {
	deps     *match.Deps
	programs *programs
	index    *derived.Value[*match.Index[policy]]
}

// kinds are a kind of policies and that of their bindings: the plural names, and what
// decodes them.
type kinds struct {
	policies, bindings string
	policy             func(rec *storage.Record, before *definition) (*definition, error)
	binding            func(rec *storage.Record, before *binding) (*binding, error)
}

func newSet(store storage.Viewer, deps *match.Deps, compiled *programs, k kinds) *set {
	definitions := derived.NewVersions(v1.GroupName+"/"+k.policies, k.policy)
	bindings := derived.NewVersions(v1.GroupName+"/"+k.bindings, k.binding)
	compute := func(view storage.View, _ *match.Index[policy]) (*match.Index[policy], error) {
		definitions, err := definitions.Read(view)
		if err != nil {
			return nil, err
		}
		bindings, err := bindings.Read(view)
		if err != nil {
			return nil, err
		}
		bound := bind(definitions, bindings)
		slots := sets.New[*slot]()
		for _, p := range bound {
			slots.Insert(p.program)
		}
		compiled.retain(slots)
		return match.NewPolicyIndex(deps, bound, func(p policy) *match.Constraints { return p.constraints }), nil
	}
	return &set{deps, compiled, derived.New(store, compute, v1.GroupName+"/"+k.policies, v1.GroupName+"/"+k.bindings)}
}

// bind returns the policies that have bindings, by name.
func bind(definitions []*definition, bindings []*binding) []policy {
	of := map[string][]*binding{}
	for _, b := range bindings {
		of[b.policy] = append(of[b.policy], b)
	}
	var out []policy
	for _, d := range definitions {
		if bindings := of[d.name]; len(bindings) > 0 {
			out = append(out, policy{d, bindings})
		}
	}
	return out
}

// candidates returns the policies whose rules may name a write, by name.
func (s *set) candidates(r *resource.AdmissionRequest) ([]policy, error) {
	index, err := s.index.Get()
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return index.Candidates(r), nil
}
