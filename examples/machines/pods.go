// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

// pods shows the machines that have a process as Pods with one container: kubectl logs,
// exec and port-forward know no other kind. It is computed when it is read.
type pods struct{ *host }

// Resource implements [extension.Kind].
func (p pods) Resource() (*resource.Resource, error) {
	return &resource.Resource{
		Names: resource.Names{Plural: "pods", Singular: "pod", Kind: "Pod", ListKind: "PodList", Namespaced: true},
		Versions: []resource.Version{{
			Name: "v1", New: func() resource.Object { return &corev1.Pod{} }, Strategy: readOnly{},
			Subresources: p.subresources(),
		}},
		Backend: p,
	}, nil
}

// List implements [resource.Lister].
func (p pods) List(_ context.Context, r *resource.Request, _ *internalversion.ListOptions) (*resource.List, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	list := &resource.List{}
	for name, machine := range p.processes {
		if r.Namespace != "" && r.Namespace != name.Namespace {
			continue
		}
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "machine"}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
		pod.Name, pod.Namespace, pod.UID, pod.CreationTimestamp = name.Name, name.Namespace, machine.uid, machine.born
		if machine.exited() {
			pod.Status.Phase = corev1.PodSucceeded
			if machine.code != 0 {
				pod.Status.Phase = corev1.PodFailed
			}
		}
		list.Items = append(list.Items, pod)
	}
	slices.SortFunc(list.Items, func(a, b resource.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list, nil
}

// Get implements [resource.Getter].
func (p pods) Get(ctx context.Context, r *resource.Request) (resource.Object, error) {
	list, err := p.List(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	for _, obj := range list.Items {
		if obj.GetName() == r.Name {
			return obj, nil
		}
	}
	return nil, apierrors.NewNotFound(r.Resource.GroupResource(), r.Name)
}

// readOnly is the strategy of objects that are not written.
type readOnly struct{}

func (readOnly) Default(resource.Object) ([]string, error)                           { return nil, nil }
func (readOnly) Prepare(context.Context, resource.Object, resource.Object)           {}
func (readOnly) Warnings(context.Context, resource.Object, resource.Object) []string { return nil }
func (readOnly) Validate(context.Context, resource.Object, resource.Object) field.ErrorList {
	return nil
}
