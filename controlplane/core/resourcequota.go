// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// resourceQuotas describes ResourceQuotas.
func resourceQuotas() *resource.Resource {
	return kind.Definition[corev1.ResourceQuota, *corev1.ResourceQuota]{
		Version: "v1", Plural: "resourcequotas", Short: []string{"quota"}, Status: true, Unconditional: true,
		Validate: validateQuota, ValidateStatus: validateQuotaStatus,
		Deletion: resource.DeletionRules{ReturnsObject: true},
		Columns:  kind.Columns("Name", "Request", "Limit", "Age"),
		Row: func(q *corev1.ResourceQuota) []any {
			requests, limits := quotaText(q)
			return []any{q.Name, requests, limits, kind.Age(q)}
		},
	}.Resource()
}

// quotaText shows used and allowed amounts, requests and limits apart.
func quotaText(q *corev1.ResourceQuota) (requests, limits string) {
	var r, l []string
	for _, name := range kind.SortedKeys(q.Status.Hard) {
		used, hard := q.Status.Used[corev1.ResourceName(name)], q.Status.Hard[corev1.ResourceName(name)]
		text := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(name, "limits") {
			l = append(l, text)
		} else {
			r = append(r, text)
		}
	}
	return strings.Join(r, ", "), strings.Join(l, ", ")
}

func validateQuota(q, old *corev1.ResourceQuota) field.ErrorList {
	at := field.NewPath("spec")
	errs := validQuotaAmounts(at.Child("hard"), q.Spec.Hard)
	errs = append(errs, validScopes(at.Child("scopes"), q)...)
	errs = append(errs, validScopeSelector(at.Child("scopeSelector", "matchExpressions"), q)...)
	if old != nil && !equality.Semantic.DeepEqual(sets.New(q.Spec.Scopes...), sets.New(old.Spec.Scopes...)) {
		errs = append(errs, field.Invalid(at.Child("scopes"), q.Spec.Scopes, "field is immutable"))
	}
	return errs
}

func validateQuotaStatus(q, _ *corev1.ResourceQuota) field.ErrorList {
	at := field.NewPath("status")
	return append(validQuotaAmounts(at.Child("hard"), q.Status.Hard), validQuotaAmounts(at.Child("used"), q.Status.Used)...)
}

func validQuotaAmounts(at *field.Path, l corev1.ResourceList) field.ErrorList {
	var errs field.ErrorList
	for _, name := range slices.Sorted(maps.Keys(l)) {
		p, amount := at.Key(string(name)), l[name]
		errs = append(errs, validResource(p, name)...)
		qualified := strings.Contains(string(name), "/")
		standard := isStandard(name) && name != corev1.ResourceStorage || isQuotaOnly(name)
		if !qualified && !standard {
			errs = append(errs, field.Invalid(p, name, "must be a standard resource for quota"))
		}
		f := valid.At(p, &errs)
		f.QuantityNotNegative(valid.Self, amount)
		domain, _, _ := strings.Cut(string(name), "/")
		extended := qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") && !strings.HasPrefix(domain, "requests.")
		if (isCount(name) || extended) && amount.MilliValue()%1000 != 0 {
			errs = append(errs, field.Invalid(p, amount.String(), "must be an integer"))
		}
	}
	return errs
}

// isQuotaOnly reports whether a name without a domain is known only to quotas.
func isQuotaOnly(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage, corev1.ResourceRequestsStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	return isCount(name) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

// isCount reports whether a name without a domain counts objects.
func isCount(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourcePods, corev1.ResourceQuotas, corev1.ResourceServices, corev1.ResourceReplicationControllers, corev1.ResourceSecrets,
		corev1.ResourceConfigMaps, corev1.ResourcePersistentVolumeClaims, corev1.ResourceServicesNodePorts, corev1.ResourceServicesLoadBalancers:
		return true
	}
	return false
}

// validScopes checks the scopes of a quota: that there are such, that they hold
// for what is limited, and that an object can be in all of them.
func validScopes(at *field.Path, q *corev1.ResourceQuota) field.ErrorList {
	return validScopeSet(at, q.Spec.Scopes, q.Spec.Hard, q.Spec.Scopes)
}

func validScopeSet(at *field.Path, scopes []corev1.ResourceQuotaScope, hard corev1.ResourceList, shown any) field.ErrorList {
	var errs field.ErrorList
	set := sets.New(scopes...)
	for _, scope := range scopes {
		if !isScope(scope) {
			errs = append(errs, field.Invalid(at, shown, "unsupported scope"))
		}
		for name := range hard {
			if isScope(scope) && !holdsFor(scope, name) {
				errs = append(errs, field.Invalid(at, shown, "unsupported scope applied to resource"))
			}
		}
	}
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if set.HasAll(pair[0], pair[1]) {
			errs = append(errs, field.Invalid(at, shown, "conflicting scopes"))
		}
	}
	return errs
}

func isScope(s corev1.ResourceQuotaScope) bool {
	switch s {
	case corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
		corev1.ResourceQuotaScopeVolumeAttributesClass:
		return true
	}
	return false
}

// holdsFor reports whether a resource can be limited in a scope.
func holdsFor(scope corev1.ResourceQuotaScope, name corev1.ResourceName) bool {
	switch scope {
	case corev1.ResourceQuotaScopeBestEffort:
		return name == corev1.ResourcePods
	case corev1.ResourceQuotaScopeVolumeAttributesClass:
		return name == corev1.ResourcePersistentVolumeClaims || name == corev1.ResourceRequestsStorage
	}
	switch name {
	case corev1.ResourcePods, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix) || strings.HasPrefix(string(name), corev1.ResourceRequestsHugePagesPrefix)
}

func validScopeSelector(at *field.Path, q *corev1.ResourceQuota) field.ErrorList {
	if q.Spec.ScopeSelector == nil {
		return nil
	}
	var errs field.ErrorList
	var scopes []corev1.ResourceQuotaScope
	for _, r := range q.Spec.ScopeSelector.MatchExpressions {
		scopes = append(scopes, r.ScopeName)
		switch r.ScopeName {
		case corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass:
		default:
			if isScope(r.ScopeName) && r.Operator != corev1.ScopeSelectorOpExists {
				errs = append(errs, field.Invalid(at.Child("operator"), r.Operator,
					"must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"))
			}
		}
		switch r.Operator {
		case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
			if len(r.Values) == 0 {
				errs = append(errs, field.Required(at.Child("values"), "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"))
			}
		case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
			if len(r.Values) > 0 {
				errs = append(errs, field.Invalid(at.Child("values"), r.Values, "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"))
			}
		default:
			errs = append(errs, field.Invalid(at.Child("operator"), r.Operator, "not a valid selector operator"))
		}
	}
	return append(errs, validScopeSet(at.Child("scopeName"), scopes, q.Spec.Hard, scopes)...)
}
