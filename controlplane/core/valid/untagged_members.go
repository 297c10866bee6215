// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package valid

import (
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// member is a part of a struct.
type member struct {
	name     string
	value    reflect.Value
	embedded bool
}

// membersOf lists the parts of a struct in the order in which Kubernetes has them in the
// types that its rules work on, which is for most the order of the API.
func membersOf(v reflect.Value) []member {
	var out []member
	order := orderOf(v.Interface())
	if order == "" {
		for i := range v.NumField() {
			f := v.Type().Field(i)
			out = append(out, member{f.Name, v.Field(i), f.Anonymous && f.Type.Kind() == reflect.Struct})
		}
		return out
	}
	for name := range strings.FieldsSeq(order) {
		name, plain := strings.CutSuffix(name, "!")
		value := v.FieldByName(name)
		if plain && value.IsNil() {
			value = reflect.Zero(value.Type().Elem())
		}
		out = append(out, member{name: name, value: value})
	}
	if spec, ok := v.Interface().(corev1.PodSpec); ok && spec.SecurityContext != nil {
		for i := range out {
			if out[i].name == "SecurityContext" {
				out[i].value = reflect.ValueOf(securityContextOf(&spec))
			}
		}
	}
	return out
}

// securityContext is what Kubernetes has in the security context of a Pod, which is
// partly beside it in the API.
type securityContext struct {
	HostNetwork, HostPID, HostIPC    bool
	ShareProcessNamespace, HostUsers *bool
	corev1.PodSecurityContext
}

func securityContextOf(s *corev1.PodSpec) securityContext {
	return securityContext{s.HostNetwork, s.HostPID, s.HostIPC, s.ShareProcessNamespace, s.HostUsers, *s.SecurityContext}
}

// Structs whose parts Kubernetes has in another order than the API, or some of them, or
// as values where the API has pointers: those with an exclamation mark. What is unset is
// then zero. As kube-apiserver 1.36 shows them.
const (
	volumeOrder = "HostPath EmptyDir GCEPersistentDisk AWSElasticBlockStore GitRepo Secret NFS ISCSI Glusterfs PersistentVolumeClaim RBD Quobyte " +
		"FlexVolume Cinder CephFS Flocker DownwardAPI FC AzureFile ConfigMap VsphereVolume AzureDisk PhotonPersistentDisk Projected PortworxVolume " +
		"ScaleIO StorageOS CSI Ephemeral Image"
	persistentVolumeOrder = "GCEPersistentDisk AWSElasticBlockStore HostPath Glusterfs NFS RBD Quobyte ISCSI FlexVolume Cinder CephFS FC Flocker " +
		"AzureFile VsphereVolume AzureDisk PhotonPersistentDisk PortworxVolume ScaleIO Local StorageOS CSI"
	podSpecOrder = "Volumes InitContainers Containers EphemeralContainers RestartPolicy TerminationGracePeriodSeconds ActiveDeadlineSeconds " +
		"DNSPolicy NodeSelector ServiceAccountName AutomountServiceAccountToken NodeName SecurityContext ImagePullSecrets Hostname Subdomain " +
		"SetHostnameAsFQDN Affinity SchedulerName Tolerations HostAliases PriorityClassName Priority PreemptionPolicy DNSConfig ReadinessGates " +
		"RuntimeClassName Overhead EnableServiceLinks TopologySpreadConstraints OS SchedulingGates ResourceClaims Resources HostnameOverride SchedulingGroup"
	podSecurityContextOrder = "SELinuxOptions WindowsOptions RunAsUser RunAsGroup RunAsNonRoot SupplementalGroups SupplementalGroupsPolicy FSGroup " +
		"FSGroupChangePolicy Sysctls SeccompProfile AppArmorProfile SELinuxChangePolicy"
	jobSpecOrder = "Parallelism Completions PodFailurePolicy SuccessPolicy ActiveDeadlineSeconds BackoffLimit BackoffLimitPerIndex MaxFailedIndexes " +
		"Selector ManualSelector Template TTLSecondsAfterFinished CompletionMode Suspend PodReplacementPolicy ManagedBy"
	csiDriverOrder = "AttachRequired FSGroupPolicy PodInfoOnMount VolumeLifecycleModes StorageCapacity TokenRequests RequiresRepublish SELinuxMount " +
		"NodeAllocatableUpdatePeriodSeconds ServiceAccountTokenInSecrets PreventPodSchedulingIfMissing"
)

// orderOf returns the order of a struct if it is not that of the API.
func orderOf(v any) string {
	switch v.(type) {
	case corev1.PodSpec:
		return podSpecOrder
	case corev1.PodSecurityContext:
		return podSecurityContextOrder
	case corev1.Volume:
		return "Name " + volumeOrder
	case corev1.VolumeSource:
		return volumeOrder
	case corev1.PersistentVolumeSource:
		return persistentVolumeOrder
	case corev1.ServiceAccountTokenProjection:
		return "Audience ExpirationSeconds! Path"
	case appsv1.RollingUpdateDeployment, appsv1.RollingUpdateDaemonSet:
		return "MaxUnavailable! MaxSurge!"
	case appsv1.RollingUpdateStatefulSetStrategy:
		return "Partition! MaxUnavailable"
	case batchv1.JobSpec:
		return jobSpecOrder
	case storagev1.CSIDriverSpec:
		return csiDriverOrder
	default:
		return ""
	}
}
