// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
)

// Limited says what objects may use only where a quota of their namespace bounds it: an entry of
// limitedResources in the configuration of the plugin ResourceQuota (ResourceQuotaConfiguration of
// apiserver.config.k8s.io/v1).
type Limited struct {
	// Group and Resource of the objects. Resource is required.
	Group    string `json:"apiGroup,omitempty"`
	Resource string `json:"resource"`
	// Contains are parts of names under which quotas count: what an object uses under a name with
	// one of them needs a quota for that name. "pods" is in "pods" and in "count/pods".
	Contains []string `json:"matchContains,omitempty"`
	// Scopes are those that need a quota which selects by the same scope. They hold for Pods and
	// claims, whatever Resource says, as in kube-apiserver.
	Scopes []corev1.ScopedResourceSelectorRequirement `json:"matchScopes,omitempty"`
}

// CheckLimited validates a list.
func CheckLimited(list []Limited) error {
	operators := []corev1.ScopeSelectorOperator{corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist}
	for i := range list {
		if list[i].Resource == "" {
			return fmt.Errorf("limitedResources[%d].resource is missing: name a resource, such as pods", i)
		}
		for n, scope := range list[i].Scopes {
			if !slices.Contains(operators, scope.Operator) {
				return fmt.Errorf("limitedResources[%d].matchScopes[%d].operator is %q, want one of %v", i, n, scope.Operator, operators)
			}
		}
	}
	return nil
}

// needs are what has to be bounded by quotas, less what those looked at bound.
type needs struct {
	names  sets.Set[corev1.ResourceName]
	scopes []corev1.ScopedResourceSelectorRequirement
}

// needsOf returns what an object that uses something needs quotas for.
func needsOf(limited []Limited, of schema.GroupResource, obj any, uses corev1.ResourceList) needs {
	if len(limited) == 0 {
		return needs{}
	}
	n := needs{names: sets.Set[corev1.ResourceName]{}}
	for i := range limited {
		l := &limited[i]
		n.scopes = append(n.scopes, matching(l.Scopes, obj)...)
		if l.Group != of.Group || l.Resource != of.Resource {
			continue
		}
		for name, amount := range uses {
			if amount.Sign() > 0 && slices.ContainsFunc(l.Contains, func(part string) bool { return strings.Contains(string(name), part) }) {
				n.names.Insert(name)
			}
		}
	}
	return n
}

// matching returns the requirements that an object meets.
func matching(list []corev1.ScopedResourceSelectorRequirement, obj any) []corev1.ScopedResourceSelectorRequirement {
	var out []corev1.ScopedResourceSelectorRequirement
	for _, r := range list {
		if scoped(r, obj) {
			out = append(out, r)
		}
	}
	return out
}

// selected takes away the scopes of a quota that an object is in, even if it is not in all of them.
func (n *needs) selected(q *corev1.ResourceQuotaSpec, obj any) {
	if len(n.scopes) == 0 {
		return
	}
	by := matching(requirements(q), obj)
	n.scopes = slices.DeleteFunc(n.scopes, func(need corev1.ScopedResourceSelectorRequirement) bool {
		return slices.ContainsFunc(by, func(r corev1.ScopedResourceSelectorRequirement) bool { return r.ScopeName == need.ScopeName })
	})
}

// unmet returns why a request is refused, nil if nothing is left. Kubernetes has no status for
// scopes: an error without one is answered with 500.
func (n *needs) unmet(r *resource.AdmissionRequest) error {
	switch {
	case len(n.names) > 0:
		return admission.Forbidden(r, "insufficient quota to consume: %s", textOf(sets.List(n.names)))
	case len(n.scopes) > 0:
		return fmt.Errorf("insufficient quota to match these scopes: %v", n.scopes)
	}
	return nil
}
