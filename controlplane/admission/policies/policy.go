// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"encoding/json"
	"fmt"

	v1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/storage"
)

// definition is a stored policy of either kind. It is immutable but for its program.
type definition struct {
	name        string
	constraints *match.Constraints
	paramKind   *v1.ParamKind
	// params is the kind of paramKind.
	params schema.GroupVersionKind
	// ignores reports whether errors are ignored: failurePolicy Ignore.
	ignores bool
	// again reports whether a mutating policy may run twice: reinvocationPolicy IfNeeded.
	again bool
	// program is shared by the versions of the policy that differ only in metadata and
	// status.
	program *slot
}

// policy is a policy with the bindings that name it, by name.
type policy struct {
	*definition
	bindings []*binding
}

// binding is a stored binding of either kind. It is immutable.
type binding struct {
	name, policy string
	// constraints are those of matchResources; nil: every write that the policy matches.
	constraints *match.Constraints
	ref         *v1.ParamRef
	// selector is that of ref, nil if it has none; broken is why it cannot be used.
	selector labels.Selector
	broken   error
	actions  []v1.ValidationAction
}

func newDefinition(name string, match *match.Constraints, kind *v1.ParamKind, failure *v1.FailurePolicyType) (*definition, error) {
	d := &definition{name: name, constraints: match, paramKind: kind, ignores: failure != nil && *failure == v1.Ignore}
	if kind != nil {
		gv, err := schema.ParseGroupVersion(kind.APIVersion)
		if err != nil {
			return nil, fmt.Errorf("failed to parse paramKind APIVersion: %w", err)
		}
		d.params = gv.WithKind(kind.Kind)
	}
	return d, nil
}

func newBinding(name, policy string, resources *v1.MatchResources, ref *v1.ParamRef) *binding {
	b := &binding{name: name, policy: policy, ref: ref}
	if resources != nil {
		b.constraints = match.NewPolicyConstraints(resources)
	}
	if ref != nil && ref.Selector != nil {
		b.selector, b.broken = metav1.LabelSelectorAsSelector(ref.Selector)
	}
	return b
}

// decodeValidating decodes a stored ValidatingAdmissionPolicy; before is its last version.
func decodeValidating(rec *storage.Record, before *definition) (*definition, error) {
	var p v1.ValidatingAdmissionPolicy
	if err := json.Unmarshal(rec.Value, &p); err != nil {
		return nil, err
	}
	s := &p.Spec
	d, err := newDefinition(p.Name, match.NewPolicyConstraints(s.MatchConstraints), s.ParamKind, s.FailurePolicy)
	if err != nil {
		return nil, err
	}
	d.program = slotOf(before, p.UID, p.Generation, source{validating: s})
	return d, nil
}

// decodeMutating decodes a stored MutatingAdmissionPolicy; before is its last version.
func decodeMutating(rec *storage.Record, before *definition) (*definition, error) {
	var p v1.MutatingAdmissionPolicy
	if err := json.Unmarshal(rec.Value, &p); err != nil {
		return nil, err
	}
	s := &p.Spec
	d, err := newDefinition(p.Name, match.NewPolicyConstraints(s.MatchConstraints), s.ParamKind, s.FailurePolicy)
	if err != nil {
		return nil, err
	}
	d.again = s.ReinvocationPolicy == v1.IfNeededReinvocationPolicy
	d.program = slotOf(before, p.UID, p.Generation, source{mutating: s})
	return d, nil
}

// decodeValidatingBinding decodes a stored ValidatingAdmissionPolicyBinding.
func decodeValidatingBinding(rec *storage.Record, _ *binding) (*binding, error) {
	var b v1.ValidatingAdmissionPolicyBinding
	if err := json.Unmarshal(rec.Value, &b); err != nil {
		return nil, err
	}
	out := newBinding(b.Name, b.Spec.PolicyName, b.Spec.MatchResources, b.Spec.ParamRef)
	out.actions = b.Spec.ValidationActions
	return out, nil
}

// decodeMutatingBinding decodes a stored MutatingAdmissionPolicyBinding.
func decodeMutatingBinding(rec *storage.Record, _ *binding) (*binding, error) {
	var b v1.MutatingAdmissionPolicyBinding
	if err := json.Unmarshal(rec.Value, &b); err != nil {
		return nil, err
	}
	return newBinding(b.Name, b.Spec.PolicyName, b.Spec.MatchResources, b.Spec.ParamRef), nil
}
