// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/core/kind"
)

// bindings returns the resource by which Pods are bound without the path of the
// Pod. It does what the subresource binding of the Pod does that has the name.
func (s Subresources) bindings() *resource.Resource {
	k := kind.Definition[corev1.Binding, *corev1.Binding]{Version: "v1", Plural: "bindings"}
	return &resource.Resource{
		Names: resource.Names{Plural: "bindings", Singular: "binding", Kind: "Binding", ListKind: "BindingList", Namespaced: true},
		Versions: []resource.Version{{
			Name: "v1", New: func() resource.Object { return &corev1.Binding{} }, Strategy: k.Strategy(),
		}},
		Backend: binder{s},
	}
}

// binder is the backend of bindings.
type binder struct{ Subresources }

// Create implements resource.Creater.
func (b binder) Create(ctx context.Context, r *resource.Request, obj resource.Object, options *metav1.CreateOptions) (resource.Object, error) {
	name := obj.GetName()
	if name == "" {
		return nil, apierrors.NewBadRequest("Name parameter required.")
	}
	p, err := load[corev1.Pod](b.Store, "pods", r.Namespace, name)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	if len(options.DryRun) > 0 {
		return nil, bind(p, obj) // a copy, which is dropped
	}
	body, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("bind %s: %w", name, err)
	}
	return nil, b.Send(ctx, http.MethodPost, "/api/v1/namespaces/"+r.Namespace+"/pods/"+name+"/binding", body)
}
