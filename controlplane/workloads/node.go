// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	corev1 "k8s.io/api/core/v1"
	kresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
	"github.com/steer-dev/steer/storage"
)

// nodeAddress is the address of the simulated node.
const nodeAddress = "172.18.0.2"

// lookNode registers the simulated node unless it exists, and updates the taints and the Lease of others.
func (t *visit) lookNode(key storage.Key) {
	if node := t.Index.Objects[key]; node != nil {
		t.controller.nodes.Look(t.Turn, key)
		if _, set := t.Timers[cluster.LeaseOf(key.Name)]; node.Ready && node.Simulated && !set {
			t.lookLease(cluster.LeaseOf(key.Name))
		}
		return
	}
	if key != cluster.NodeKey() || t.controller.noNode {
		return
	}
	room := corev1.ResourceList{
		corev1.ResourceCPU: kresource.MustParse("64"), corev1.ResourceMemory: kresource.MustParse("256Gi"),
		corev1.ResourcePods: kresource.MustParse("10000"), corev1.ResourceEphemeralStorage: kresource.MustParse("1Ti"),
	}
	condition := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) corev1.NodeCondition {
		return corev1.NodeCondition{
			Type: kind, Status: status, Reason: reason, Message: message, LastHeartbeatTime: t.Stamp(), LastTransitionTime: t.Stamp(),
		}
	}
	t.Create(kubelet(NodeName), key, cluster.Nodes, &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: NodeName, Labels: map[string]string{
			corev1.LabelHostname: NodeName, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64", SimulatedLabel: "true",
		}},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room,
			Conditions: []corev1.NodeCondition{
				condition(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
				condition(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
				condition(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
				condition(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"),
			},
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeAddress}, {Type: corev1.NodeHostName, Address: NodeName},
			},
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: apiserver.KubernetesVersion + "+steer", OSImage: "simulated by Steer",
				KernelVersion: "none", ContainerRuntimeVersion: "none://0",
			},
		},
	})
}
