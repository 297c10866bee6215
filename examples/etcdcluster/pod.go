// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package etcdcluster

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	v1 "github.com/steer-dev/steer/examples/etcdcluster/api/v1"
)

const (
	// ClusterLabel and MemberLabel find the Pods and Services of a member.
	ClusterLabel = "etcd.example.com/cluster"
	MemberLabel  = "etcd.example.com/member"
	// BackupClaim is the volume claim with the snapshots, in the namespace of the
	// cluster; the operator has it mounted as well.
	BackupClaim = "etcd-backups"

	dataDir, backupDir = "/var/lib/etcd", "/backups"
)

// memberName names members by their number, 0 to 8.
func memberName(c *v1.EtcdCluster, ordinal int) string { return fmt.Sprintf("%s-%d", c.Name, ordinal) }

func labels(c *v1.EtcdCluster, member string) map[string]string {
	return map[string]string{ClusterLabel: c.Name, MemberLabel: member}
}

// service is the DNS name of one member. It has to resolve before the member is
// ready: the others look for it.
func service(c *v1.EtcdCluster, member string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: member, Labels: labels(c, member)},
		Spec: corev1.ServiceSpec{
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 labels(c, member),
			Ports: []corev1.ServicePort{
				{Name: "client", Port: 2379, TargetPort: intstr.FromInt32(2379), Protocol: corev1.ProtocolTCP},
				{Name: "peer", Port: 2380, TargetPort: intstr.FromInt32(2380), Protocol: corev1.ProtocolTCP},
			},
		},
	}
}

// pod runs one member. Its data lives and dies with it, so a member whose Pod is
// lost is replaced. With founds it begins a cluster, else it joins the members.
func (r *Reconciler) pod(c *v1.EtcdCluster, member string, members []Member, founds bool) *corev1.Pod {
	peer, client := r.Addresses.Peer(c.Namespace, member), r.Addresses.Client(c.Namespace, member)
	peers := []string{member + "=" + peer}
	state := "new"
	if !founds {
		state = "existing"
		for _, m := range members {
			if m.Name != member {
				peers = append(peers, m.Name+"="+m.PeerURL)
			}
		}
		slices.Sort(peers)
	}
	cluster := []string{
		"--name=" + member,
		"--data-dir=" + dataDir,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=" + strings.Join(peers, ","),
		"--initial-cluster-token=" + string(c.UID),
	}
	probe := func(path string) *corev1.Probe {
		get := &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(2379)}
		return &corev1.Probe{ProbeHandler: corev1.ProbeHandler{HTTPGet: get}, PeriodSeconds: 5, FailureThreshold: 6}
	}
	data := corev1.VolumeMount{Name: "data", MountPath: dataDir}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: member, Labels: labels(c, member)},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{
				Name:    "etcd",
				Image:   c.Spec.Image,
				Command: []string{"etcd"},
				Args: append(slices.Clone(cluster),
					"--initial-cluster-state="+state,
					"--advertise-client-urls="+client,
					"--listen-peer-urls=http://0.0.0.0:2380",
					"--listen-client-urls=http://0.0.0.0:2379"),
				Ports:          []corev1.ContainerPort{{Name: "client", ContainerPort: 2379}, {Name: "peer", ContainerPort: 2380}},
				VolumeMounts:   []corev1.VolumeMount{data},
				ReadinessProbe: probe("/readyz"),
				LivenessProbe:  probe("/livez"),
			}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
		},
	}
	if founds && c.Spec.Restore != "" {
		out.Spec.InitContainers = []corev1.Container{{
			Name:         "restore",
			Image:        c.Spec.Image,
			Command:      []string{"etcdutl", "snapshot", "restore", backupDir + "/" + c.Spec.Restore},
			Args:         cluster,
			VolumeMounts: []corev1.VolumeMount{data, {Name: "backups", MountPath: backupDir, ReadOnly: true}},
		}}
		claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: BackupClaim}
		out.Spec.Volumes = append(out.Spec.Volumes, corev1.Volume{Name: "backups", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}})
	}
	return out
}

// stateOf tells what a Pod can still become.
func stateOf(pod *corev1.Pod) podState {
	switch {
	case pod.DeletionTimestamp != nil:
		return leaving
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return dead
	}
	return alive
}
