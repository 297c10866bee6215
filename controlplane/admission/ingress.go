// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// IngressClass gives new Ingresses that say nothing about a class the default
// one.
type IngressClass struct {
	resource.MutatesOnly
	classes *Lister[networkingv1.IngressClass]
}

var _ resource.Admission = (*IngressClass)(nil)

// NewIngressClass returns the admission over the classes of a store.
func NewIngressClass(store storage.Viewer) *IngressClass {
	return &IngressClass{classes: NewLister[networkingv1.IngressClass](store, "networking.k8s.io/ingressclasses")}
}

// annotatedClass is where Ingresses named their class before they had a field
// for it.
const annotatedClass = "kubernetes.io/ingress.class"

func (*IngressClass) lacksClass(r *resource.AdmissionRequest) *networkingv1.Ingress {
	i := created[networkingv1.Ingress](r)
	if i == nil || i.Spec.IngressClassName != nil {
		return nil
	}
	if _, annotated := i.Annotations[annotatedClass]; annotated {
		return nil
	}
	return i
}

// Mutates implements [resource.Mutator].
func (a *IngressClass) Mutates(r *resource.AdmissionRequest) bool { return a.lacksClass(r) != nil }

// Admit implements [resource.Admission].
func (a *IngressClass) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	i := a.lacksClass(r)
	if i == nil {
		return nil
	}
	classes, err := a.classes.All("")
	if err != nil {
		return err
	}
	chosen := newest(classes, func(c *networkingv1.IngressClass) bool {
		return c.Annotations[networkingv1.AnnotationIsDefaultIngressClass] == "true"
	})
	if chosen != nil {
		name := chosen.Name
		i.Spec.IngressClassName = &name
	}
	return nil
}
