// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/steer-dev/steer/crdvalidation"
)

// taken holds the names that the other definitions of a group have accepted.
type taken struct {
	// resources are plural, singular and short names.
	resources map[string]bool
	// kinds are kinds and list kinds.
	kinds map[string]bool
}

// takenBy collects the accepted names of definitions, all of one group.
func takenBy(others []*v1.CustomResourceDefinition) taken {
	t := taken{resources: map[string]bool{}, kinds: map[string]bool{}}
	for _, o := range others {
		n := &o.Status.AcceptedNames
		t.resources[n.Plural], t.resources[n.Singular] = true, true
		for _, s := range n.ShortNames {
			t.resources[s] = true
		}
		t.kinds[n.Kind], t.kinds[n.ListKind] = true, true
	}
	delete(t.resources, "")
	delete(t.kinds, "")
	return t
}

// settle brings the status of a definition to what follows from its spec and
// from the names that others have: accepted names, the conditions
// KubernetesAPIApprovalPolicyConformant, NamesAccepted and Established. What
// follows already is left alone, so that settling twice changes nothing.
func settle(crd *v1.CustomResourceDefinition, others taken) {
	if c := approval(crd); c != nil {
		apihelpers.SetCRDCondition(crd, *c)
	}
	apihelpers.SetCRDCondition(crd, acceptNames(crd, others))
	if apihelpers.IsCRDConditionTrue(crd, v1.Established) {
		return // for good: its objects may exist
	}
	established := v1.CustomResourceDefinitionCondition{
		Type: v1.Established, Status: v1.ConditionFalse,
		Reason: "NotAccepted", Message: "not all names are accepted",
	}
	switch {
	case !apihelpers.IsCRDConditionTrue(crd, v1.NamesAccepted):
	case !trustsSomething(crd):
		established.Reason, established.Message = "InvalidCABundle", "The conversion webhook CABundle is invalid"
	default:
		established.Status = v1.ConditionTrue
		established.Reason, established.Message = "InitialNamesAccepted", "the initial names have been accepted"
	}
	apihelpers.SetCRDCondition(crd, established)
}

// trustsSomething reports whether the CA bundle of a conversion webhook, if there
// is one, holds certificates.
func trustsSomething(crd *v1.CustomResourceDefinition) bool {
	c := crd.Spec.Conversion
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		return true
	}
	return len(crdvalidation.CABundle(nil, c.Webhook.ClientConfig.CABundle)) == 0
}

// acceptNames accepts every requested name that is free and returns the
// condition NamesAccepted. Of several conflicts the last one is reported.
func acceptNames(crd *v1.CustomResourceDefinition, others taken) v1.CustomResourceDefinitionCondition {
	want, have := &crd.Spec.Names, &crd.Status.AcceptedNames
	condition := v1.CustomResourceDefinitionCondition{
		Type: v1.NamesAccepted, Status: v1.ConditionTrue,
		Reason: "NoConflicts", Message: "no conflicts found",
	}
	refuse := func(reason, message string) {
		condition.Status, condition.Reason, condition.Message = v1.ConditionFalse, reason, message
	}
	accept := func(want string, have *string, used map[string]bool, reason string) {
		if want != *have && used[want] {
			refuse(reason, inUse(want))
			return
		}
		*have = want
	}
	accept(want.Plural, &have.Plural, others.resources, "PluralConflict")
	accept(want.Singular, &have.Singular, others.resources, "SingularConflict")
	var used []string
	for _, name := range want.ShortNames {
		if others.resources[name] && !slices.Contains(have.ShortNames, name) {
			used = append(used, inUse(name))
		}
	}
	switch len(used) {
	case 0:
		have.ShortNames = slices.Clone(want.ShortNames)
	case 1:
		refuse("ShortNamesConflict", used[0])
	default:
		refuse("ShortNamesConflict", "["+strings.Join(used, ", ")+"]")
	}
	accept(want.Kind, &have.Kind, others.kinds, "KindConflict")
	accept(want.ListKind, &have.ListKind, others.kinds, "ListKindConflict")
	have.Categories = slices.Clone(want.Categories)
	return condition
}

func inUse(name string) string { return fmt.Sprintf("%q is already in use", name) }

// approval returns the condition that groups of the Kubernetes community carry,
// or nil for any other group.
func approval(crd *v1.CustomResourceDefinition) *v1.CustomResourceDefinitionCondition {
	if !apihelpers.IsProtectedCommunityGroup(crd.Spec.Group) {
		return nil
	}
	c := &v1.CustomResourceDefinitionCondition{Type: v1.KubernetesAPIApprovalPolicyConformant, Status: v1.ConditionFalse}
	state, message := apihelpers.GetAPIApprovalState(crd.Annotations)
	c.Message = message
	switch state {
	case apihelpers.APIApproved:
		c.Status, c.Reason = v1.ConditionTrue, "ApprovedAnnotation"
	case apihelpers.APIApprovalBypassed:
		c.Reason = "UnapprovedAnnotation"
	case apihelpers.APIApprovalMissing:
		c.Reason = "MissingAnnotation"
	case apihelpers.APIApprovalInvalid:
		c.Reason = "InvalidAnnotation"
	default:
		c.Status, c.Reason = v1.ConditionUnknown, "UnknownAnnotation"
	}
	return c
}
