// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Lifecycle is the admission that ties objects to the life of their namespace.
type Lifecycle struct {
	resource.MutatesOnly
	// Store that holds the namespaces.
	Store storage.Viewer
}

var _ resource.Admission = Lifecycle{}

// Admit implements [resource.Admission].
func (l Lifecycle) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	if r.Resource == nil {
		return nil
	}
	gr := r.Resource.GroupResource()
	namespaces := gr.Group == "" && gr.Resource == "namespaces"
	if namespaces {
		if r.Operation == resource.Delete && immortal(r.Name) {
			return apierrors.NewForbidden(gr, r.Name, fmt.Errorf("this namespace may not be deleted"))
		}
		return nil
	}
	if r.Operation != resource.Create || r.Namespace == "" || isReview(gr) {
		return nil
	}
	rec := l.Store.Get(storage.Key{Bucket: Bucket, Name: r.Namespace})
	if rec == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, r.Namespace)
	}
	if !terminating(rec) {
		return nil
	}
	name := ""
	if r.Object != nil {
		name = r.Object.GetName()
	}
	refusal := apierrors.NewForbidden(gr, name, fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.Namespace))
	refusal.ErrStatus.Details.Causes = append(refusal.ErrStatus.Details.Causes, metav1.StatusCause{
		Type:    corev1.NamespaceTerminatingCause,
		Message: fmt.Sprintf("namespace %s is being terminated", r.Namespace),
		Field:   "metadata.namespace",
	})
	return refusal
}

// Mutates implements [resource.Mutator]: objects stay as they are.
func (l Lifecycle) Mutates(*resource.AdmissionRequest) bool { return false }

// immortal namespaces cannot be deleted.
func immortal(name string) bool {
	return name == metav1.NamespaceDefault || name == metav1.NamespaceSystem || name == metav1.NamespacePublic
}

// isReview tells the resources that answer questions about a namespace without
// storing anything in it.
func isReview(gr schema.GroupResource) bool {
	return gr.Group == "authorization.k8s.io" && gr.Resource == "localsubjectaccessreviews"
}

// terminating reports whether a stored namespace is in the phase Terminating. The
// answer is part of every creation, so most namespaces are not decoded.
func terminating(rec *storage.Record) bool {
	if !bytes.Contains(rec.Value, []byte(corev1.NamespaceTerminating)) {
		return false
	}
	var ns struct {
		Status struct {
			Phase corev1.NamespacePhase `json:"phase"`
		} `json:"status"`
	}
	return json.Unmarshal(rec.Value, &ns) == nil && ns.Status.Phase == corev1.NamespaceTerminating
}
