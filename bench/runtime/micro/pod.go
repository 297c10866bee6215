// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package micro

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// replicas are the Pods of a Deployment; they follow one another, as in a list.
const replicas = 10

// pod number i. What differs between Pods of one Deployment is what does in a
// cluster: names, uids, addresses, times, nodes, the containers' ids, and the
// volume of the token; Deployments differ in their settings.
func pod(i, version int, small bool) *corev1.Pod {
	deployment := i / replicas
	app, hash := fmt.Sprint("app-", deployment), digest("template", deployment)[:10]
	yes := true
	pod := &corev1.Pod{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{
		Name: podName(i), Namespace: fmt.Sprint("ns-", deployment%20), UID: uid("pod", i), ResourceVersion: fmt.Sprint(version),
		Labels: map[string]string{"app": app, "pod-template-hash": hash, "tier": "frontend", "team": "shop"},
	}}
	pod.Spec = corev1.PodSpec{NodeName: node(i), ServiceAccountName: app}
	ip := fmt.Sprintf("10.%d.%d.%d", i/65536, i/256%256, version%256)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip}
	if small {
		return pod
	}
	created := metav1.NewTime(time.Unix(1_790_000_000+int64(i), 0))
	pod.CreationTimestamp = created
	pod.GenerateName = fmt.Sprintf("%s-%s-", app, hash)
	pod.Annotations = map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "8080", "checksum/config": digest("config", deployment)}
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app + "-" + hash, UID: uid("replicaset", deployment), Controller: &yes, BlockOwnerDeletion: &yes}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{managed("kube-controller-manager", 24), managed("kubelet", 12)}
	fillSpec(pod, i, deployment)
	fillStatus(pod, i, created)
	return pod
}

// podName is as a ReplicaSet makes it up.
func podName(i int) string {
	deployment := i / replicas
	return fmt.Sprintf("app-%d-%s-%s", deployment, digest("template", deployment)[:10], digest("suffix", i)[:5])
}

func node(i int) string { return fmt.Sprint("node-", i%100) }

func fillSpec(pod *corev1.Pod, i, deployment int) {
	grace, expires, zero, mode, yes, no := int64(30), int64(3607), int32(0), int32(0o644), true, false
	spec := &pod.Spec
	spec.RestartPolicy, spec.DNSPolicy, spec.SchedulerName = corev1.RestartPolicyAlways, corev1.DNSClusterFirst, "default-scheduler"
	spec.DeprecatedServiceAccount, spec.SecurityContext = spec.ServiceAccountName, &corev1.PodSecurityContext{RunAsNonRoot: &yes}
	spec.TerminationGracePeriodSeconds, spec.EnableServiceLinks, spec.Priority = &grace, &yes, &zero
	for _, key := range []string{"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"} {
		after := int64(300)
		spec.Tolerations = append(spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &after})
	}
	token := "kube-api-access-" + digest("token", i)[:5]
	spec.Volumes = []corev1.Volume{
		{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: spec.ServiceAccountName}, DefaultMode: &mode}}},
		{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
		{Name: token, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{DefaultMode: &mode, Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &expires, Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"}, Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.namespace"}}}}},
		}}}},
	}
	for c, name := range []string{"web", "sidecar"} {
		container := corev1.Container{
			Name: name, Image: image(deployment, c), ImagePullPolicy: corev1.PullIfNotPresent,
			Args:  []string{"--listen=:8080", "--config=/etc/web/config.yaml", "--log-format=json"},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP}, {Name: "metrics", ContainerPort: 9090, Protocol: corev1.ProtocolTCP}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("256Mi")},
			},
			VolumeMounts: []corev1.VolumeMount{
				{Name: "config", MountPath: "/etc/web", ReadOnly: true}, {Name: "tmp", MountPath: "/tmp"},
				{Name: token, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
			},
			LivenessProbe: probe("/healthz"), ReadinessProbe: probe("/readyz"),
			TerminationMessagePath: corev1.TerminationMessagePathDefault, TerminationMessagePolicy: corev1.TerminationMessageReadFile,
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
		}
		container.Env = []corev1.EnvVar{{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}}}
		for s := range 10 {
			container.Env = append(container.Env, corev1.EnvVar{Name: fmt.Sprintf("SHOP_SETTING_%d", s), Value: fmt.Sprintf("value %d of the usual length for %s, %d", s, name, deployment)})
		}
		spec.Containers = append(spec.Containers, container)
	}
}

func image(deployment, container int) string {
	return fmt.Sprintf("registry.example.com/shop/app-%d-%d:v1.2.3", deployment, container)
}

func probe(path string) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("http"), Scheme: corev1.URISchemeHTTP}},
		PeriodSeconds: 10, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

func fillStatus(pod *corev1.Pod, i int, created metav1.Time) {
	yes := true
	status := &pod.Status
	status.HostIP, status.QOSClass, status.StartTime = fmt.Sprint("10.0.0.", i%100), corev1.PodQOSBurstable, &created
	status.PodIPs, status.HostIPs = []corev1.PodIP{{IP: status.PodIP}}, []corev1.HostIP{{IP: status.HostIP}}
	for at, kind := range []corev1.PodConditionType{corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(created.Add(time.Duration(at) * time.Second))})
	}
	for c := range pod.Spec.Containers {
		of := &pod.Spec.Containers[c]
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: of.Name, Ready: true, Started: &yes, Image: of.Image,
			ImageID: fmt.Sprintf("%s@sha256:%s", of.Image, digest("image", i/replicas, c)), ContainerID: "containerd://" + digest("container", i, c),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(created.Add(3 * time.Second))}},
		})
	}
}
