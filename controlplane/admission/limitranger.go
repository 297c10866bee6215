// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// LimitRanger gives the containers of new Pods the default requests and limits
// of the LimitRanges in their namespace, and holds Pods and claims to them.
type LimitRanger struct{ ranges *Lister[corev1.LimitRange] }

var _ resource.Admission = (*LimitRanger)(nil)

// NewLimitRanger returns the admission over the LimitRanges of a store.
func NewLimitRanger(store storage.Viewer) *LimitRanger {
	return &LimitRanger{NewLister[corev1.LimitRange](store, "limitranges")}
}

// LimitAnnotation names the requests and limits that a LimitRange has set.
const LimitAnnotation = "kubernetes.io/limit-ranger"

// Mutates implements [resource.Mutator].
func (l *LimitRanger) Mutates(r *resource.AdmissionRequest) bool {
	return created[corev1.Pod](r) != nil
}

// Admit implements [resource.Admission].
func (l *LimitRanger) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	pod := created[corev1.Pod](r)
	if pod == nil {
		return nil
	}
	ranges, err := l.ranges.All(r.Namespace + "/")
	if err != nil {
		return err
	}
	for _, limits := range ranges {
		fillLimits(pod, limits)
	}
	return nil
}

// fillLimits sets what containers do not say, and notes it in an annotation.
func fillLimits(pod *corev1.Pod, limits *corev1.LimitRange) {
	requests, limit := corev1.ResourceList{}, corev1.ResourceList{}
	for i := range limits.Spec.Limits {
		if item := &limits.Spec.Limits[i]; item.Type == corev1.LimitTypeContainer {
			maps.Copy(requests, item.DefaultRequest)
			maps.Copy(limit, item.Default)
		}
	}
	var set []string
	fill := func(c *corev1.Container, what string) {
		for _, part := range []struct {
			has   *corev1.ResourceList
			given corev1.ResourceList
			name  string
		}{{&c.Resources.Requests, requests, "request"}, {&c.Resources.Limits, limit, "limit"}} {
			var names []string
			for name, amount := range part.given {
				if _, ok := (*part.has)[name]; ok {
					continue
				}
				if *part.has == nil {
					*part.has = corev1.ResourceList{}
				}
				(*part.has)[name] = amount.DeepCopy()
				names = append(names, string(name))
			}
			if len(names) > 0 {
				slices.Sort(names)
				set = append(set, fmt.Sprintf("%s %s for %s %s", strings.Join(names, ", "), part.name, what, c.Name))
			}
		}
	}
	for i := range pod.Spec.Containers {
		fill(&pod.Spec.Containers[i], "container")
	}
	for i := range pod.Spec.InitContainers {
		fill(&pod.Spec.InitContainers[i], "init container")
	}
	if len(set) > 0 {
		if pod.Annotations == nil {
			pod.Annotations = map[string]string{}
		}
		pod.Annotations[LimitAnnotation] = "LimitRanger plugin set: " + strings.Join(set, "; ")
	}
}

// Validate implements [resource.Admission].
func (l *LimitRanger) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	pod, claim := created[corev1.Pod](r), written[corev1.PersistentVolumeClaim](r)
	if pod == nil && (claim == nil || r.Old != nil && r.Old.GetDeletionTimestamp() != nil) {
		return nil
	}
	ranges, err := l.ranges.All(r.Namespace + "/")
	if err != nil {
		return err
	}
	for _, limits := range ranges {
		var errs []error
		for i := range limits.Spec.Limits {
			c := check{item: &limits.Spec.Limits[i]}
			if pod != nil {
				c.pod(pod)
			} else {
				c.claim(claim)
			}
			errs = append(errs, c.errs...)
		}
		if err := utilerrors.NewAggregate(errs); err != nil {
			return Forbidden(r, "%w", err)
		}
	}
	return nil
}

// check holds amounts to one item of a LimitRange.
type check struct {
	item *corev1.LimitRangeItem
	errs []error
}

