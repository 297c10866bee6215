// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestUntaggedShowsValuesWithTheNamesOfGo(t *testing.T) {
	t.Parallel()
	yes, seconds, user := true, int64(9), int64(7)
	for _, test := range []struct {
		name  string
		value any
		want  string
	}{
		{"text", "a", `"a"`},
		{"nil pointer", (*corev1.EnvVar)(nil), "null"},
		{"pointer", &corev1.KeyToPath{Key: "k", Path: "p"}, `{"Key":"k","Path":"p","Mode":null,"User":null}`},
		{"list", []corev1.LocalObjectReference{{Name: "a"}, {}}, `[{"Name":"a"},{"Name":""}]`},
		{"nil list", []corev1.LocalObjectReference(nil), "null"},
		{"bytes", []byte("ab"), `"YWI="`},
		{"raw JSON", runtime.RawExtension{Raw: []byte(`{"a":1}`)}, `{"a":1}`},
		{"raw bytes that are no JSON", runtime.RawExtension{Raw: []byte("k8s\x00")}, `"azhzAA=="`},
		{"no raw JSON", runtime.RawExtension{}, "null"},
		{"quantity and map", corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": quantityOf("1")}}, `{"Limits":{"cpu":"1"},"Requests":null,"Claims":null}`},
		{"selector keeps its JSON names", metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, `{"matchLabels":{"a":"b"}}`},
		{"embedded struct", corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "a"}, Optional: &yes}, `{"Name":"a","Optional":true}`},
		{"embedded metadata keeps its JSON names", struct {
			metav1.ObjectMeta
			Size int
		}{metav1.ObjectMeta{Name: "a"}, 1}, `{"name":"a","Size":1}`},
		{"embedded metadata that is empty", struct {
			metav1.ObjectMeta
			Size int
		}{Size: 1}, `{"Size":1}`},
		{"pointer that is not set", corev1.ServiceAccountTokenProjection{Path: "p"}, `{"Audience":"","ExpirationSeconds":null,"Path":"p","User":null}`},
		{"pointer that is set", corev1.ServiceAccountTokenProjection{ExpirationSeconds: &seconds}, `{"Audience":"","ExpirationSeconds":9,"Path":"","User":null}`},
		{"pointer that Kubernetes has as a value", appsv1.RollingUpdateDaemonSet{}, `{"MaxUnavailable":0,"MaxSurge":0}`},
		{"rolling update", appsv1.RollingUpdateStatefulSetStrategy{}, `{"Partition":0,"MaxUnavailable":null}`},
		{"security context of a container", corev1.Capabilities{Add: []corev1.Capability{"A"}}, `{"Add":["A"],"Drop":null}`},
	} {
		raw, err := json.Marshal(Untagged(test.value))
		if err != nil || string(raw) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.name, raw, err, test.want)
		}
	}
	raw, err := json.Marshal(Untagged(corev1.PodSpec{HostNetwork: true, SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user}}))
	if err != nil || !strings.Contains(string(raw), `"HostNetwork":true,"HostPID":false,"HostIPC":false,"ShareProcessNamespace":null,"SecurityContext":{"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":7,`) {
		t.Errorf("the security context of a Pod: %s, %v", raw, err)
	}
}

func TestUntaggedFindsTheMembersOfEveryOrder(t *testing.T) {
	t.Parallel()
	for _, value := range []any{
		appsv1.RollingUpdateDeployment{}, appsv1.RollingUpdateDaemonSet{}, appsv1.RollingUpdateStatefulSetStrategy{},
		certificatesv1.PodCertificateRequestSpec{},
	} {
		order := orderOf(value)
		if order == "" {
			t.Errorf("%T has the order of the API", value)
		}
		for name := range strings.FieldsSeq(order) {
			name, left := strings.CutSuffix(name, "?")
			if _, ok := reflect.TypeOf(value).FieldByName(strings.TrimSuffix(name, "!")); ok == left {
				t.Errorf("%T has a field %s: %v", value, name, ok)
			}
		}
		if _, err := json.Marshal(Untagged(value)); err != nil {
			t.Errorf("%T: %v", value, err)
		}
	}
}

func TestDifferenceShowsLinesThatChanged(t *testing.T) {
	t.Parallel()
	got := Difference(corev1.LocalObjectReference{Name: "a"}, corev1.LocalObjectReference{Name: "b"})
	var minus, plus bool
	for line := range strings.Lines(got) {
		minus = minus || strings.HasPrefix(line, "-") && strings.Contains(line, `"Name":`) && strings.Contains(line, `"a"`)
		plus = plus || strings.HasPrefix(line, "+") && strings.Contains(line, `"Name":`) && strings.Contains(line, `"b"`)
	}
	if !minus || !plus {
		t.Errorf("difference:\n%s", got)
	}
}
