// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/cluster"
	"github.com/steer-dev/steer/apiserver/resource"
)

// admissions returns an admission that calls each one that is not nil, nil if all are.
func admissions(all ...resource.Admission) resource.Admission {
	var out chain
	for _, a := range all {
		if a != nil {
			out = append(out, a)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

type chain []resource.Admission

// Admit implements [resource.Admission].
func (c chain) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	for _, a := range c {
		if err := a.Admit(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Validate implements [resource.Admission].
func (c chain) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	for _, a := range c {
		if err := a.Validate(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// Mutates implements [resource.Mutator].
func (c chain) Mutates(r *resource.AdmissionRequest) bool {
	return slices.ContainsFunc(c, func(a resource.Admission) bool { return resource.Mutates(a, r) })
}

// namespaces refuses creations in namespaces that the cluster does not have, or that are
// being deleted: their objects would stay.
type namespaces struct{ client *cluster.Client }

// Admit implements [resource.Admission].
func (n *namespaces) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Operation != resource.Create || r.Namespace == "" || r.Subresource != "" {
		return nil
	}
	var namespace corev1.Namespace
	err := n.client.Get(ctx, "/api/v1/namespaces/"+r.Namespace, &namespace)
	switch {
	case cluster.Answered(err, http.StatusNotFound):
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, r.Namespace)
	case err != nil:
		return apierrors.NewInternalError(err)
	case namespace.DeletionTimestamp == nil:
		return nil
	}
	refused := apierrors.NewForbidden(r.Resource.GroupResource(), r.Name, errors.New("unable to create new content in namespace "+r.Namespace+" because it is being terminated"))
	refused.ErrStatus.Details.Causes = append(refused.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: "namespace " + r.Namespace + " is being terminated", Field: "metadata.namespace",
	})
	return refused
}

// Validate implements [resource.Admission].
func (n *namespaces) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

// Mutates implements [resource.Mutator].
func (n *namespaces) Mutates(*resource.AdmissionRequest) bool { return false }
