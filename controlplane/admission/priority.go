// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Priority gives new Pods the priority and preemption policy of their class, or
// of the default class, and sees to it that there is at most one default.
type Priority struct {
	classes *Lister[schedulingv1.PriorityClass]
}

var _ resource.Admission = (*Priority)(nil)

// NewPriority returns the admission over the classes of a store.
func NewPriority(store storage.Viewer) *Priority {
	return &Priority{NewLister[schedulingv1.PriorityClass](store, "scheduling.k8s.io/priorityclasses")}
}

// Mutates implements [resource.Mutator].
func (p *Priority) Mutates(r *resource.AdmissionRequest) bool {
	pod := written[corev1.Pod](r)
	return pod != nil && (r.Operation == resource.Create || pod.Spec.Priority == nil || pod.Spec.PreemptionPolicy == nil)
}

// Admit implements [resource.Admission].
func (p *Priority) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	pod := written[corev1.Pod](r)
	if pod == nil {
		return nil
	}
	if old := podBefore(r); old != nil { // who updates a Pod need not repeat it
		if pod.Spec.Priority == nil {
			pod.Spec.Priority = old.Spec.Priority
		}
		if pod.Spec.PreemptionPolicy == nil {
			pod.Spec.PreemptionPolicy = old.Spec.PreemptionPolicy
		}
		return nil
	}
	class, err := p.classOf(r, pod)
	if err != nil {
		return err
	}
	pod.Spec.PriorityClassName = class.Name
	if given := pod.Spec.Priority; given != nil && *given != class.Value {
		return Forbidden(r, "the integer value of priority (%d) must not be provided in pod spec; priority admission controller computed %d from the given PriorityClass name", *given, class.Value)
	}
	pod.Spec.Priority = &class.Value
	policy := corev1.PreemptLowerPriority
	if class.PreemptionPolicy != nil {
		policy = *class.PreemptionPolicy
	}
	if given := pod.Spec.PreemptionPolicy; given != nil && *given != policy {
		return Forbidden(r, "the string value of PreemptionPolicy (%s) must not be provided in pod spec; priority admission controller computed %s from the given PriorityClass name", *given, policy)
	}
	pod.Spec.PreemptionPolicy = &policy
	return nil
}

// classOf returns a copy of the class of a Pod: the named one, the default, or
// one without a name and of priority 0.
func (p *Priority) classOf(r *resource.AdmissionRequest, pod *corev1.Pod) (schedulingv1.PriorityClass, error) {
	name := pod.Spec.PriorityClassName
	class, err := p.defaultClass()
	if name != "" {
		class, err = p.classes.Get(name)
	}
	switch {
	case err != nil:
		return schedulingv1.PriorityClass{}, err
	case class != nil:
		return *class, nil
	case name != "":
		return schedulingv1.PriorityClass{}, Forbidden(r, "no PriorityClass with name %s was found", name)
	}
	return schedulingv1.PriorityClass{}, nil
}

// defaultClass returns the default class, nil if there is none; of several the
// one with the lowest value.
func (p *Priority) defaultClass() (*schedulingv1.PriorityClass, error) {
	classes, err := p.classes.All("")
	if err != nil {
		return nil, err
	}
	var found *schedulingv1.PriorityClass
	for _, c := range classes {
		if c.GlobalDefault && (found == nil || c.Value < found.Value) {
			found = c
		}
	}
	return found, nil
}

// Validate implements [resource.Admission].
func (p *Priority) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	if _, isClass := r.Old.(*schedulingv1.PriorityClass); isClass && r.Operation == resource.Delete &&
		(r.Name == "system-cluster-critical" || r.Name == "system-node-critical") {
		return Forbidden(r, "this is a system priority class and cannot be deleted")
	}
	class := written[schedulingv1.PriorityClass](r)
	if class == nil || !class.GlobalDefault {
		return nil
	}
	other, err := p.defaultClass()
	if err != nil {
		return err
	}
	if other != nil && (r.Operation == resource.Create || other.Name != class.Name) {
		return Forbidden(r, "PriorityClass %s is already marked as default. Only one default can exist", other.Name)
	}
	return nil
}
