// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package podwarning_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/controlplane/core/podwarning"
)

func podOf(t *testing.T, manifest string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict([]byte(manifest), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func compareLines(t *testing.T, want string, got []string) {
	t.Helper()
	if diff := cmp.Diff(strings.TrimSpace(want), strings.Join(got, "\n")); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

func TestPodWarnings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, pod, want string }{
		{"nothing to say", `
spec:
  nodeSelector: {kubernetes.io/os: linux}
  volumes: [{name: a, configMap: {name: c, items: [{key: a, path: a}, {key: b, path: ab}]}}]
  overhead: {memory: 1Ki}
  terminationGracePeriodSeconds: 0
  dnsConfig: {nameservers: [10.0.0.1]}
  hostAliases: [{ip: 10.0.0.1}, {ip: 10.0.0.2}]
  imagePullSecrets: [{name: a}, {name: b}]
  topologySpreadConstraints: [{topologyKey: a, labelSelector: {}}]
  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}
  containers:
  - {name: a, env: [{name: A, value: a}, {name: B, value: $(A)}], resources: {limits: {memory: 1, cpu: 1m}}, ports: [{containerPort: 80, protocol: TCP, name: a}, {containerPort: 80, protocol: UDP, name: b}]}`, ""},
		{"labels of nodes that were renamed", `
spec:
  nodeSelector: {beta.kubernetes.io/os: linux, beta.kubernetes.io/arch: a}
  topologySpreadConstraints: [{topologyKey: failure-domain.beta.kubernetes.io/zone, labelSelector: {}}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}, {matchExpressions: [{key: beta.kubernetes.io/os, operator: In, values: [-]}, {key: beta.kubernetes.io/arch, operator: Exists}]}]}
      preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {matchExpressions: [{key: beta.kubernetes.io/arch, operator: In, values: [a, -]}]}}]`, `
spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead
spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead
spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead
spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[1].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead
spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead
spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values[1]: - is invalid, a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`},
		{"annotations that do nothing", `
metadata: {annotations: {scheduler.alpha.kubernetes.io/critical-pod: "", security.alpha.kubernetes.io/sysctls: "", security.alpha.kubernetes.io/unsafe-sysctls: "", seccomp.security.alpha.kubernetes.io/pod: "", container.seccomp.security.alpha.kubernetes.io/a: ""}}
spec: {containers: [{name: a}, {name: b}]}`, `
metadata.annotations[scheduler.alpha.kubernetes.io/critical-pod]: non-functional in v1.16+; use the "priorityClassName" field instead
metadata.annotations[security.alpha.kubernetes.io/sysctls]: non-functional in v1.11+; use the "sysctls" field instead
metadata.annotations[security.alpha.kubernetes.io/unsafe-sysctls]: non-functional in v1.11+; use the "sysctls" field instead
metadata.annotations[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead
metadata.annotations[container.seccomp.security.alpha.kubernetes.io/a]: non-functional in v1.27+; use the "seccompProfile" field instead`},
		{"annotations of seccomp that fields repeat", `
metadata: {annotations: {seccomp.security.alpha.kubernetes.io/pod: runtime/default, container.seccomp.security.alpha.kubernetes.io/a: runtime/default}}
spec: {securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{name: a, securityContext: {seccompProfile: {type: RuntimeDefault}}}]}`, ""},
		{"volumes that are out of use", `
spec:
  volumes:
  - {name: a, photonPersistentDisk: {}}
  - {name: b, gitRepo: {}}
  - {name: c, scaleIO: {}}
  - {name: d, flocker: {}}
  - {name: e, storageos: {}}
  - {name: f, quobyte: {}}
  - {name: g, glusterfs: {}}
  - {name: h, cephfs: {}}
  - {name: i, rbd: {}}
  - {name: j, emptyDir: {}}`, `
spec.volumes[0].photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+
spec.volumes[1].gitRepo: deprecated in v1.11, and disabled by default in v1.33+
spec.volumes[2].scaleIO: deprecated in v1.16, non-functional in v1.22+
spec.volumes[3].flocker: deprecated in v1.22, non-functional in v1.25+
spec.volumes[4].storageOS: deprecated in v1.22, non-functional in v1.25+
spec.volumes[5].quobyte: deprecated in v1.22, non-functional in v1.25+
spec.volumes[6].glusterfs: deprecated in v1.25, non-functional in v1.26+
spec.volumes[7].cephfs: deprecated in v1.28, non-functional in v1.31+
spec.volumes[8].rbd: deprecated in v1.28, non-functional in v1.31+`},
		{"paths in volumes that overlap", `
spec:
  volumes:
  - {name: a, configMap: {name: c, items: [{key: a, path: a}, {key: b, path: a/}]}}
  - {name: b, secret: {secretName: s, items: [{key: a, path: a/b}, {key: b, path: a}]}}
  - {name: c, downwardAPI: {items: [{path: a}, {path: a/./b}]}}
  - name: d
    projected:
      sources:
      - {configMap: {name: c, items: [{key: a, path: a}]}}
      - {secret: {name: s, items: [{key: a, path: a}]}}
      - {downwardAPI: {items: [{path: a}]}}
      - {serviceAccountToken: {path: a}}
  - {name: e, projected: {sources: [{}]}}`, `
volume "a" (ConfigMap "c"): overlapping paths: "a" with "a"
volume "b" (Secret "s"): overlapping paths: "a" with "a/b"
volume "c" (DownwardAPI): overlapping paths: "a/./b" with "a"
volume "d" (Projected): overlapping paths: "a" (Secret "s") with "a" (ConfigMap "c")
volume "d" (Projected): overlapping paths: "a" (DownwardAPI) with "a" (ConfigMap "c")
volume "d" (Projected): overlapping paths: "a" (DownwardAPI) with "a" (Secret "s")
volume "d" (Projected): overlapping paths: "a" (ServiceAccountToken) with "a" (ConfigMap "c")
volume "d" (Projected): overlapping paths: "a" (ServiceAccountToken) with "a" (Secret "s")
volume "d" (Projected): overlapping paths: "a" (ServiceAccountToken) with "a" (DownwardAPI)
volume "e" (Projected) has no sources provided`},
		{"entries of lists that are there twice", `
spec:
  hostAliases: [{ip: 10.0.0.1}, {ip: 10.0.0.2}, {ip: 10.0.0.1}]
  imagePullSecrets: [{name: a}, {name: ""}, {name: a}]`, `
spec.hostAliases[2].ip: duplicate ip "10.0.0.1"
spec.imagePullSecrets[2].name: duplicate name "a"
spec.imagePullSecrets[1].name: invalid empty name ""`},
		{"parts of bytes", `
spec:
  overhead: {memory: 100m, cpu: 100m}
  initContainers: [{name: a, resources: {limits: {ephemeral-storage: 1500m}}}]
  containers: [{name: b, resources: {requests: {memory: 100m}}}]
  ephemeralContainers: [{name: c, resources: {limits: {memory: 100m}}}]`, `
spec.overhead[memory]: fractional byte value "100m" is invalid, must be an integer
spec.initContainers[0].resources.limits[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer
spec.containers[0].resources.requests[memory]: fractional byte value "100m" is invalid, must be an integer
spec.ephemeralContainers[0].resources.limits[memory]: fractional byte value "100m" is invalid, must be an integer`},
		{"variables that hide others", `
spec:
  containers:
  - name: a
    env: [{name: A, value: a}, {name: A, value: b}, {name: A, value: $(A)}, {name: A, value: "$(A):b"}, {name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`, `
spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply
spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply
spec.containers[0].env[4]: hides previous definition of "A", which may be dropped when using apply`},
		{"grace below zero", "spec: {terminationGracePeriodSeconds: -1}", "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"},
		{"selectors that match nothing", `
spec:
  topologySpreadConstraints: [{topologyKey: a}]
  affinity:
    podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}], preferredDuringSchedulingIgnoredDuringExecution: [{}]}
    podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}, {}], preferredDuringSchedulingIgnoredDuringExecution: [{podAffinityTerm: {labelSelector: {}}}]}`, `
spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod
spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod
spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod
spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[1].labelSelector: a null labelSelector results in matching no pod`},
		{"addresses that are not canonical", `
spec: {dnsConfig: {nameservers: [10.0.0.01]}, hostAliases: [{ip: "FD00::1"}]}`, `
spec.dnsConfig.nameservers[0]: non-standard IP address "10.0.0.01" is invalid: use "10.0.0.1"
spec.hostAliases[0].ip: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")`},
		{"ports", `
spec:
  containers:
  - {name: a, ports: [{containerPort: 80, protocol: TCP, name: web}, {containerPort: 80, protocol: TCP, hostIP: 10.0.0.1}]}
  - {name: b, ports: [{containerPort: 80, protocol: TCP, name: web}, {containerPort: 81, protocol: TCP, hostPort: 81}, {containerPort: 81, protocol: TCP, hostPort: 81, hostIP: 10.0.0.1}, {containerPort: 81, protocol: TCP, hostPort: 82, hostIP: 10.0.0.1}, {containerPort: 82, hostPort: 82, hostIP: 10.0.0.1}, {containerPort: 82, hostPort: 82, hostIP: 10.0.0.2}]}`, `
spec.containers[0].ports[1]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol:TCP HostIP:10.0.0.1}
spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]
spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]
spec.containers[1].ports[0]: overlapping port definition with spec.containers[0].ports[1]
spec.containers[1].ports[2]: dangerously ambiguous port definition with spec.containers[1].ports[1]
spec.containers[1].ports[0]: duplicate port name "web" with spec.containers[0].ports[0], services and probes that select ports by name will use spec.containers[0].ports[0]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			compareLines(t, test.want, podwarning.OfPod(podOf(t, test.pod)))
		})
	}
}

// TestPodWarningsOfManyVariables: lists of variables of any length have the same
// warnings.
func TestPodWarningsOfManyVariables(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 16, 17, 40} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: make([]corev1.Container, 1)}}
		for i := range n - 1 {
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("A", i)})
		}
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "A0"})
		compareLines(t, fmt.Sprintf(`spec.containers[0].env[%d]: hides previous definition of "A0", which may be dropped when using apply`, n-1), podwarning.OfPod(pod))
	}
}

func TestPodTemplateWarningsBeginWithTheirPath(t *testing.T) {
	t.Parallel()
	pod := podOf(t, `
metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/a: runtime/default, container.apparmor.security.beta.kubernetes.io/b: runtime/default, container.apparmor.security.beta.kubernetes.io/c: unconfined}}
spec:
  securityContext: {appArmorProfile: {type: RuntimeDefault}}
  nodeSelector: {beta.kubernetes.io/os: linux}
  containers: [{name: a, ports: [{name: p, containerPort: 1}]}, {name: b, securityContext: {appArmorProfile: {type: Unconfined}}, ports: [{name: p, containerPort: 2}]}, {name: c}]`)
	compareLines(t, `
spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead
spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead
spec.template.spec.containers[1].ports[0]: duplicate port name "p" with spec.template.spec.containers[0].ports[0], services and probes that select ports by name will use spec.template.spec.containers[0].ports[0]`,
		podwarning.OfTemplate(field.NewPath("spec", "template"), &corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}))
}
