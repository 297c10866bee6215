// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
)

// pods is a Pod with one container. Rules of the spec that templates share are tested in
// package podspec.
func pods() kindtest.Kind {
	return kindtest.Kind{Resources: Resources(), APIVersion: "v1", Kind: "Pod", Valid: `
metadata: {name: p, namespace: default}
spec:
  containers: [{name: c, image: i, resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}}]`}
}

func TestPodValidation(t *testing.T) {
	t.Parallel()
	pods().Create(t, []kindtest.Case{
		{"no containers", "spec.containers: []", "spec.containers: Required value"},
		{"ephemeral containers from the start", "spec.ephemeralContainers: [{name: d, image: i}]", "spec.ephemeralContainers: Forbidden: cannot be set on create"},
		{"priority above a user's", "spec.priority: 1000000001", ""},
		{"gate that is no name", "spec.schedulingGates: [{name: a b}]", `spec.schedulingGates[0]: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		{"gate twice", "spec.schedulingGates: [{name: a}, {name: a}]", `spec.schedulingGates[1]: Duplicate value: "a"`},
		{"node and gates", "spec.nodeName: node1\nspec.schedulingGates: [{name: a}]", "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared"},
	})
}

func TestPodUpdateValidation(t *testing.T) {
	t.Parallel()
	pods().Update(t, []kindtest.Case{
		{"image", "spec.containers.0.image: j", ""},
		{"no image", "spec.containers.0.image: ''", `
spec.containers[0].image: Required value
spec.containers[0].image: Required value`},
		{"deadline", "spec.activeDeadlineSeconds: 10", ""},
		{"another container", "spec.containers: [{name: c, image: i}, {name: d, image: i}]", "spec.containers: Forbidden: pod updates may not add or remove containers"},
		{"command", "spec.containers.0.command: [a]", "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"},
		{"resources", "spec.containers.0.resources.requests.cpu: 50m", "spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"},
		{"another toleration", "spec.tolerations: [{key: a, operator: Exists}]", ""},
		{"gates later", "spec.schedulingGates: [{name: a}]", "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'a'"},
	})
	pods().With(t, "spec.activeDeadlineSeconds: 10\nspec.tolerations: [{key: a, operator: Exists}]").Update(t, []kindtest.Case{
		{"longer deadline", "spec.activeDeadlineSeconds: 11", "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value"},
		{"no deadline", "spec.activeDeadlineSeconds: null", "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"},
		{"toleration removed", "spec.tolerations: []", "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"},
	})
	pods().With(t, "spec.schedulingGates: [{name: a}]").Update(t, []kindtest.Case{
		{"gate removed", "spec.schedulingGates: []", ""},
		{"node selector while gated", "spec.nodeSelector: {a: b}", ""},
		{"another gate", "spec.schedulingGates: [{name: b}]", "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'b'"},
	})
}

func TestPodDefaults(t *testing.T) {
	t.Parallel()
	pods().Defaults(t, []kindtest.Case{
		{"spec", "", `
spec.restartPolicy: Always
spec.dnsPolicy: ClusterFirst
spec.schedulerName: default-scheduler
spec.terminationGracePeriodSeconds: 30
spec.enableServiceLinks: true
spec.securityContext: {}
spec.containers.0.imagePullPolicy: Always
spec.containers.0.terminationMessagePath: /dev/termination-log
spec.containers.0.terminationMessagePolicy: File
status: {phase: Pending, qosClass: Burstable}`},
		{"image with a tag", "spec.containers.0.image: 'i:1'", "spec.containers.0.imagePullPolicy: IfNotPresent"},
		{"requests are limits", "spec.containers.0.resources: {limits: {cpu: 1, memory: 1Gi}}", "spec.containers.0.resources.requests: {cpu: '1', memory: 1Gi}\nstatus.qosClass: Guaranteed"},
		{"without resources", "spec.containers.0.resources: null", "status.qosClass: BestEffort"},
		{"account of old", "spec.serviceAccount: a", "spec.serviceAccountName: a"},
		{"ports of the host", "spec.hostNetwork: true\nspec.containers.0.ports: [{containerPort: 80}]", "spec.containers.0.ports: [{containerPort: 80, hostPort: 80, protocol: TCP}]"},
		{"status is not set by a creation", "status: {phase: Running, podIP: 10.0.0.1}", "status.podIP: null\nstatus.phase: Pending"},
	})
}

func TestPodStatusValidation(t *testing.T) {
	t.Parallel()
	k := pods().With(t, `spec.nodeName: node1
status: {phase: Running, containerStatuses: [{name: c, image: i, imageID: i, ready: true, restartCount: 1, state: {terminated: {exitCode: 0}}}]}`)
	k.Subresource = "status"
	k.Update(t, []kindtest.Case{
		{"spec is not looked at", "spec.containers.0.command: [a]", ""},
		{"another node", "spec.nodeName: node2", ""},
		{"nominated node", "status.nominatedNodeName: A_b", `
status.nominatedNodeName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
status.nominatedNodeName: Forbidden: may not be set on pods that are already bound to a node`},
		{"terminated container runs again", "status.containerStatuses.0.state: {running: {}}", ""},
		{"status of an unknown container", "status.containerStatuses.0.name: d", ""},
		{"address", "status.podIPs: [{ip: moon}]", `status.podIPs[0]: Invalid value: "moon": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"two addresses of a family", "status.podIP: 10.0.0.1\nstatus.podIPs: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]", `status.podIPs: Invalid value: [{"IP":"10.0.0.1"},{"IP":"10.0.0.2"}]: may specify no more than one IP for each IP family`},
		{"quality of service", "status.qosClass: Guaranteed", `status.qosClass: Invalid value: "Guaranteed": field is immutable`},
	})
	k.With(t, "spec.restartPolicy: Never").Update(t, []kindtest.Case{
		{"terminated container that is never restarted", "status.containerStatuses.0.state: {running: {}}", "status.containerStatuses[0].state: Forbidden: may not be transitioned to non-terminated state"},
	})
}

