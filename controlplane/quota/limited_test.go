// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step"
)

// TestLimitedResourcesNeedQuotas holds that what is limited is refused until a quota bounds it, by
// each name under which it is counted and by each scope that it is in.
func TestLimitedResourcesNeedQuotas(t *testing.T) {
	t.Parallel()
	high := corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{"high"}}
	limited := []Limited{
		{Resource: "pods", Contains: []string{"pods"}, Scopes: []corev1.ScopedResourceSelectorRequirement{high}},
		{Group: "apps", Resource: "pods", Contains: []string{"cpu"}}, // of no Pod
	}
	named := func(hard corev1.ResourceList, scopes ...corev1.ScopedResourceSelectorRequirement) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default"},
			Spec:       corev1.ResourceQuotaSpec{Hard: hard},
			Status:     corev1.ResourceQuotaStatus{Hard: hard, Used: corev1.ResourceList{}},
		}
		if len(scopes) > 0 {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: scopes}
		}
		for name := range hard {
			q.Status.Used[name] = amounts("pods", "0")["pods"]
		}
		return q
	}
	both := amounts("pods", "5", "count/pods", "5")
	low := high
	low.Operator = corev1.ScopeSelectorOpNotIn
	ofHigh := func(r *resource.AdmissionRequest) { r.Object.(*corev1.Pod).Spec.PriorityClassName = "high" }
	for _, test := range []struct {
		name   string
		quotas []*corev1.ResourceQuota
		change func(*resource.AdmissionRequest)
		want   string // in the error; empty: admitted
	}{
		{"no quota", nil, nil, "insufficient quota to consume: count/pods,pods"},
		{"a quota for one of the names", []*corev1.ResourceQuota{named(amounts("pods", "5"))}, nil, "insufficient quota to consume: count/pods"},
		{"a quota for each name", []*corev1.ResourceQuota{named(amounts("pods", "5")), named(amounts("count/pods", "5"))}, nil, ""},
		{"a quota for something else", []*corev1.ResourceQuota{named(amounts("secrets", "5"))}, nil, "insufficient quota to consume: count/pods,pods"},
		{"a quota of another scope", []*corev1.ResourceQuota{named(both, high)}, nil, "insufficient quota to consume: count/pods,pods"},
		{"a scope without its quota", []*corev1.ResourceQuota{named(both)}, ofHigh, "insufficient quota to match these scopes: [{PriorityClass In [high]}]"},
		{"a scope with a quota of others", []*corev1.ResourceQuota{named(both), named(both, low)}, ofHigh, "insufficient quota to match these scopes"},
		{"a scope with its quota", []*corev1.ResourceQuota{named(both, high)}, ofHigh, ""},
		{"an update that takes up nothing", nil, func(r *resource.AdmissionRequest) {
			r.Operation, r.Old = resource.Update, r.Object.DeepCopyObject().(resource.Object)
			r.Object.(*corev1.Pod).Spec.ActiveDeadlineSeconds = ptr(int64(60))
		}, ""},
		{"another resource", nil, func(r *resource.AdmissionRequest) {
			r.Resource = &resource.Resource{Names: resource.Names{Plural: "configmaps", Namespaced: true}}
			r.Object = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
		}, ""},
	} {
		w := newWorld(t)
		for i, q := range test.quotas {
			q.Name = string(rune('a' + i))
			w.put(key(bucket, q.Name), q.DeepCopy())
		}
		a := NewAdmission(w.store, func(_ context.Context, r step.Request) error {
			w.put(r.Subject.Key, json.RawMessage(r.Body))
			return nil
		}, w.ledger, limited)
		r := creation("a")
		if test.change != nil {
			test.change(r)
		}
		err := a.Validate(t.Context(), r)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
		if test.want == "" && len(test.quotas) > 0 && w.used("a") == "" {
			t.Errorf("%s: the quota is not charged", test.name)
		}
	}
}
