// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

// assign is the action of a Binding, whose answer is a Status.
func assign(_ context.Context, obj, body resource.Object) (answer resource.Object, err error) {
	return nil, bind(obj, body)
}

// bind assigns a Pod that has no node yet to the node that a Binding names.
func bind(obj, body resource.Object) error {
	p, b := obj.(*corev1.Pod), body.(*corev1.Binding)
	var errs field.ErrorList
	if kind := b.Target.Kind; kind != "" && kind != "Node" {
		errs = append(errs, field.NotSupported(field.NewPath("target", "kind"), kind, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(field.NewPath("target", "name"), ""))
	}
	switch {
	case len(errs) > 0:
		// Refusals are conflicts otherwise; this one has no reason to name.
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: errs.ToAggregate().Error(),
		}}
	case p.DeletionTimestamp != nil:
		return unbound(p, fmt.Errorf("pod %s is being deleted, cannot be assigned to a host", p.Name))
	case p.Spec.NodeName != "":
		return unbound(p, fmt.Errorf("pod %v is already assigned to node %q", p.Name, p.Spec.NodeName))
	case len(p.Spec.SchedulingGates) > 0:
		return unbound(p, errors.New("pod "+p.Name+" has non-empty .spec.schedulingGates"))
	}
	p.Spec.NodeName = b.Target.Name
	p.Status.NominatedNodeName = ""
	p.Annotations, p.Labels = merged(p.Annotations, b.Annotations), merged(p.Labels, b.Labels)
	scheduled := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now().Rfc3339Copy()}
	for i, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled {
			p.Status.Conditions[i] = scheduled
			return nil
		}
	}
	p.Status.Conditions = append(p.Status.Conditions, scheduled)
	return nil
}

// unbound returns the error for a Pod that cannot be bound.
func unbound(p *corev1.Pod, err error) error {
	return apierrors.NewConflict(corev1.Resource("pods/binding"), p.Name, err)
}

// merged returns a map with the entries of another over its own.
func merged(own, over map[string]string) map[string]string {
	if len(over) == 0 {
		return own
	}
	out := maps.Clone(own)
	if out == nil {
		out = map[string]string{}
	}
	maps.Copy(out, over)
	return out
}
