// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"
	"strings"

	v1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
)

// target is what rules compare with: a resource in one version, and the operation.
type target struct {
	resource    schema.GroupVersionResource
	subresource string
	operation   resource.Operation
	namespaced  bool
}

// matches reports whether a rule names a target.
func (t *target) matches(r *v1.RuleWithOperations) bool {
	return t.inScope(r.Scope) && t.inOperations(r.Operations) && has(r.APIGroups, t.resource.Group) &&
		has(r.APIVersions, t.resource.Version) && t.inResources(r.Resources)
}

func has(values []string, value string) bool {
	return slices.Contains(values, "*") || slices.Contains(values, value)
}

func (t *target) inScope(scope *v1.ScopeType) bool {
	if scope == nil {
		return true
	}
	switch *scope {
	case v1.AllScopes:
		return true
	case v1.NamespacedScope:
		return t.namespaced
	case v1.ClusterScope:
		return !t.namespaced
	}
	return false
}

func (t *target) inOperations(operations []v1.OperationType) bool {
	return slices.Contains(operations, v1.OperationAll) || slices.Contains(operations, v1.OperationType(t.operation))
}

// inResources matches names like "pods", "pods/status", "*", "pods/*", "*/scale" and "*/*".
func (t *target) inResources(names []string) bool {
	for _, n := range names {
		plural, sub, _ := strings.Cut(n, "/")
		if (plural == "*" || plural == t.resource.Resource) && (sub == "*" || sub == t.subresource) {
			return true
		}
	}
	return false
}

// exempt reports whether webhooks and policies are never called for a kind: those that
// configure them, so that a configuration which refuses everything can be deleted.
func exempt(kind schema.GroupVersionKind) bool {
	if kind.Group != v1.GroupName {
		return false
	}
	switch kind.Kind {
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration",
		"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
		"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding":
		return true
	}
	return false
}

// exemptFromPolicies reports whether policies are not evaluated for a resource and what is
// below it: policies and their bindings, and the reviews that say who a user is and what it
// may do. Other resources that are not stored are evaluated, also where their kind is of the
// same group: serviceaccounts/token, pods/eviction and pods/binding.
func exemptFromPolicies(r schema.GroupResource) bool {
	switch r.Group {
	case v1.GroupName:
		switch r.Resource {
		case "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings":
			return true
		}
	}
	return isReview(r)
}

// isReview reports whether a resource says who a user is or what it may do.
func isReview(r schema.GroupResource) bool {
	switch r.Group {
	case authenticationv1.GroupName:
		return r.Resource == "tokenreviews" || r.Resource == "selfsubjectreviews"
	case authorizationv1.GroupName:
		switch r.Resource {
		case "subjectaccessreviews", "localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews":
			return true
		}
	}
	return false
}
