// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec_test

import (
	"testing"

	"github.com/steer-dev/steer/controlplane/core/kind/kindtest"
	"github.com/steer-dev/steer/controlplane/core/pod"
)

// pods is a Pod: the rules of its spec are those of every template.
func pods() kindtest.Kind {
	return kindtest.Kind{Resources: pod.Resources(), APIVersion: "v1", Kind: "Pod", Valid: `
metadata: {name: p, namespace: default}
spec:
  volumes: [{name: v, emptyDir: {}}]
  initContainers: [{name: first, image: i}]
  containers: [{name: c, image: i, volumeMounts: [{name: v, mountPath: /v}], ports: [{name: http, containerPort: 80}], env: [{name: A, value: b}]}]`}
}

func TestContainerValidation(t *testing.T) {
	t.Parallel()
	pods().Create(t, []kindtest.Case{
		{"no name", "spec.containers.0.name: ''", "spec.containers[0].name: Required value"},
		{"name twice", "spec.initContainers.0.name: c", `spec.initContainers[0].name: Duplicate value: "c"`},
		{"image with spaces", "spec.containers.0.image: ' i'", `spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace`},
		{"pull policy", "spec.containers.0.imagePullPolicy: Moon", `spec.containers[0].imagePullPolicy: Unsupported value: "Moon": supported values: "Always", "IfNotPresent", "Never"`},
		{"message policy", "spec.containers.0.terminationMessagePolicy: Moon", `spec.containers[0].terminationMessagePolicy: Unsupported value: "Moon": supported values: "File", "FallbackToLogsOnError"`},
		{"port out of range", "spec.containers.0.ports.0.containerPort: 65536", "spec.containers[0].ports[0].containerPort: Invalid value: 65536: must be between 1 and 65535, inclusive"},
		{"port twice", "spec.containers.0.ports: [{name: a, containerPort: 1}, {name: a, containerPort: 2}]", `spec.containers[0].ports[1].name: Duplicate value: "a"`},
		{"protocol", "spec.containers.0.ports.0.protocol: ICMP", `spec.containers[0].ports[0].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"`},
		{"port of the host that differs", "spec.hostNetwork: true\nspec.containers.0.ports.0.hostPort: 81", "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"},
		{"variable without a name", "spec.containers.0.env.0.name: ''", "spec.containers[0].env[0].name: Required value"},
		{"variable with value and source", "spec.containers.0.env.0.valueFrom: {fieldRef: {fieldPath: metadata.name}}", "spec.containers[0].env[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"},
		{"variable from an unknown field", "spec.containers.0.env.0: {name: A, valueFrom: {fieldRef: {fieldPath: moon}}}", `spec.containers[0].env[0].valueFrom.fieldRef.fieldPath: Invalid value: "moon": error converting fieldPath: field label not supported: moon`},
		{"variables from nowhere", "spec.containers.0.envFrom: [{}]", "spec.containers[0].envFrom: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"},
		{"mount of an unknown volume", "spec.containers.0.volumeMounts.0.name: w", `spec.containers[0].volumeMounts[0].name: Not found: "w"`},
		{"mount twice", "spec.containers.0.volumeMounts: [{name: v, mountPath: /v}, {name: v, mountPath: /v}]", `spec.containers[0].volumeMounts[1].mountPath: Invalid value: "/v": must be unique`},
		{"mount with dots", "spec.containers.0.volumeMounts.0.subPath: ../a", `spec.containers[0].volumeMounts.subPath: Invalid value: "../a": must not contain '..'`},
		{"requests above limits", "spec.containers.0.resources: {requests: {cpu: 2}, limits: {cpu: 1}}", `spec.containers[0].resources.requests: Invalid value: "2": must be less than or equal to cpu limit of 1`},
		{"unknown resource", "spec.containers.0.resources: {limits: {moons: 1}}", `
spec.containers[0].resources.limits[moons]: Invalid value: "moons": must be a standard resource type or fully qualified
spec.containers[0].resources.limits[moons]: Invalid value: "moons": must be a standard resource for containers
spec.containers[0].resources.requests[moons]: Invalid value: "moons": must be a standard resource type or fully qualified
spec.containers[0].resources.requests[moons]: Invalid value: "moons": must be a standard resource for containers`},
		{"extended resource in part", "spec.containers.0.resources: {limits: {example.com/a: 500m}}", `
spec.containers[0].resources.limits[example.com/a]: Invalid value: "500m": must be an integer
spec.containers[0].resources.requests[example.com/a]: Invalid value: "500m": must be an integer`},
		{"huge pages alone", "spec.containers.0.resources: {limits: {hugepages-2Mi: 2Mi}}", "spec.containers[0].resources: Forbidden: HugePages require cpu or memory"},
	})
}

