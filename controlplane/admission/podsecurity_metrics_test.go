// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/step/steptest"
	"github.com/steer-dev/steer/storage"
)

// counted lists the counters that are not 0, by the values of their labels.
func counted(t *testing.T, of *prometheus.CounterVec) []string {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(of)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			values := map[string]string{}
			for _, l := range m.GetLabel() {
				values[l.GetName()] = l.GetValue()
			}
			if n := m.GetCounter().GetValue(); n != 0 {
				out = append(out, fmt.Sprintf("%s %s:%s %s %s %s%s %v", values["decision"], values["policy_level"], values["policy_version"], values["mode"],
					values["request_operation"], values["resource"], values["subresource"], n))
			}
		}
	}
	slices.Sort(out)
	return out
}

// TestPodSecurityCountsItsVerdicts as kube-apiserver does: those that are enforced, and the
// denials of the two other modes.
func TestPodSecurityCountsItsVerdicts(t *testing.T) {
	t.Parallel()
	store := storage.NewMemory(storage.MemoryOptions{})
	for name, labels := range map[string]map[string]string{
		"open": nil,
		"safe": {
			"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/enforce-version": "v1.30",
			"pod-security.kubernetes.io/warn": "restricted", "pod-security.kubernetes.io/audit": "restricted", "pod-security.kubernetes.io/audit-version": "v1.999",
		},
	} {
		steptest.Put(t, store, storage.Key{Bucket: "namespaces", Name: name}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}})
	}
	a := NewPodSecurity(store)
	create := func(namespace string, obj resource.Object) error {
		return a.Validate(t.Context(), &resource.AdmissionRequest{
			Request: &resource.Request{Namespace: namespace, Resource: &resource.Resource{}}, Operation: resource.Create, Object: obj,
		})
	}
	pod := func(privileged bool) *corev1.Pod {
		return &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{SecurityContext: &corev1.SecurityContext{Privileged: &privileged}}}}}
	}
	if err := create("open", pod(true)); err != nil {
		t.Error(err)
	}
	if err := create("safe", pod(false)); err != nil {
		t.Error(err)
	}
	if err := create("safe", pod(true)); err == nil {
		t.Error("a privileged Pod was let in")
	}
	if err := create("safe", &appsv1.Deployment{Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: pod(true).Spec}}}); err != nil {
		t.Error(err)
	}
	want := []string{
		"allow baseline:v1.30 enforce create pod 1",
		"allow privileged:latest enforce create pod 1",
		"deny baseline:v1.30 enforce create pod 1",
		"deny restricted:future audit create controller 1",
		"deny restricted:future audit create pod 1",
		"deny restricted:latest warn create controller 1",
		"deny restricted:latest warn create pod 1",
	}
	if diff := cmp.Diff(want, counted(t, a.counts.evaluations)); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
	if got := counted(t, a.counts.exemptions); len(got) != 0 {
		t.Errorf("exemptions %q, want none", got)
	}
}
