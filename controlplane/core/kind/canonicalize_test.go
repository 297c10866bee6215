// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kind

import (
	"reflect"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"
)

func TestCanonicalizeWritesEmptyFieldsAsKubernetesDoes(t *testing.T) {
	t.Parallel()
	role := &rbacv1.Role{Rules: []rbacv1.PolicyRule{}}
	treesOf(reflect.TypeFor[rbacv1.Role]()).canonicalize(role)
	if role.Rules != nil {
		t.Errorf("rules are %#v, want null: they are always shown", role.Rules)
	}
	job := &batchv1.Job{Spec: batchv1.JobSpec{PodFailurePolicy: &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{}}}}
	treesOf(reflect.TypeFor[batchv1.Job]()).canonicalize(job)
	if job.Spec.PodFailurePolicy.Rules != nil {
		t.Errorf("rules of the policy are %#v, want null", job.Spec.PodFailurePolicy.Rules)
	}
	config := &corev1.ConfigMap{BinaryData: map[string][]byte{"none": nil, "some": {1}}}
	treesOf(reflect.TypeFor[corev1.ConfigMap]()).canonicalize(config)
	if config.BinaryData["none"] == nil || len(config.BinaryData["some"]) != 1 {
		t.Errorf("binary data is %#v, want no null, and the other entry unchanged", config.BinaryData)
	}
}

func TestRoundRoundsQuantitiesUpToThousandths(t *testing.T) {
	t.Parallel()
	amount := func(text string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: quantity.MustParse(text)}
	}
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{
		{Resources: corev1.ResourceRequirements{Limits: amount("1.0001"), Requests: amount("0.5")}},
	}}}
	f := treesOf(reflect.TypeFor[corev1.Pod]())
	f.round(pod)
	resources := pod.Spec.Containers[0].Resources
	if limit, request := resources.Limits.Cpu().String(), resources.Requests.Cpu().String(); limit != "1001m" || request != "500m" {
		t.Errorf("1.0001 became %s, 0.5 became %s; want 1001m, 500m", limit, request)
	}
	f.canonicalize(pod)
	if pod.Spec.Containers[0].Resources.Limits == nil {
		t.Error("canonicalizing a Pod took its limits away")
	}
}

func TestTreesOfSkipTypesWithoutSuchFields(t *testing.T) {
	t.Parallel()
	if f := treesOf(reflect.TypeFor[coordinationv1.Lease]()); f.canonical != nil || f.rounded != nil {
		t.Errorf("a Lease has %#v", f)
	}
}
