// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// state of the containers of a Pod.
type state int

const (
	running   state = iota // but not ready
	ready                  // running and ready
	crashing               // down until the next restart
	succeeded              // ended for good
	failed
)

// life is the state of a Pod that its node reports.
type life struct {
	state state
	// begun is when it was started, now when it is reported.
	begun, now metav1.Time
	restarts   int32
	backoff    time.Duration
	// exitCode of containers that have ended.
	exitCode int32
}

// lifeOf returns the state of a Pod with its fate, before and after that takes effect.
func lifeOf(pod *corev1.Pod, o Outcome, come bool) life {
	fate, policy := o.Fate, pod.Spec.RestartPolicy
	switch {
	case fate == Ready && come, (fate == Complete || fate == Fail || fate == CrashLoop) && !come:
		return life{state: ready}
	case fate == Complete && policy == corev1.RestartPolicyAlways:
		return life{state: crashing}
	case fate == Complete && come:
		return life{state: succeeded}
	case (fate == Fail || fate == CrashLoop) && policy == corev1.RestartPolicyNever:
		return life{state: failed, exitCode: o.ExitCode}
	case fate == Fail || fate == CrashLoop:
		return life{state: crashing, exitCode: o.ExitCode}
	}
	return life{state: running}
}

// report writes it into a status, as a kubelet does.
func (l life) report(pod *corev1.Pod, s *corev1.PodStatus, host, address string) {
	begun := l.begun
	s.ObservedGeneration = pod.Generation
	s.StartTime, s.HostIP, s.HostIPs = &begun, host, []corev1.HostIP{{IP: host}}
	s.PodIP, s.PodIPs = address, []corev1.PodIP{{IP: address}}
	switch l.state {
	case succeeded:
		s.Phase = corev1.PodSucceeded
	case failed:
		s.Phase = corev1.PodFailed
	default:
		s.Phase = corev1.PodRunning
	}
	old := s.InitContainerStatuses
	s.InitContainerStatuses = nil
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		inner := life{state: succeeded, begun: l.begun, now: l.begun}
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			inner = l // a sidecar
			if l.state == crashing || l.state == running {
				inner = life{state: ready, begun: l.begun, now: l.now}
			}
		}
		s.InitContainerStatuses = append(s.InitContainerStatuses, inner.container(pod, c, old, i))
	}
	old = s.ContainerStatuses
	s.ContainerStatuses = nil
	for i := range pod.Spec.Containers {
		s.ContainerStatuses = append(s.ContainerStatuses, l.container(pod, &pod.Spec.Containers[i], old, i))
	}
	l.conditions(pod, s)
}

// conditions of a Pod on its node.
func (l life) conditions(pod *corev1.Pod, s *corev1.PodStatus) {
	set := func(t corev1.PodConditionType, ok bool, reason, message string) {
		status := corev1.ConditionTrue
		if !ok {
			status = corev1.ConditionFalse
		}
		setPodCondition(s, corev1.PodCondition{
			Type: t, Status: status, Reason: reason, Message: message, LastTransitionTime: l.now, ObservedGeneration: pod.Generation,
		})
	}
	ended, reason, message := l.state == succeeded || l.state == failed, "", ""
	switch l.state {
	case succeeded:
		reason = "PodCompleted"
	case failed:
		reason = "PodFailed"
	case running, crashing:
		var names []string
		for i := range pod.Spec.Containers {
			names = append(names, pod.Spec.Containers[i].Name)
		}
		reason, message = "ContainersNotReady", "containers with unready status: ["+strings.Join(names, " ")+"]"
	case ready:
	}
	initialized := ""
	if l.state == succeeded {
		initialized = reason
	}
	set(corev1.PodReadyToStartContainers, !ended, "", "")
	set(corev1.PodInitialized, true, initialized, "")
	isReady, gateReason, gateMessage := l.state == ready, reason, message
	if isReady {
		gateMessage = openGates(pod)
		if isReady = gateMessage == ""; !isReady {
			gateReason = "ReadinessGatesNotReady"
		}
	}
	set(corev1.PodReady, isReady, gateReason, gateMessage)
	set(corev1.ContainersReady, l.state == ready, reason, message)
	set(corev1.PodScheduled, true, "", "")
}

// openGates returns which readiness gates of a Pod are not passed.
func openGates(pod *corev1.Pod) string {
	var out []string
	for _, gate := range pod.Spec.ReadinessGates {
		found, passed := false, false
		for _, c := range pod.Status.Conditions {
			if c.Type == gate.ConditionType {
				found, passed = true, c.Status == corev1.ConditionTrue
			}
		}
		switch {
		case !found:
			out = append(out, fmt.Sprintf("corresponding condition of pod readiness gate %q does not exist.", string(gate.ConditionType)))
		case !passed:
			out = append(out, fmt.Sprintf("the status of pod readiness gate %q is not \"True\", but %v", string(gate.ConditionType), corev1.ConditionFalse))
		}
	}
	return strings.Join(out, ", ")
}

// container reports one container; what has not changed since the last report
// keeps its times.
func (l life) container(pod *corev1.Pod, c *corev1.Container, old []corev1.ContainerStatus, i int) corev1.ContainerStatus {
	started := l.state == ready || l.state == running
	out := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, ImageID: "sha256:" + digest(c.Image), RestartCount: l.restarts,
		ContainerID: "containerd://" + digest(string(pod.UID), c.Name, fmt.Sprint(l.restarts)),
		Ready:       l.state == ready, Started: &started,
	}
	ended := corev1.ContainerStateTerminated{
		ExitCode: l.exitCode, Reason: "Completed", StartedAt: l.begun, FinishedAt: l.now, ContainerID: out.ContainerID,
	}
	if l.exitCode != 0 {
		ended.Reason = "Error"
	}
	switch l.state {
	case ready, running:
		out.State.Running = &corev1.ContainerStateRunning{StartedAt: l.begun}
	case crashing:
		out.State.Waiting = &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff",
			Message: fmt.Sprintf("back-off %s restarting failed container=%s pod=%s_%s(%s)",
				l.backoff, c.Name, pod.Name, pod.Namespace, pod.UID),
		}
		ended.StartedAt = l.now
		out.LastTerminationState.Terminated = &ended
	case succeeded, failed:
		out.State.Terminated = &ended
		out.Ready = l.state == succeeded && isInit(pod, c)
	}
	if i < len(old) && old[i].ContainerID == out.ContainerID && sameState(&old[i], &out) {
		out.State, out.LastTerminationState = old[i].State, old[i].LastTerminationState
	}
	return out
}

func isInit(pod *corev1.Pod, c *corev1.Container) bool {
	for i := range pod.Spec.InitContainers {
		if &pod.Spec.InitContainers[i] == c {
			return true
		}
	}
	return false
}

func sameState(a, b *corev1.ContainerStatus) bool {
	return (a.State.Running == nil) == (b.State.Running == nil) &&
		(a.State.Waiting == nil) == (b.State.Waiting == nil) &&
		(a.State.Terminated == nil) == (b.State.Terminated == nil)
}

// digest returns the digest that stands for an image or a container.
func digest(of ...string) string {
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(of, "/"))))
}
