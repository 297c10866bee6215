// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// NodeTaints keeps Pods off new nodes until a controller has seen them ready.
type NodeTaints struct{ resource.MutatesOnly }

var _ resource.Admission = NodeTaints{}

// Mutates implements [resource.Mutator].
func (NodeTaints) Mutates(r *resource.AdmissionRequest) bool { return created[corev1.Node](r) != nil }

// Admit implements [resource.Admission].
func (NodeTaints) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	node := created[corev1.Node](r)
	if node == nil {
		return nil
	}
	taint := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	if !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == taint.Key && t.Effect == taint.Effect }) {
		node.Spec.Taints = append(node.Spec.Taints, taint)
	}
	return nil
}
