// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package node_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
	"github.com/steer-dev/steer/controlplane/core/node"
)

func nodes() kindtest.Kind {
	return kindtest.Kind{Resources: node.Resources(), APIVersion: "v1", Kind: "Node", Valid: `
metadata: {name: node1}
spec:
  podCIDR: 10.0.0.0/24
  providerID: cloud://n
  taints: [{key: a, value: b, effect: NoSchedule}]
status:
  capacity: {cpu: "1", memory: 1Gi, pods: "110"}`}
}

func TestNodeValidation(t *testing.T) {
	t.Parallel()
	nodes().Create(t, []kindtest.Case{
		{"taint without a key", "spec.taints.0.key: ''", `
metadata.taints[0].key: Invalid value: "": name part must be non-empty
metadata.taints[0].key: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		{"taint without an effect", "spec.taints.0.effect: ''", "metadata.taints[0].effect: Required value"},
		{"taint with an unknown effect", "spec.taints.0.effect: Moon", `metadata.taints[0].effect: Unsupported value: "Moon": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`},
		{"taint twice", "spec.taints: [{key: a, effect: NoSchedule}, {key: a, value: c, effect: NoSchedule}]", `metadata.taints[1]: Duplicate value: {"Key":"a","Value":"c","Effect":"NoSchedule","TimeAdded":null}: taints must be unique by key and effect pair`},
		{"negative capacity", "status.capacity.cpu: -1", `
status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0
status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0`},
		{"capacity in part", "status.capacity.pods: 1500m", `
status.capacity.pods: Invalid value: "1500m": must be an integer
status.allocatable.pods: Invalid value: "1500m": must be an integer`},
		{"range that is none", "spec.podCIDR: moon", `spec.podCIDRs[0]: Invalid value: "moon": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)`},
		{"two ranges of a family", "spec.podCIDRs: [10.0.0.0/24, 10.0.1.0/24]", `spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.0.1.0/24"]: may specify no more than one CIDR for each IP family`},
		{"annotation of old taints", "metadata.annotations: {scheduler.alpha.kubernetes.io/preferAvoidPods: moon}", `metadata.annotations.AvoidPods: Invalid value: "scheduler.alpha.kubernetes.io/preferAvoidPods": invalid character 'm' looking for beginning of value`},
	})
}

func TestNodeUpdateValidation(t *testing.T) {
	t.Parallel()
	nodes().Update(t, []kindtest.Case{
		{"range", "spec.podCIDR: 10.0.1.0/24\nspec.podCIDRs: [10.0.1.0/24]", `spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid`},
		{"provider", "spec.providerID: cloud://other", `spec.providerID: Invalid value: null: field cannot be modified once set`},
		{"labels and taints", "spec.taints: null\nmetadata.labels: {a: b}", ""},
	})
	status := nodes()
	status.Subresource = "status"
	status.Update(t, []kindtest.Case{
		{"address twice", "status.addresses: [{type: Hostname, address: node1}, {type: Hostname, address: node1}]", `status.addresses[1]: Duplicate value: {"Type":"Hostname","Address":"node1"}`},
		{"negative allocatable", "status.allocatable: {cpu: -1}", `status.allocatable.cpu: Invalid value: "-1": must be greater than or equal to 0`},
	})
}

func TestNodeDefaults(t *testing.T) {
	t.Parallel()
	nodes().Defaults(t, []kindtest.Case{
		{"allocatable", "", "status.allocatable: {cpu: '1', memory: 1Gi, pods: '110'}"},
		{"ranges", "", "spec.podCIDRs: [10.0.0.0/24]"},
		{"range", "spec.podCIDR: null\nspec.podCIDRs: [10.0.0.0/24, 'fd00::/64']", "spec.podCIDR: 10.0.0.0/24"},
	})
}

func TestNodeRow(t *testing.T) {
	t.Parallel()
	nodes().Row(t, []kindtest.Case{
		{"new", "", "node1 | Unknown | <none> | <unknown> |  | <none> | <none> | <unknown> | <unknown> | <unknown>"},
		{"cordoned", `metadata.labels: {node-role.kubernetes.io/worker: '', kubernetes.io/role: master}
spec.unschedulable: true
status.conditions: [{type: Ready, status: 'True'}]
status.addresses: [{type: InternalIP, address: 10.0.0.1}]
status.nodeInfo: {kubeletVersion: v1.37.2}`, "node1 | Ready,SchedulingDisabled | master,worker | <unknown> | v1.37.2 | 10.0.0.1 | <none> | <unknown> | <unknown> | <unknown>"},
	})
}

func TestNodeWarnings(t *testing.T) {
	t.Parallel()
	nodes().Warnings(t, []kindtest.Case{
		{"none", "", ""},
		{"external id", "spec.externalID: a", "spec.externalID: this field is deprecated, and is unused by Kubernetes"},
	})
}

func TestRuntimeClassValidation(t *testing.T) {
	t.Parallel()
	k := kindtest.Kind{Resources: node.Resources(), APIVersion: "node.k8s.io/v1", Kind: "RuntimeClass", Valid: `
metadata: {name: c}
handler: h
overhead: {podFixed: {cpu: 10m}}
scheduling: {nodeSelector: {a: b}, tolerations: [{key: a, operator: Exists}]}`}
	k.Create(t, []kindtest.Case{
		{"no handler", "handler: ''", "handler: Required value"},
		{"handler with a wrong name", "handler: A_b", `handler: Invalid value: "A_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		{"overhead below zero", "overhead.podFixed.cpu: -1", `overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`},
		{"selector", "scheduling.nodeSelector: {a: -}", `scheduling.nodeSelector: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"toleration twice", "scheduling.tolerations: [{key: a, operator: Exists}, {key: a, operator: Exists}]", `scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":null}`},
	})
	k.Update(t, []kindtest.Case{{"handler", "handler: other", `handler: Invalid value: null: field is immutable`}})
	k.Warnings(t, []kindtest.Case{{"deprecated label", "scheduling.nodeSelector: {beta.kubernetes.io/arch: arm64}", `scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/arch" instead`}})
}

func TestPriorityClassValidation(t *testing.T) {
	t.Parallel()
	k := kindtest.Kind{Resources: node.Resources(), APIVersion: "scheduling.k8s.io/v1", Kind: "PriorityClass", Valid: `
metadata: {name: c}
value: 1000`}
	k.Create(t, []kindtest.Case{
		{"value of the system", "value: 1000000001", "value: Forbidden: maximum allowed value of a user defined priority is 1000000000"},
		{"name of the system", "metadata.name: system-moon", "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-moon is not a known system priority class"},
		{"value of a class of the system", "metadata.name: system-node-critical", "metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: value of system-node-critical PriorityClass must be 2000001000"},
		{"class of the system", "metadata.name: system-node-critical\nvalue: 2000001000", ""},
		{"preemption policy", "preemptionPolicy: Moon", `preemptionPolicy: Unsupported value: "Moon": supported values: "PreemptLowerPriority", "Never"`},
	})
	k.Update(t, []kindtest.Case{
		{"value", "value: 1", "value: Forbidden: may not be changed in an update."},
		{"another preemption policy", "preemptionPolicy: Never", `preemptionPolicy: Invalid value: "Never": field is immutable`},
		{"description", "description: d", ""},
	})
	k.Defaults(t, []kindtest.Case{{"preemption policy", "", "preemptionPolicy: PreemptLowerPriority\nmetadata.generation: 1"}})
}
