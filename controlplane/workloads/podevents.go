// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
)

// tellStarts records Events of the containers that have been started since the previous status,
// and of those that wait for their restart.
func (t *visit) tellStarts(pod *corev1.Pod, before []corev1.ContainerStatus, crashing bool) {
	note := cluster.Note{User: kubelet(pod.Spec.NodeName), About: podKey(pod), UID: pod.UID}
	started := func(c *corev1.Container, field string) {
		note.Field = field + "{" + c.Name + "}"
		for _, said := range [][2]string{
			{"Pulled", fmt.Sprintf("Container image %q already present on machine and can be accessed by the pod", c.Image)},
			{"Created", "Container created"},
			{"Started", "Container started"},
		} {
			note.Reason, note.Message = said[0], said[1]
			t.Tell(note)
		}
	}
	if len(before) == 0 {
		for i := range pod.Spec.InitContainers {
			started(&pod.Spec.InitContainers[i], "spec.initContainers")
		}
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		if i >= len(pod.Status.ContainerStatuses) {
			break
		}
		again := i < len(before) && before[i].RestartCount < pod.Status.ContainerStatuses[i].RestartCount
		if len(before) == 0 || again {
			started(c, "spec.containers")
		}
		if !crashing || i < len(before) && !again {
			continue
		}
		note.Field = "spec.containers{" + c.Name + "}"
		note.Reason, note.Warning = "BackOff", true
		note.Message = fmt.Sprintf("Back-off restarting failed container %s in pod %s_%s(%s)", c.Name, pod.Name, pod.Namespace, pod.UID)
		t.Tell(note)
		note.Warning = false
	}
}

// tellStops records Events of the containers of a Pod that were running when it ended.
func (t *visit) tellStops(pod *corev1.Pod, before []corev1.ContainerStatus) {
	for i := range before {
		s := &before[i]
		if s.State.Running == nil {
			continue
		}
		t.Tell(cluster.Note{
			User: kubelet(pod.Spec.NodeName), About: podKey(pod), UID: pod.UID, Field: "spec.containers{" + s.Name + "}",
			Reason: "Killing", Message: "Stopping container " + s.Name,
		})
	}
}
