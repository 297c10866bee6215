// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package core

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/steer-dev/steer/apiserver"
)

func nodeKinds() []*apiserver.Resource {
	return []*apiserver.Resource{
		kind[corev1.Node, *corev1.Node]{
			version: "v1", plural: "nodes", short: []string{"no"}, cluster: true,
			status: true, keepsStatus: true, unconditional: true,
			columns: columns("Name", "Status", "Roles", "Age", "Version", "Internal-IP*", "External-IP*", "OS-Image*",
				"Kernel-Version*", "Container-Runtime*"),
			row: nodeRow,
			selectable: []selectable[*corev1.Node]{{path: "spec.unschedulable", value: func(n *corev1.Node) string {
				return strconv.FormatBool(n.Spec.Unschedulable)
			}}},
		}.resource(),
		kind[nodev1.RuntimeClass, *nodev1.RuntimeClass]{
			group: "node.k8s.io", version: "v1", plural: "runtimeclasses", cluster: true, creates: true,
			validate: validateRuntimeClass,
			columns:  columns("Name", "Handler", "Age"),
			row:      func(c *nodev1.RuntimeClass) []any { return []any{c.Name, c.Handler, age(c)} },
		}.resource(),
		kind[schedulingv1.PriorityClass, *schedulingv1.PriorityClass]{
			group: "scheduling.k8s.io", version: "v1", plural: "priorityclasses", short: []string{"pc"}, cluster: true,
			generations: true, unconditional: true,
			defaults: func(c *schedulingv1.PriorityClass) { fill(&c.PreemptionPolicy, corev1.PreemptLowerPriority) },
			validate: validatePriorityClass,
			columns:  columns("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"),
			row: func(c *schedulingv1.PriorityClass) []any {
				return []any{c.Name, int64(c.Value), c.GlobalDefault, age(c), string(value(c.PreemptionPolicy))}
			},
		}.resource(),
	}
}

func nodeRow(n *corev1.Node) []any {
	var status []string
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if c.Status == corev1.ConditionTrue {
			status = append(status, "Ready")
		} else {
			status = append(status, "NotReady")
		}
	}
	if len(status) == 0 {
		status = append(status, "Unknown")
	}
	if n.Spec.Unschedulable {
		status = append(status, "SchedulingDisabled")
	}
	var roles []string
	for label, v := range n.Labels {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		} else if label == "kubernetes.io/role" && v != "" {
			roles = append(roles, v)
		}
	}
	slices.Sort(roles)
	address := func(t corev1.NodeAddressType) string {
		for _, a := range n.Status.Addresses {
			if a.Type == t {
				return a.Address
			}
		}
		return none
	}
	info := n.Status.NodeInfo
	orUnknown := func(s string) string {
		if s == "" {
			return "<unknown>"
		}
		return s
	}
	return []any{
		n.Name, strings.Join(status, ","), orNone(strings.Join(slices.Compact(roles), ",")), age(n), info.KubeletVersion,
		address(corev1.NodeInternalIP), address(corev1.NodeExternalIP),
		orUnknown(info.OSImage), orUnknown(info.KernelVersion), orUnknown(info.ContainerRuntimeVersion),
	}
}
