// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package node serves Nodes, and the classes of what runs there: RuntimeClasses and
// PriorityClasses.
package node

import (
	"context"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// Resources returns the kinds of this package.
func Resources() []*resource.Resource {
	return []*resource.Resource{
		kind.Definition[corev1.Node, *corev1.Node]{
			Version: "v1", Plural: "nodes", Short: []string{"no"}, Cluster: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true},
			Status:   true, KeepsStatus: true, Unconditional: true,
			Defaults:       defaultNode,
			Prepare:        prepareNode,
			PrepareStatus:  prepareNodeStatus,
			Validate:       validateNode,
			ValidateStatus: validateNodeStatus,
			Warnings:       nodeWarnings,
			Columns: kind.Columns("Name", "Status", "Roles", "Age", "Version", "Internal-IP*", "External-IP*", "OS-Image*",
				"Kernel-Version*", "Container-Runtime*"),
			Row: nodeRow,
			Selectable: []kind.Selectable[*corev1.Node]{{Path: "spec.unschedulable", Value: func(n *corev1.Node) string {
				return strconv.FormatBool(n.Spec.Unschedulable)
			}}},
		}.Resource(),
		kind.Definition[nodev1.RuntimeClass, *nodev1.RuntimeClass]{
			Group: "node.k8s.io", Version: "v1", Plural: "runtimeclasses", Cluster: true, Creates: true,
			Metadata: kind.Metadata{RepeatCreationErrors: true, AnyFinalizer: true},
			Validate: validateRuntimeClass,
			Warnings: runtimeClassWarnings,
			Columns:  kind.Columns("Name", "Handler", "Age"),
			Row:      func(c *nodev1.RuntimeClass) []any { return []any{c.Name, c.Handler, kind.Age(c)} },
		}.Resource(),
		kind.Definition[schedulingv1.PriorityClass, *schedulingv1.PriorityClass]{
			Group: "scheduling.k8s.io", Version: "v1", Plural: "priorityclasses", Short: []string{"pc"}, Cluster: true,
			Unconditional: true,
			Prepare: func(_ context.Context, c, old *schedulingv1.PriorityClass) {
				if old == nil {
					c.Generation = 1 // and so it stays
				}
			},
			Defaults: func(c *schedulingv1.PriorityClass) { kind.Fill(&c.PreemptionPolicy, corev1.PreemptLowerPriority) },
			Validate: validatePriorityClass,
			Columns:  kind.Columns("Name", "Value:integer", "Global-Default:boolean", "Age", "PreemptionPolicy"),
			Row: func(c *schedulingv1.PriorityClass) []any {
				return []any{c.Name, int64(c.Value), c.GlobalDefault, kind.Age(c), string(kind.Value(c.PreemptionPolicy))}
			},
		}.Resource(),
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
		return kind.None
	}
	info := n.Status.NodeInfo
	orUnknown := func(s string) string {
		if s == "" {
			return "<unknown>"
		}
		return s
	}
	return []any{
		n.Name, strings.Join(status, ","), kind.OrNone(strings.Join(slices.Compact(roles), ",")), kind.Age(n), info.KubeletVersion,
		address(corev1.NodeInternalIP), address(corev1.NodeExternalIP),
		orUnknown(info.OSImage), orUnknown(info.KernelVersion), orUnknown(info.ContainerRuntimeVersion),
	}
}
