// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pod serves Pods and PodTemplates: the rules of their updates, and their
// subresources. The rules of a specification are in package podspec.
package pod

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
	"github.com/steer-dev/steer/controlplane/core/podspec"
	"github.com/steer-dev/steer/controlplane/core/podwarning"
	"github.com/steer-dev/steer/internal/fastname"
)

// Resources returns the kinds of this package.
func Resources() []*resource.Resource {
	type pod = *corev1.Pod
	return []*resource.Resource{
		kind.Definition[corev1.Pod, pod]{
			Version: "v1", Plural: "pods", Short: []string{"po"}, Categories: []string{"all"}, Family: podspec.Family(),
			Metadata: kind.Metadata{RepeatCreationErrors: true, KeepInStatus: []string{"deletionTimestamp", "ownerReferences"}},
			Status:   true, Generations: true, Unconditional: true,
			Defaults:      defaultPod,
			InitialStatus: func(p pod) { p.Status.Phase = corev1.PodPending },
			Prepare:       preparePod,
			Validate:      validatePod,
			PrepareStatus: prepareStatus, ValidateStatus: validateStatus, StatusWarnings: statusWarnings,
			Warnings: func(p, old pod) []string {
				if old != nil { // by then no human looks
					return nil
				}
				return append(nameWarnings(p), podwarning.OfPod(p)...)
			},
			Subresources: append(partialSubresources(), resource.Subresource{
				Name: "binding", Action: assign, Kind: corev1.SchemeGroupVersion.WithKind("Binding"),
				New: func() resource.Object { return &corev1.Binding{} },
			}),
			Columns: kind.Columns("Name", "Ready", "Status", "Restarts", "Age",
				"IP*", "Node*", "Nominated Node*", "Readiness Gates*"),
			Row: podRow,
			Selectable: []kind.Selectable[pod]{
				kind.Leaf("spec.nodeName", func(p pod) string { return p.Spec.NodeName }),
				kind.Leaf("spec.restartPolicy", func(p pod) string { return string(p.Spec.RestartPolicy) }),
				kind.Leaf("spec.schedulerName", func(p pod) string { return p.Spec.SchedulerName }),
				kind.Leaf("spec.serviceAccountName", func(p pod) string { return p.Spec.ServiceAccountName }),
				{Path: "spec.hostNetwork", Value: func(p pod) string { return strconv.FormatBool(p.Spec.HostNetwork) }},
				kind.Leaf("status.phase", func(p pod) string { return string(p.Status.Phase) }),
				kind.Leaf("status.podIP", func(p pod) string { return p.Status.PodIP }),
				{Path: "status.podIPs", Value: func(p pod) string { return p.Status.PodIP }},
				kind.Leaf("status.nominatedNodeName", func(p pod) string { return p.Status.NominatedNodeName }),
			},
			Deletion: resource.DeletionRules{Grace: podGrace, ReturnsObject: true},
		}.Resource(),
		kind.Definition[corev1.PodTemplate, *corev1.PodTemplate]{
			Version: "v1", Plural: "podtemplates", Family: podspec.Family(), Generations: true, Unconditional: true,
			Deletion: resource.DeletionRules{ReturnsObject: true},
			Defaults: func(t *corev1.PodTemplate) { podspec.DefaultTemplate(&t.Template) },
			Prepare:  func(_ context.Context, t, _ *corev1.PodTemplate) { podspec.PrepareTemplate(&t.Template) },
			Validate: func(t, _ *corev1.PodTemplate) field.ErrorList {
				return podspec.ValidateTemplate(&t.Template, field.NewPath("template"))
			},
			Warnings: func(t, old *corev1.PodTemplate) []string {
				if old != nil && old.Generation == t.Generation {
					return nil
				}
				return podwarning.OfTemplate(field.NewPath("template"), &t.Template)
			},
			Columns: kind.Columns("Name", "Containers", "Images", "Pod Labels"),
			Row: func(t *corev1.PodTemplate) []any {
				names, images := kind.ContainerText(t.Template.Spec.Containers)
				return []any{t.Name, names, images, kind.LabelText(t.Template.Labels)}
			},
		}.Resource(),
	}
}

// nameWarnings are about names that hosts cannot have.
func nameWarnings(p *corev1.Pod) []string {
	if fastname.Label(p.Name) {
		return nil
	}
	problems := validation.IsDNS1123Label(p.Name)
	if len(problems) == 0 {
		return nil
	}
	return []string{fmt.Sprintf("metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; "+
		"a DNS label is recommended: %v", problems)}
}

// preparePod drops what cannot be, and completes what follows from the rest.
func preparePod(_ context.Context, p, old *corev1.Pod) {
	podspec.Prepare(&p.Spec)
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil && *g < 0 {
		one := int64(1)
		p.Spec.TerminationGracePeriodSeconds = &one
	}
	if old != nil {
		if p.Spec.Resources == nil { // who does not know the field leaves it as it is
			p.Spec.Resources = old.Spec.Resources.DeepCopy()
		}
		return
	}
	defaultWhole(&p.Spec)
	p.Status.QOSClass = qosClass(&p.Spec)
	matchOwnLabels(p)
	if len(p.Spec.SchedulingGates) > 0 {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates", LastTransitionTime: metav1.Now().Rfc3339Copy(),
		})
	}
}

