// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/steer-dev/steer/client"
)

// TestCreateSetsTheStatusThatIsGiven, and none of an object without: the status of a StatefulSet
// has fields that are always encoded.
func TestCreateSetsTheStatusThatIsGiven(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		obj  client.Object
		want string
	}{
		"none":                    {&corev1.ConfigMap{}, ""},
		"an empty one":            {&corev1.Pod{}, ""},
		"fields without omission": {&appsv1.StatefulSet{}, ""},
		"one with a value":        {&appsv1.StatefulSet{Status: appsv1.StatefulSetStatus{Replicas: 2}}, `{"status":{"replicas":2,"availableReplicas":0}}`},
		"an unstructured one": {
			&unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "A", "status": map[string]any{"n": int64(0)}}},
			`{"status":{"n":0}}`,
		},
	} {
		got, err := givenStatus(test.obj)
		if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", name, got, err, test.want)
		}
	}
}
