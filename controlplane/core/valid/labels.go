// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// RenamedLabel returns what to use in place of a deprecated label of nodes, and whether
// the label is deprecated.
func RenamedLabel(key string) (string, bool) {
	use := func(label string) (string, bool) {
		return fmt.Sprintf("deprecated since v1.14; use %q instead", label), true
	}
	switch key {
	case "beta.kubernetes.io/arch":
		return use("kubernetes.io/arch")
	case "beta.kubernetes.io/os":
		return use("kubernetes.io/os")
	case corev1.LabelFailureDomainBetaRegion:
		return fmt.Sprintf("deprecated since v1.17; use %q instead", corev1.LabelTopologyRegion), true
	case corev1.LabelFailureDomainBetaZone:
		return fmt.Sprintf("deprecated since v1.17; use %q instead", corev1.LabelTopologyZone), true
	case corev1.LabelInstanceType:
		return fmt.Sprintf("deprecated since v1.17; use %q instead", corev1.LabelInstanceTypeStable), true
	case "app.kubernetes.io/created-by":
		return "deprecated since v1.9", true
	case "scheduler.alpha.kubernetes.io/preferAvoidPods":
		return "deprecated since v1.22; use Taints and Tolerations instead", true
	case "node-role.kubernetes.io/master":
		return `use "node-role.kubernetes.io/control-plane" instead`, true
	}
	return "", false
}
