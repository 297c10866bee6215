// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// names returns the names of a list, in one order.
func names(l corev1.ResourceList) []corev1.ResourceName { return slices.Sorted(maps.Keys(l)) }

// only returns the part of a list that has the names of another.
func only(l, named corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range l {
		if _, ok := named[name]; ok {
			out[name] = amount
		}
	}
	return out
}

// increase returns by how much amounts have grown, without those that have not.
func increase(now, before corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, amount := range now {
		more := amount.DeepCopy()
		if had, ok := before[name]; ok {
			more.Sub(had)
		}
		if more.Sign() > 0 {
			out[name] = more
		}
	}
	return out
}

// same reports whether two lists have the same names and amounts.
func same(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(x, y resource.Quantity) bool { return x.Cmp(y) == 0 })
}

// text lists amounts as messages do.
func text(l corev1.ResourceList) string {
	var out []string
	for _, name := range names(l) {
		amount := l[name]
		out = append(out, string(name)+"="+amount.String())
	}
	return strings.Join(out, ",")
}

// textOf lists names as messages do.
func textOf(list []corev1.ResourceName) string {
	var out []string
	for _, name := range list {
		out = append(out, string(name))
	}
	return strings.Join(out, ",")
}
