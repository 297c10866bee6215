// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package disruption

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/steer-dev/steer/storage"
)

// deletionTimeout is how long a Pod whose eviction was allowed counts as gone
// while it is not.
const deletionTimeout = 2 * time.Minute

// judge gives a budget the status that follows from what is there, and returns
// when it has to be looked at again; the zero time if only after a write.
func (c *Controller) judge(view storage.View, b *policyv1.PodDisruptionBudget, now time.Time) (again time.Time) {
	s := &b.Status
	var expected, desired int
	about, err := c.members(view, b)
	if err == nil {
		expected, desired, err = c.wanted(view, b, about)
	}
	if err != nil {
		// Without a count nothing may be evicted.
		s.DisruptionsAllowed, s.ObservedGeneration = 0, b.Generation
		setCondition(b, metav1.ConditionFalse, policyv1.SyncFailedReason, err.Error())
		return time.Time{}
	}
	disrupted := map[string]metav1.Time{}
	healthy := 0
	for _, p := range about {
		if p.deleting {
			continue
		}
		if at, allowed := s.DisruptedPods[p.name]; allowed {
			if end := at.Add(deletionTimeout); now.Before(end) {
				disrupted[p.name] = at
				if again.IsZero() || end.Before(again) {
					again = end
				}
				continue
			}
		}
		if p.ready {
			healthy++
		}
	}
	s.DisruptedPods = nil
	if len(disrupted) > 0 {
		s.DisruptedPods = disrupted
	}
	allowed := max(healthy-desired, 0)
	if expected <= 0 {
		allowed = 0
	}
	s.CurrentHealthy, s.DesiredHealthy, s.ExpectedPods = int32(healthy), int32(desired), int32(expected) // numbers of Pods
	s.DisruptionsAllowed, s.ObservedGeneration = int32(allowed), b.Generation
	if allowed > 0 {
		setCondition(b, metav1.ConditionTrue, policyv1.SufficientPodsReason, "")
	} else {
		setCondition(b, metav1.ConditionFalse, policyv1.InsufficientPodsReason, "")
	}
	return again
}

func setCondition(b *policyv1.PodDisruptionBudget, status metav1.ConditionStatus, reason, message string) {
	meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: status, Reason: reason, Message: message, ObservedGeneration: b.Generation,
	})
}

// member is what counts of a Pod.
type member struct {
	name            string
	labels          labels.Set
	deleting, ready bool
	owner           *metav1.OwnerReference
}

// memberOf reads a Pod. One that cannot be read has no controller.
func memberOf(rec *storage.Record) *member {
	var p struct {
		metav1.ObjectMeta `json:"metadata"`
		Status            struct {
			Conditions []corev1.PodCondition `json:"conditions"`
		} `json:"status"`
	}
	if json.Unmarshal(rec.Value, &p) != nil {
		return &member{}
	}
	return &member{
		name: p.Name, labels: p.Labels, deleting: p.DeletionTimestamp != nil, owner: metav1.GetControllerOf(&p),
		ready: slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}),
	}
}

// members are the Pods that a budget is about.
func (c *Controller) members(view storage.View, b *policyv1.PodDisruptionBudget) ([]*member, error) {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return nil, err
	}
	var out []*member
	for _, m := range c.podsOf(view, b.Namespace) {
		if m.name != "" && selector.Matches(m.labels) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *member) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// wanted returns how many Pods there should be, and how many of them ready.
func (c *Controller) wanted(view storage.View, b *policyv1.PodDisruptionBudget, about []*member) (expected, desired int, err error) {
	switch low, high := b.Spec.MinAvailable, b.Spec.MaxUnavailable; {
	case high != nil:
		if expected, err = c.scale(view, b.Namespace, about); err != nil {
			return 0, 0, err
		}
		most, err := intstr.GetScaledValueFromIntOrPercent(high, expected, true)
		return expected, max(expected-most, 0), err
	case low != nil && low.Type == intstr.Int:
		return len(about), low.IntValue(), nil
	case low != nil:
		if expected, err = c.scale(view, b.Namespace, about); err != nil {
			return 0, 0, err
		}
		desired, err = intstr.GetScaledValueFromIntOrPercent(low, expected, true)
		return expected, desired, err
	}
	return 0, 0, nil
}

// scale adds up how many Pods those want that the Pods belong to. Pods without
// a controller do not count.
func (c *Controller) scale(view storage.View, namespace string, about []*member) (sum int, err error) {
	asked, counted := map[types.UID]bool{}, map[types.UID]bool{}
	for _, p := range about {
		if p.owner == nil || asked[p.owner.UID] {
			continue
		}
		asked[p.owner.UID] = true
		uid, replicas, ok := c.replicas(view, namespace, p.owner)
		if !ok {
			return 0, fmt.Errorf("found no controllers for pod %q", p.name)
		}
		if !counted[uid] {
			counted[uid] = true
			sum += replicas
		}
	}
	return sum, nil
}

// scalable is what has Pods, as far as it counts here.
type scalable struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas *int `json:"replicas"`
	} `json:"spec"`
}

// replicas returns how many Pods an owner wants, and the object with that number: of a
// ReplicaSet the Deployment that it belongs to, if there is one.
func (c *Controller) replicas(view storage.View, namespace string, owner *metav1.OwnerReference) (uid types.UID, replicas int, ok bool) {
	resource, ok := c.catalog.Kind(owner.APIVersion, owner.Kind)
	if !ok || !resource.Namespaced {
		return "", 0, false
	}
	c.counting[resource.Bucket] = true
	rec := view.Get(resource.Key(namespace, owner.Name))
	var o scalable
	if rec == nil || json.Unmarshal(rec.Value, &o) != nil || o.UID != owner.UID {
		return "", 0, false
	}
	if above := metav1.GetControllerOf(&o); above != nil && owner.Kind == "ReplicaSet" && above.Kind == "Deployment" {
		if uid, replicas, ok := c.replicas(view, namespace, above); ok {
			return uid, replicas, true
		}
	}
	if o.Spec.Replicas == nil {
		return "", 0, false
	}
	return o.UID, *o.Spec.Replicas, true
}