// podGrace is how long a Pod stays after it was marked as deleted: what the
// request asks for or else the Pod itself, at once if no node has it or if it
// has ended.
func podGrace(obj resource.Object, asked *int64) int64 {
	p := obj.(*corev1.Pod)
	grace := kind.Value(p.Spec.TerminationGracePeriodSeconds)
	if asked != nil {
		grace = *asked
	}
	if p.Spec.NodeName == "" || p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded {
		return 0
	}
	return max(grace, 0)
}

func podRow(p *corev1.Pod) []any {
	sum := summarise(p)
	restarts := strconv.Itoa(sum.restarts)
	if sum.restarts != 0 && !sum.lastRestart.IsZero() {
		restarts += " (" + duration.HumanDuration(time.Since(sum.lastRestart)) + " ago)"
	}
	gates := kind.None
	if len(p.Spec.ReadinessGates) > 0 {
		passed := 0
		for _, gate := range p.Spec.ReadinessGates {
			for _, c := range p.Status.Conditions {
				if c.Type == gate.ConditionType && c.Status == corev1.ConditionTrue {
					passed++
					break
				}
			}
		}
		gates = strconv.Itoa(passed) + "/" + strconv.Itoa(len(p.Spec.ReadinessGates))
	}
	ip := kind.None
	if len(p.Status.PodIPs) > 0 {
		ip = p.Status.PodIPs[0].IP
	}
	return []any{
		p.Name, strconv.Itoa(sum.ready) + "/" + strconv.Itoa(sum.containers), sum.reason, restarts, kind.Age(p),
		kind.OrNone(ip), kind.OrNone(p.Spec.NodeName), kind.OrNone(p.Status.NominatedNodeName), gates,
	}
}

// podSummary is a Pod in one line.
type podSummary struct {
	reason                      string
	containers, ready, restarts int
	lastRestart                 time.Time
}

func summarise(p *corev1.Pod) podSummary {
	s := podSummary{containers: len(p.Spec.Containers), reason: string(p.Status.Phase)}
	if p.Status.Reason != "" {
		s.reason = p.Status.Reason
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonSchedulingGated {
			s.reason = corev1.PodReasonSchedulingGated
		}
	}
	sidecars := map[string]bool{}
	for _, c := range p.Spec.InitContainers {
		if kind.Value(c.RestartPolicy) == corev1.ContainerRestartPolicyAlways {
			sidecars[c.Name] = true
			s.containers++
		}
	}
	if !s.initialise(p, sidecars) || podInitialised(p) {
		s.run(p)
	}
	if p.DeletionTimestamp != nil {
		switch {
		case p.Status.Reason == "NodeLost":
			s.reason = "Unknown"
		case p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed:
			s.reason = "Terminating"
		}
	}
	return s
}

// initialise accounts for init containers and reports whether one is not done.
func (s *podSummary) initialise(p *corev1.Pod, sidecars map[string]bool) bool {
	var sidecarRestarts int
	var lastSidecar time.Time
	for i, c := range p.Status.InitContainerStatuses {
		s.restarts += int(c.RestartCount)
		if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(s.lastRestart) {
			s.lastRestart = t.FinishedAt.Time
		}
		sidecar := sidecars[c.Name]
		if sidecar {
			sidecarRestarts += int(c.RestartCount)
			if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(lastSidecar) {
				lastSidecar = t.FinishedAt.Time
			}
		}
		switch t, w := c.State.Terminated, c.State.Waiting; {
		case t != nil && t.ExitCode == 0:
			continue
		case sidecar && c.Started != nil && *c.Started:
			if c.Ready {
				s.ready++
			}
			continue
		case t != nil:
			s.reason = "Init:" + ended(t)
		case w != nil && w.Reason != "" && w.Reason != "PodInitializing":
			s.reason = "Init:" + w.Reason
		default:
			s.reason = "Init:" + strconv.Itoa(i) + "/" + strconv.Itoa(len(p.Spec.InitContainers))
		}
		return true
	}
	// From here on only the restarts of those that keep running count.
	s.restarts, s.lastRestart = sidecarRestarts, lastSidecar
	return false
}

// run accounts for the containers proper.
func (s *podSummary) run(p *corev1.Pod) {
	running := false
	for _, c := range slices.Backward(p.Status.ContainerStatuses) {
		s.restarts += int(c.RestartCount)
		if t := c.LastTerminationState.Terminated; t != nil && t.FinishedAt.After(s.lastRestart) {
			s.lastRestart = t.FinishedAt.Time
		}
		switch w, t := c.State.Waiting, c.State.Terminated; {
		case w != nil && w.Reason != "":
			s.reason = w.Reason
		case t != nil:
			s.reason = ended(t)
		case c.Ready && c.State.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason == "Completed" && running { // one has ended, others go on
		s.reason = "NotReady"
		if podReady(p) {
			s.reason = "Running"
		}
	}
}

// ended is why a container has ended.
func ended(t *corev1.ContainerStateTerminated) string {
	switch {
	case t.Reason != "":
		return t.Reason
	case t.Signal != 0:
		return "Signal:" + strconv.Itoa(int(t.Signal))
	default:
		return "ExitCode:" + strconv.Itoa(int(t.ExitCode))
	}
}

func podReady(p *corev1.Pod) bool       { return podCondition(p, corev1.PodReady) }
func podInitialised(p *corev1.Pod) bool { return podCondition(p, corev1.PodInitialized) }

func podCondition(p *corev1.Pod, t corev1.PodConditionType) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == t && c.Status == corev1.ConditionTrue
	})
}