func TestProbeValidation(t *testing.T) {
	t.Parallel()
	pods().Create(t, []kindtest.Case{
		{"no handler", "spec.containers.0.livenessProbe: {}", "spec.containers[0].livenessProbe: Required value: must specify a handler type"},
		{"two handlers", "spec.containers.0.livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 80}}", "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler type"},
		{"negative delay", "spec.containers.0.livenessProbe: {initialDelaySeconds: -1, exec: {command: [a]}}", "spec.containers[0].livenessProbe.initialDelaySeconds: Invalid value: -1: must be greater than or equal to 0"},
		{"success threshold of liveness", "spec.containers.0.livenessProbe: {successThreshold: 2, exec: {command: [a]}}", "spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1"},
		{"success threshold of readiness", "spec.containers.0.readinessProbe: {successThreshold: 2, exec: {command: [a]}}", ""},
		{"port without a number", "spec.containers.0.readinessProbe: {httpGet: {path: /, port: 0}}", "spec.containers[0].readinessProbe.httpGet.port: Invalid value: 0: must be between 1 and 65535, inclusive"},
		{"scheme", "spec.containers.0.readinessProbe: {httpGet: {port: 80, scheme: FTP}}", `spec.containers[0].readinessProbe.httpGet.scheme: Unsupported value: "FTP": supported values: "HTTP", "HTTPS"`},
		{"no command", "spec.containers.0.startupProbe: {exec: {}}", "spec.containers[0].startupProbe.exec.command: Required value"},
		{"probe of an init container", "spec.initContainers.0.readinessProbe: {exec: {command: [a]}}", "spec.initContainers[0].readinessProbe: Forbidden: may not be set for init containers without restartPolicy=Always"},
		{"probe of a sidecar", "spec.initContainers.0.restartPolicy: Always\nspec.initContainers.0.readinessProbe: {exec: {command: [a]}}", ""},
	})
}