func (c *check) refuse(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *check) pod(pod *corev1.Pod) {
	switch c.item.Type {
	case corev1.LimitTypeContainer:
		for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
			for i := range containers {
				c.amounts(containers[i].Resources.Requests, containers[i].Resources.Limits)
			}
		}
	case corev1.LimitTypePod:
		c.amounts(PodRequests(&pod.Spec), PodLimits(&pod.Spec))
	}
}

func (c *check) claim(claim *corev1.PersistentVolumeClaim) {
	if c.item.Type != corev1.LimitTypePersistentVolumeClaim {
		return
	}
	requests := claim.Spec.Resources.Requests
	for _, name := range sorted(c.item.Min) {
		c.min(name, c.item.Min[name], requests, nil)
	}
	for _, name := range sorted(c.item.Max) {
		most := c.item.Max[name]
		if asked, ok := requests[name]; !ok {
			c.refuse("maximum %s usage per %s is %s.  No request is specified", name, c.item.Type, most.String())
		} else if asked.Cmp(most) > 0 {
			c.refuse("maximum %s usage per %s is %s, but request is %s", name, c.item.Type, most.String(), asked.String())
		}
	}
}

// amounts checks the requests and limits of a container or of a Pod as a whole.
func (c *check) amounts(requests, limits corev1.ResourceList) {
	for _, name := range sorted(c.item.Min) {
		c.min(name, c.item.Min[name], requests, limits)
	}
	for _, name := range sorted(c.item.Max) {
		most := c.item.Max[name]
		asked, hasRequest := requests[name]
		limit, hasLimit := limits[name]
		switch {
		case !hasLimit:
			c.refuse("maximum %s usage per %s is %s.  No limit is specified", name, c.item.Type, most.String())
		case limit.Cmp(most) > 0:
			c.refuse("maximum %s usage per %s is %s, but limit is %s", name, c.item.Type, most.String(), limit.String())
		case hasRequest && asked.Cmp(most) > 0:
			c.refuse("maximum %s usage per %s is %s, but request is %s", name, c.item.Type, most.String(), asked.String())
		}
	}
	for _, name := range sorted(c.item.MaxLimitRequestRatio) {
		c.ratio(name, c.item.MaxLimitRequestRatio[name], requests, limits)
	}
}

func (c *check) min(name corev1.ResourceName, least quantity.Quantity, requests, limits corev1.ResourceList) {
	asked, hasRequest := requests[name]
	limit, hasLimit := limits[name]
	switch {
	case !hasRequest:
		c.refuse("minimum %s usage per %s is %s.  No request is specified", name, c.item.Type, least.String())
	case asked.Cmp(least) < 0:
		c.refuse("minimum %s usage per %s is %s, but request is %s", name, c.item.Type, least.String(), asked.String())
	case hasLimit && limit.Cmp(least) < 0:
		c.refuse("minimum %s usage per %s is %s, but limit is %s", name, c.item.Type, least.String(), limit.String())
	}
}

func (c *check) ratio(name corev1.ResourceName, most quantity.Quantity, requests, limits corev1.ResourceList) {
	asked, limit := requests[name], limits[name]
	switch {
	case asked.IsZero():
		c.refuse("%s max limit to request ratio per %s is %s, but no request is specified or request is 0", name, c.item.Type, most.String())
	case limit.IsZero():
		c.refuse("%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0", name, c.item.Type, most.String())
	default:
		if is := limit.AsApproximateFloat64() / asked.AsApproximateFloat64(); is > most.AsApproximateFloat64() {
			c.refuse("%s max limit to request ratio per %s is %s, but provided ratio is %f", name, c.item.Type, most.String(), is)
		}
	}
}

// sorted returns the names of a list in one order.
func sorted(l corev1.ResourceList) []corev1.ResourceName { return slices.Sorted(maps.Keys(l)) }
