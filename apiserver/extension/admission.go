// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"errors"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/internal/cluster"
	"github.com/steer-dev/steer/apiserver/resource"
)

// namespaces refuses creations in namespaces that the cluster does not have, or that are
// being deleted: their objects would stay. It asks the cluster for each creation.
type namespaces struct {
	resource.MutatesOnly
	client *cluster.Client
}

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

// Mutates implements [resource.Mutator].
func (n *namespaces) Mutates(*resource.AdmissionRequest) bool { return false }
