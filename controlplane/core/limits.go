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
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/controlplane/core/valid"
)

func validateLimitRange(l, _ *corev1.LimitRange) field.ErrorList {
	var errs field.ErrorList
	types := sets.New[corev1.LimitType]()
	for i := range l.Spec.Limits {
		item, at := &l.Spec.Limits[i], field.NewPath("spec", "limits").Index(i)
		errs = append(errs, validLimitType(at.Child("type"), item.Type)...)
		if types.Has(item.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), item.Type))
		}
		types.Insert(item.Type)
		errs = append(errs, validLimits(at, item)...)
	}
	return errs
}

func validLimitType(at *field.Path, t corev1.LimitType) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(string(t)) {
		errs = append(errs, field.Invalid(at, t, problem))
	}
	switch t {
	case corev1.LimitTypePod, corev1.LimitTypeContainer, corev1.LimitTypePersistentVolumeClaim:
	default:
		if len(errs) == 0 && !strings.Contains(string(t), "/") {
			errs = append(errs, field.Invalid(at, t, "must be a standard limit type or fully qualified"))
		}
	}
	return errs
}

// validLimits checks the amounts of one item of a LimitRange, each and against
// each other.
func validLimits(at *field.Path, item *corev1.LimitRangeItem) field.ErrorList {
	var errs field.ErrorList
	all := sets.New[corev1.ResourceName]()
	lists := []struct {
		name string
		list corev1.ResourceList
	}{
		{"max", item.Max},
		{"min", item.Min},
		{"default", item.Default},
		{"defaultRequest", item.DefaultRequest},
		{"maxLimitRequestRatio", item.MaxLimitRequestRatio},
	}
	for _, part := range lists {
		if item.Type == corev1.LimitTypePod && strings.HasPrefix(part.name, "default") {
			if len(part.list) > 0 {
				errs = append(errs, field.Forbidden(at.Child(part.name), "may not be specified when `type` is 'Pod'"))
			}
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(part.list)) {
			all.Insert(name)
			p := at.Child(part.name).Key(string(name))
			errs = append(errs, validResource(p, name)...)
			if item.Type == corev1.LimitTypePod || item.Type == corev1.LimitTypeContainer {
				errs = append(errs, validOfContainer(p, name)...)
			}
		}
	}
	if item.Type == corev1.LimitTypePersistentVolumeClaim && !has(item.Min, corev1.ResourceStorage) && !has(item.Max, corev1.ResourceStorage) {
		errs = append(errs, field.Required(at.Child("limits"), "either minimum or maximum storage value is required, but neither was provided"))
	}
	for _, name := range sets.List(all) {
		errs = append(errs, validOrder(at, item, name)...)
	}
	return errs
}

func has(l corev1.ResourceList, name corev1.ResourceName) bool {
	_, ok := l[name]
	return ok
}

// validOrder checks that the amounts of one resource are in order: min, default
// request, default, max. The values in the messages are those that Kubernetes
// shows.
func validOrder(at *field.Path, item *corev1.LimitRangeItem, name corev1.ResourceName) field.ErrorList {
	var errs field.ErrorList
	refuse := func(in string, shown resource.Quantity, problem string) {
		errs = append(errs, field.Invalid(at.Child(in).Key(string(name)), shown.String(), problem))
	}
	least, hasMin := item.Min[name]
	most, hasMax := item.Max[name]
	request, hasRequest := item.DefaultRequest[name]
	limit, hasLimit := item.Default[name]
	ratio, hasRatio := item.MaxLimitRequestRatio[name]
	if hasMin && hasMax && least.Cmp(most) > 0 {
		refuse("min", least, "min value "+least.String()+" is greater than max value "+most.String())
	}
	if hasRequest && hasMin && least.Cmp(request) > 0 {
		refuse("defaultRequest", request, "min value "+least.String()+" is greater than default request value "+request.String())
	}
	if hasRequest && hasMax && request.Cmp(most) > 0 {
		refuse("defaultRequest", request, "default request value "+request.String()+" is greater than max value "+most.String())
	}
	if hasRequest && hasLimit && request.Cmp(limit) > 0 {
		refuse("defaultRequest", request, "default request value "+request.String()+" is greater than default limit value "+limit.String())
	}
	if hasLimit && hasMin && least.Cmp(limit) > 0 {
		refuse("default", least, "min value "+least.String()+" is greater than default value "+limit.String())
	}
	if hasLimit && hasMax && limit.Cmp(most) > 0 {
		refuse("default", most, "default value "+limit.String()+" is greater than max value "+most.String())
	}
	if hasRatio && ratio.Cmp(*resource.NewQuantity(1, resource.DecimalSI)) < 0 {
		refuse("maxLimitRequestRatio", ratio, "ratio "+ratio.String()+" is less than 1")
	}
	if hasRatio && hasMin && hasMax {
		if most, limit := bounds(ratio, least, most); most > limit {
			refuse("maxLimitRequestRatio", ratio, fmt.Sprintf("ratio %s is greater than max/min = %f", ratio.String(), limit))
		}
	}
	overcommitted := valid.IsNativeResource(string(name)) && !valid.IsHugePages(string(name))
	if !overcommitted && hasLimit && hasRequest && limit.Cmp(request) != 0 {
		refuse("defaultRequest", request, fmt.Sprintf("default value %s must equal to defaultRequest value %s in %s", limit.String(), request.String(), name))
	}
	return errs
}

// bounds returns a ratio and the largest that an amount and a larger one allow: of
// thousandths, unless those would not fit.
func bounds(ratio, least, most resource.Quantity) (asked, limit float64) {
	fit := resource.MaxMilliValue
	if ratio.Value() < fit && least.Value() < fit && most.Value() < fit {
		return float64(ratio.MilliValue()) / 1000, float64(most.MilliValue()) / float64(least.MilliValue())
	}
	return float64(ratio.Value()), float64(most.Value()) / float64(least.Value())
}

// validResource checks the name of a resource.
func validResource(at *field.Path, name corev1.ResourceName) field.ErrorList {
	var errs field.ErrorList
	for _, problem := range validation.IsQualifiedName(string(name)) {
		errs = append(errs, field.Invalid(at, name, problem))
	}
	if len(errs) == 0 && !strings.Contains(string(name), "/") && !isStandard(name) && !isQuotaOnly(name) {
		errs = append(errs, field.Invalid(at, name, "must be a standard resource type or fully qualified"))
	}
	return errs
}

// validOfContainer checks the name of a resource of containers.
func validOfContainer(at *field.Path, name corev1.ResourceName) field.ErrorList {
	switch {
	case strings.Contains(string(name), "/"), name == corev1.ResourceCPU, name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage,
		strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return nil
	}
	return field.ErrorList{field.Invalid(at, name, "must be a standard resource for containers")}
}

// isStandard reports whether a resource is known without a domain.
func isStandard(name corev1.ResourceName) bool {
	switch name {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, corev1.ResourceStorage:
		return true
	}
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
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
		errs = append(errs, valid.Quantity(p, amount)...)
		domain, _, _ := strings.Cut(string(name), "/")
		extended := qualified && domain != "kubernetes.io" && !strings.HasSuffix(domain, ".kubernetes.io") && !strings.HasPrefix(domain, "requests.")
		if (isCount(name) || extended) && amount.MilliValue()%1000 != 0 {
			errs = append(errs, field.Invalid(p, amount.String(), "must be an integer"))
		}
	}
	return errs
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
