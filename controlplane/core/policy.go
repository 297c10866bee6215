// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

func policyKinds() []*resource.Resource {
	return []*resource.Resource{
		kind.Of[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]{
			Group: "policy", Version: "v1", Plural: "poddisruptionbudgets", Short: []string{"pdb"}, NameRule: kind.PathSegment,
			Metadata: kind.Metadata{Unchecked: true, StatusUnchecked: true},
			Status:   true, Generations: true,
			Validate: validateDisruptionBudget, ValidateStatus: validateBudgetStatus,
			Columns: kind.Columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"),
			Row: func(b *policyv1.PodDisruptionBudget) []any {
				return []any{b.Name, orNA(b.Spec.MinAvailable), orNA(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed), kind.Age(b)}
			},
		}.Resource(),
		kind.Of[corev1.ResourceQuota, *corev1.ResourceQuota]{
			Version: "v1", Plural: "resourcequotas", Short: []string{"quota"}, Status: true, Unconditional: true,
			Validate: validateQuota, ValidateStatus: validateQuotaStatus,
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Columns:  kind.Columns("Name", "Request", "Limit", "Age"),
			Row: func(q *corev1.ResourceQuota) []any {
				requests, limits := quotaText(q)
				return []any{q.Name, requests, limits, kind.Age(q)}
			},
		}.Resource(),
		kind.Of[corev1.LimitRange, *corev1.LimitRange]{
			Version: "v1", Plural: "limitranges", Short: []string{"limits"}, Unconditional: true, Creates: true,
			Defaults: defaultLimitRange, Validate: validateLimitRange,
			Prepare: func(_ context.Context, l, _ *corev1.LimitRange) { kind.OrDefault(&l.Name, string(l.UID)) }, // its own name for what has none
			Columns: kind.Columns("Name", "Created At:date"),
			Row:     func(l *corev1.LimitRange) []any { return kind.CreatedRow(l) },
		}.Resource(),
	}
}

func orNA(v *intstr.IntOrString) string {
	if v == nil {
		return "N/A"
	}
	return v.String()
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
	for name, quantity := range from {
		if _, ok := (*to)[name]; !ok {
			(*to)[name] = quantity.DeepCopy()
		}
	}
}
