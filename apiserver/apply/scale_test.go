// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func TestScalingTakesTheReplicasOver(t *testing.T) {
	t.Parallel()
	m, _ := endpoints(t)
	parent := mustApply(t, m, empty(), `spec: {replicas: 1, colour: red}`, "alice", false)
	s := NewScale(schema.GroupVersion{Group: "example.com", Version: "v1"},
		map[string]fieldpath.Path{"example.com/v1": fieldpath.MakePathOrDie("spec", "replicas")})

	live := &autoscalingv1.Scale{Spec: autoscalingv1.ScaleSpec{Replicas: 1}}
	live.UID = "1"
	var err error
	if live.ManagedFields, err = s.ToScale(parent.GetManagedFields()); err != nil {
		t.Fatal(err)
	}
	next := live.DeepCopy()
	next.Spec.Replicas = 5
	out, err := s.Update(t.Context(), live, next, "hpa")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := s.ToParent(parent.GetManagedFields(), out.GetManagedFields())
	if err != nil {
		t.Fatal(err)
	}
	parent.SetManagedFields(entries)
	want := "alice Apply example.com/v1 {\"f:spec\":{\"f:colour\":{}}}\n" +
		"hpa Update example.com/v1 {\"f:spec\":{\"f:replicas\":{}}} scale"
	if diff := cmp.Diff(want, record(parent)); diff != "" {
		t.Errorf("record (-want +got):\n%s", diff)
	}
}
