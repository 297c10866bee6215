// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/controlplane/workloads/internal/cluster"
)

// schedule binds a Pod to a node.
func (t *visit) schedule(p *cluster.Object) {
	pod := cluster.Stored[corev1.Pod](t.Turn, p.Key)
	if pod == nil || pod.Spec.SchedulerName != corev1.DefaultSchedulerName || len(pod.Spec.SchedulingGates) > 0 {
		return
	}
	if t.controller.fateOf(p).Fate == Unschedulable {
		t.unschedulable(pod, "1 node(s) are scripted not to take the pod")
		return
	}
	name, why := t.place(pod, p.Target)
	if name == "" {
		t.unschedulable(pod, why)
		return
	}
	if _, written := t.Written[cluster.NodeOf(name)]; written {
		t.Due.Add(p.Key) // what this turn does to the node comes first
		return
	}
	binding := &corev1.Binding{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Binding"},
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: name},
	}
	t.Written.Add(p.Key)
	t.Send(step.Request{
		User: step.Scheduler, Method: http.MethodPost, Path: cluster.ResourceOf(cluster.Pods).Object(p.Key) + "/binding",
		ContentType: step.Protobuf, Body: step.Encode(binding), Subject: step.Subject{Key: p.Key},
	})
	t.placed[name]++
	t.Tell(cluster.Note{
		User: step.Scheduler, About: p.Key, UID: p.UID, Reason: "Scheduled",
		Message: fmt.Sprintf("Successfully assigned %s to %s", p.Key.Name, name),
	})
}

// place returns the node for a Pod, or why none takes it: the one that it asks for by name, if
// any; the simulated one, if that suits and takes it; or else of the others the one with the fewest
// Pods. Where no node has what a Pod selects, the simulated one takes it all the same.
func (t *visit) place(pod *corev1.Pod, target string) (name, why string) {
	if t.Index.Node(NodeName) == nil && (target == "" || target == NodeName) {
		return NodeName, "" // it is about to be there
	}
	simulated := t.Index.Node(NodeName)
	if (target == "" || target == NodeName) && simulated.Suits(&pod.Spec) && refusal(simulated, pod) == "" {
		return NodeName, "" // most are
	}
	refusals := map[string]int{}
	best, fewest, wanted, spare := "", 0, target != "", false
	for _, node := range t.Index.Nodes() {
		suits := target == node.Key.Name || target == "" && node.Suits(&pod.Spec)
		wanted = wanted || suits
		refusal := refusal(node, pod)
		if !suits {
			spare = spare || node.Key.Name == NodeName && refusal == ""
			refusal = "node(s) didn't match Pod's node affinity/selector"
		}
		switch count := t.Index.CountOn(node.Key.Name) + t.placed[node.Key.Name]; {
		case refusal != "":
			refusals[refusal]++
		case best == "" || count < fewest:
			best, fewest = node.Key.Name, count
		}
	}
	if !wanted && spare {
		return NodeName, ""
	}
	var lines []string
	for _, refusal := range slices.Sorted(maps.Keys(refusals)) {
		lines = append(lines, fmt.Sprintf("%d %s", refusals[refusal], refusal))
	}
	return best, strings.Join(lines, ", ")
}

// refusal says why a node takes no Pod like this one, if so.
func refusal(node *cluster.Object, pod *corev1.Pod) string {
	unschedulable := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	switch {
	case node.Cordoned && !cluster.Tolerates(pod.Spec.Tolerations, &unschedulable):
		return "node(s) were unschedulable"
	case node.Repels(pod.Spec.Tolerations, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute):
		return "node(s) had untolerated taint(s)"
	}
	return ""
}

// unschedulable reports why no node takes a Pod.
func (t *visit) unschedulable(pod *corev1.Pod, why string) {
	message := fmt.Sprintf("0/%d nodes are available: %s.", max(1, len(t.Index.Nodes())), why)
	written := t.setPodStatus(step.Scheduler, pod, func(s *corev1.PodStatus) {
		setPodCondition(s, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
			Message: message, LastTransitionTime: t.Stamp(), ObservedGeneration: pod.Generation,
		})
	})
	if written {
		t.Tell(cluster.Note{
			User: step.Scheduler, About: podKey(pod), UID: pod.UID, Warning: true, Reason: "FailedScheduling", Message: message,
		})
	}
}
