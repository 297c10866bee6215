// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Tolerations lets Pods stay on a node that is not ready or unreachable for five
// minutes, unless they say what they tolerate.
type Tolerations struct{ resource.MutatesOnly }

var _ resource.Admission = Tolerations{}

// tolerationSeconds is for how long.
const tolerationSeconds = 300

// Mutates implements [resource.Mutator].
func (Tolerations) Mutates(r *resource.AdmissionRequest) bool {
	pod := written[corev1.Pod](r)
	return pod != nil && !(tolerates(pod, corev1.TaintNodeNotReady) && tolerates(pod, corev1.TaintNodeUnreachable))
}

// Admit implements [resource.Admission].
func (Tolerations) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	pod := written[corev1.Pod](r)
	if pod == nil {
		return nil
	}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		if tolerates(pod, key) {
			continue
		}
		seconds := int64(tolerationSeconds)
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds,
		})
	}
	return nil
}

// tolerates reports whether a Pod has a toleration for the NoExecute effect of a taint.
func tolerates(p *corev1.Pod, taint string) bool {
	return slices.ContainsFunc(p.Spec.Tolerations, func(t corev1.Toleration) bool {
		return (t.Key == taint || t.Key == "") && (t.Effect == corev1.TaintEffectNoExecute || t.Effect == "")
	})
}