func TestPodResizeValidation(t *testing.T) {
	t.Parallel()
	k := pods()
	k.Subresource = "resize"
	k.Update(t, []kindtest.Case{
		{"request", "spec.containers.0.resources.requests.cpu: 150m", ""},
		{"request above the limit", "spec.containers.0.resources.requests.cpu: 300m", `spec.containers[0].resources.requests: Invalid value: "300m": must be less than or equal to cpu limit of 200m`},
		{"another resource", "spec.containers.0.resources.requests.ephemeral-storage: 1Gi", "spec: Forbidden: only cpu and memory resources are mutable"},
		{"another quality of service", "spec.containers.0.resources.requests.cpu: 200m\nspec.containers.0.resources.requests.memory: 1Gi\nspec.containers.0.resources.limits.memory: 1Gi", `spec: Invalid value: "Burstable": Pod QOS Class may not change as a result of resizing`},
	})
}

func TestPodEphemeralContainersValidation(t *testing.T) {
	t.Parallel()
	k := pods()
	k.Subresource = "ephemeralcontainers"
	k.Update(t, []kindtest.Case{
		{"debug container", "spec.ephemeralContainers: [{name: d, image: i}]", ""},
		{"name of a container", "spec.ephemeralContainers: [{name: c, image: i}]", `spec.ephemeralContainers[0].name: Duplicate value: "c"`},
		{"ports", "spec.ephemeralContainers: [{name: d, image: i, ports: [{containerPort: 80}]}]", "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container"},
		{"target that is unknown", "spec.ephemeralContainers: [{name: d, image: i, targetContainerName: x}]", `spec.ephemeralContainers[0].targetContainerName: Not found: "x"`},
	})
}

func TestPodWarnings(t *testing.T) {
	t.Parallel()
	pods().Warnings(t, []kindtest.Case{
		{"none", "", ""},
		{"name that is no host name", "metadata.name: a.b", "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]"},
	})
}

func TestPodRow(t *testing.T) {
	t.Parallel()
	pods().Row(t, []kindtest.Case{
		{"pending", "status.phase: Pending", "p | 0/1 | Pending | 0 | <unknown> | <none> | <none> | <none> | <none>"},
		{"running", "spec.nodeName: node1\nstatus: {phase: Running, podIP: 10.0.0.1, podIPs: [{ip: 10.0.0.1}], containerStatuses: [{name: c, image: i, imageID: i, ready: true, restartCount: 2, state: {running: {}}}], conditions: [{type: Ready, status: 'True'}]}", "p | 1/1 | Running | 2 | <unknown> | 10.0.0.1 | node1 | <none> | <none>"},
		{"crash loop", "status: {phase: Running, containerStatuses: [{name: c, image: i, imageID: i, ready: false, restartCount: 3, state: {waiting: {reason: CrashLoopBackOff}}}]}", "p | 0/1 | CrashLoopBackOff | 3 | <unknown> | <none> | <none> | <none> | <none>"},
		{"evicted", "status: {phase: Failed, reason: Evicted}", "p | 0/1 | Evicted | 0 | <unknown> | <none> | <none> | <none> | <none>"},
	})
}
