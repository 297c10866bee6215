// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/valid"
)

// limitRanges describes LimitRanges.
func limitRanges() *resource.Resource {
	return kind.Definition[corev1.LimitRange, *corev1.LimitRange]{
		Version: "v1", Plural: "limitranges", Short: []string{"limits"}, Unconditional: true, Creates: true,
		Defaults: defaultLimitRange, Validate: validateLimitRange,
		Prepare: func(_ context.Context, l, _ *corev1.LimitRange) { kind.OrDefault(&l.Name, string(l.UID)) }, // its own name for what has none
		Columns: kind.Columns("Name", "Created At:date"),
		Row:     func(l *corev1.LimitRange) []any { return kind.CreatedRow(l) },
	}.Resource()
}

// defaultLimitRange derives the limits and requests of containers that say
// nothing from the largest and smallest that are allowed.
func defaultLimitRange(l *corev1.LimitRange) {
	for i := range l.Spec.Limits {
		item := &l.Spec.Limits[i]
		if item.Type != corev1.LimitTypeContainer {
			continue
		}
		copyMissing(&item.Default, item.Max)
		copyMissing(&item.DefaultRequest, item.Default)
		copyMissing(&item.DefaultRequest, item.Min)
	}
}

func copyMissing(to *corev1.ResourceList, from corev1.ResourceList) {
	if *to == nil {
		*to = corev1.ResourceList{}
	}
	for name, amount := range from {
		if _, ok := (*to)[name]; !ok {
			(*to)[name] = amount.DeepCopy()
		}
	}
}

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
	refuse := func(in string, shown quantity.Quantity, problem string) {
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
	if hasRatio && ratio.Cmp(*quantity.NewQuantity(1, quantity.DecimalSI)) < 0 {
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
func bounds(ratio, least, most quantity.Quantity) (asked, limit float64) {
	fit := quantity.MaxMilliValue
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
