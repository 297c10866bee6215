// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetesservice

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/apiserver/table"
	"github.com/steer-dev/steer/controlplane/component"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// Components are the parts of a control plane, by the names that they have in a
// cluster: an error says why one does not run, or is not healthy.
type Components struct {
	ControllerManager, Scheduler error
	// Store tells how the store is, which stands for etcd.
	Store func() error
}

// Component returns the resource that shows the components.
func (c Components) Component() component.Component {
	return component.Component{Name: "component statuses", Resources: []*resource.Resource{c.resource()}}
}

func (c Components) resource() *resource.Resource {
	k := kind.Definition[corev1.ComponentStatus, *corev1.ComponentStatus]{Version: "v1", Plural: "componentstatuses", Cluster: true}
	return &resource.Resource{
		Names: resource.Names{
			Plural: "componentstatuses", Singular: "componentstatus", Kind: "ComponentStatus", ListKind: "ComponentStatusList", ShortNames: []string{"cs"},
		},
		Versions: []resource.Version{{
			Name: "v1", New: func() resource.Object { return &corev1.ComponentStatus{} }, Strategy: k.Strategy(),
			Deprecation: "v1 ComponentStatus is deprecated in v1.19+",
			Printer:     &table.Typed[*corev1.ComponentStatus]{Definitions: kind.Columns("Name", "Status", "Message", "Error"), Row: componentRow},
		}},
		Backend: components{c},
	}
}

func componentRow(c *corev1.ComponentStatus) []any {
	status := "Unhealthy"
	condition := c.Conditions[0] // each has one
	if condition.Status == corev1.ConditionTrue {
		status = "Healthy"
	}
	return []any{c.Name, status, condition.Message, condition.Error}
}

// components is the backend of ComponentStatuses.
type components struct{ parts Components }

// Get implements resource.Getter.
func (c components) Get(_ context.Context, r *resource.Request) (resource.Object, error) {
	for _, obj := range c.all() {
		if obj.GetName() == r.Name {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("componentstatus"), r.Name)
}

// List implements resource.Lister.
func (c components) List(_ context.Context, _ *resource.Request, _ *internalversion.ListOptions) (*resource.List, error) {
	return &resource.List{Items: c.all()}, nil
}

func (c components) all() []resource.Object {
	return []resource.Object{
		componentStatus("controller-manager", c.parts.ControllerManager), componentStatus("scheduler", c.parts.Scheduler), componentStatus("etcd-0", c.parts.Store()),
	}
}

func componentStatus(name string, err error) *corev1.ComponentStatus {
	condition := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: "ok"}
	if err != nil {
		condition.Status, condition.Message = corev1.ConditionFalse, err.Error()
	}
	return &corev1.ComponentStatus{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ComponentStatus"},
		ObjectMeta: metav1.ObjectMeta{Name: name}, Conditions: []corev1.ComponentCondition{condition},
	}
}
