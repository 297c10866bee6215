// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/apiserver"
)

func policyKinds() []*apiserver.Resource {
	return []*apiserver.Resource{
		kind[policyv1.PodDisruptionBudget, *policyv1.PodDisruptionBudget]{
			group: "policy", version: "v1", plural: "poddisruptionbudgets", short: []string{"pdb"},
			status: true, generations: true,
			validate: validateDisruptionBudget,
			columns:  columns("Name", "Min Available", "Max Unavailable", "Allowed Disruptions:integer", "Age"),
			row: func(b *policyv1.PodDisruptionBudget) []any {
				return []any{b.Name, orNA(b.Spec.MinAvailable), orNA(b.Spec.MaxUnavailable), int64(b.Status.DisruptionsAllowed), age(b)}
			},
		}.resource(),
		kind[corev1.ResourceQuota, *corev1.ResourceQuota]{
			version: "v1", plural: "resourcequotas", short: []string{"quota"}, status: true, unconditional: true,
			deletion: apiserver.DeletionRules{ReturnsObject: true},
			columns:  columns("Name", "Request", "Limit", "Age"),
			row: func(q *corev1.ResourceQuota) []any {
				requests, limits := quotaText(q)
				return []any{q.Name, requests, limits, age(q)}
			},
		}.resource(),
		kind[corev1.LimitRange, *corev1.LimitRange]{
			version: "v1", plural: "limitranges", short: []string{"limits"}, unconditional: true, creates: true,
			defaults: defaultLimitRange,
			columns:  columns("Name", "Created At:date"),
			row:      func(l *corev1.LimitRange) []any { return createdRow(l) },
		}.resource(),
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
	for _, name := range keysText(q.Status.Hard) {
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