func TestPodSpecValidation(t *testing.T) {
	t.Parallel()
	pods().Create(t, []kindtest.Case{
		{"restart policy", "spec.restartPolicy: Moon", `spec.restartPolicy: Unsupported value: "Moon": supported values: "Always", "OnFailure", "Never"`},
		{"DNS policy", "spec.dnsPolicy: Moon", `spec.dnsPolicy: Unsupported value: "Moon": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"`},
		{"DNS without servers", "spec.dnsPolicy: None", "spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"},
		{"host name", "spec.hostname: A_b", `spec.hostname: Invalid value: "A_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')`},
		{"host alias", "spec.hostAliases: [{ip: moon, hostnames: [a]}]", `spec.hostAliases[0].ip: Invalid value: "moon": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`},
		{"volume twice", "spec.volumes: [{name: v, emptyDir: {}}, {name: v, emptyDir: {}}]", `spec.volumes[1].name: Duplicate value: "v"`},
		{"volume of two sources", "spec.volumes.0.hostPath: {path: /a}", `
spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type
spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"secret without a name", "spec.volumes.0: {name: v, secret: {}}", `
spec.volumes[0].secret.secretName: Required value
spec.containers[0].volumeMounts[0].name: Not found: "v"`},
		{"readiness gate", "spec.readinessGates: [{conditionType: a b}]", `spec.readinessGates[0].conditionType: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		{"overhead below zero", "spec.overhead: {cpu: -1}", `spec.overhead.limits[cpu]: Invalid value: "-1": must be greater than or equal to 0`},
		{"account", "spec.serviceAccountName: A_b", `spec.serviceAccountName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"operating system", "spec.os: {name: moon}", `spec.os: Unsupported value: "moon": supported values: "linux", "windows"`},
	})
}

func TestSchedulingValidation(t *testing.T) {
	t.Parallel()
	pods().Create(t, []kindtest.Case{
		{"node selector", "spec.nodeSelector: {a: -}", `spec.nodeSelector: Invalid value: "-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')`},
		{"node name", "spec.nodeName: A_b", `spec.nodeName: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`},
		{"toleration operator", "spec.tolerations: [{key: a, operator: Moon}]", `spec.tolerations[0].operator: Unsupported value: "Moon": supported values: "Equal", "Exists"`},
		{"toleration of existence with a value", "spec.tolerations: [{key: a, operator: Exists, value: b}]", "spec.tolerations[0].operator: Invalid value: \"b\": value must be empty when `operator` is 'Exists'"},
		{"seconds of another effect", "spec.tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 1}]", "spec.tolerations[0].effect: Invalid value: \"NoSchedule\": effect must be 'NoExecute' when `tolerationSeconds` is set"},
		{"node affinity without terms", "spec.affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}", "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term"},
		{"weight", "spec.affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, preference: {}}]}}", "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: Invalid value: 101: must be in the range 1-100"},
		{"affinity without a topology", "spec.affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}", `
spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty
spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must be non-empty
spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')`},
		{"spread without skew", "spec.topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]", "spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero"},
		{"spread of an unknown kind", "spec.topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Moon}]", `spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Moon": supported values: "DoNotSchedule", "ScheduleAnyway"`},
	})
}

func TestSecurityValidation(t *testing.T) {
	t.Parallel()
	pods().Create(t, []kindtest.Case{
		{"user below zero", "spec.securityContext: {runAsUser: -1}", "spec.securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive"},
		{"group policy", "spec.securityContext: {fsGroupChangePolicy: Moon}", `spec.securityContext.fsGroupChangePolicy: Unsupported value: "Moon": supported values: "Always", "OnRootMismatch"`},
		{"kernel parameter", "spec.securityContext: {sysctls: [{name: 'a b', value: c}]}", `spec.securityContext.sysctls[0].name: Invalid value: "a b": must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$`},
		{"profile without a file", "spec.securityContext: {seccompProfile: {type: Localhost}}", "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost"},
		{"profile of an unknown type", "spec.securityContext: {seccompProfile: {type: Moon}}", `spec.securityContext.seccompProfile.type: Unsupported value: "Moon": supported values: "Localhost", "RuntimeDefault", "Unconfined"`},
		{"AppArmor without a profile", "spec.securityContext: {appArmorProfile: {type: Localhost}}", "spec.securityContext.appArmorProfile.localhostProfile: Required value: must be set when AppArmor type is Localhost"},
		{"privileged without escalation", "spec.containers.0.securityContext: {privileged: true, allowPrivilegeEscalation: false}", "spec.containers[0].securityContext: Invalid value: {\"Capabilities\":null,\"Privileged\":true,\"SELinuxOptions\":null,\"WindowsOptions\":null,\"RunAsUser\":null,\"RunAsGroup\":null,\"RunAsNonRoot\":null,\"ReadOnlyRootFilesystem\":null,\"AllowPrivilegeEscalation\":false,\"ProcMount\":null,\"SeccompProfile\":null,\"AppArmorProfile\":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true"},
		{"mount of the process table", "spec.containers.0.securityContext: {procMount: Moon}", `spec.containers[0].securityContext.procMount: Unsupported value: "Moon": supported values: "Default", "Unmasked"`},
		{"Windows with another system", "spec.os: {name: linux}\nspec.securityContext: {windowsOptions: {runAsUserName: a}}", "spec.securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod"},
		{"users of the host", "spec.hostUsers: false\nspec.hostPID: true", "spec.HostPID: Forbidden: when `hostUsers` is false"},
	})
}

func TestAnnotationValidation(t *testing.T) {
	t.Parallel()
	pods().Create(t, []kindtest.Case{
		{"AppArmor of an unknown container", "metadata.annotations: {container.apparmor.security.beta.kubernetes.io/x: runtime/default}", `metadata.annotations[container.apparmor.security.beta.kubernetes.io/x]: Invalid value: "x": container not found`},
		{"cost of the deletion", "metadata.annotations: {controller.kubernetes.io/pod-deletion-cost: a}", `metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value: "a": must be a 32bit integer`},
	})
}
