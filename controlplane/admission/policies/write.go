// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// write is one write as the expressions of all policies see it: what they refer to is made
// once. It is for one goroutine.
type write struct {
	*match.Request
	deps *match.Deps
	// seen are the values by how policies see the write, until the object changes.
	seen      map[match.Invocation]*seen
	contents  map[runtime.Object]map[string]any
	namespace struct {
		read bool
		obj  *corev1.Namespace
		err  error
		form any
	}
}

// seen has the values of a write for the policies that see it in one way.
type seen struct {
	expression.Values
	// conditions is the variable request of match conditions: as in kube-apiserver it has
	// the resource of the write, not the one that a rule names.
	conditions func() any
}

func newWrite(r *resource.AdmissionRequest, deps *match.Deps) *write {
	return &write{
		Request: match.NewRequest(r, deps), deps: deps,
		seen: map[match.Invocation]*seen{}, contents: map[runtime.Object]map[string]any{},
	}
}

// replace makes an object in a kind of [match.Request.As] that of the write. For a
// connection it is the options.
func (w *write) replace(ctx context.Context, obj runtime.Object, kind schema.GroupVersionKind) error {
	clear(w.seen)
	clear(w.contents)
	if obj, ok := obj.(resource.Object); ok {
		return w.Replace(ctx, obj, kind)
	}
	w.Options = obj
	w.Request = match.NewRequest(w.AdmissionRequest, w.deps)
	return nil
}

// see returns the values of the write, without its Namespace, for the policies that see it
// in one way.
func (w *write) see(ctx context.Context, as match.Invocation) (*seen, error) {
	if v := w.seen[as]; v != nil {
		return v, nil
	}
	form, err := w.As(ctx, as.Kind)
	if err != nil {
		return nil, err
	}
	v := &seen{Values: expression.Values{
		Request:            w.request(form, as.Resource),
		Authorizer:         library.NewAuthorizerVal(form.GetUserInfo(), w.deps.Authorizer),
		ResourceAuthorizer: library.NewResourceAuthorizerVal(form.GetUserInfo(), w.deps.Authorizer, form),
	}}
	if v.conditions = v.Request; as.Resource != w.GVR {
		v.conditions = w.request(form, w.GVR)
	}
	if v.Object, err = w.form(form.VersionedObject); err != nil {
		return nil, err
	}
	if v.OldObject, err = w.form(form.VersionedOldObject); err != nil {
		return nil, err
	}
	w.seen[as] = v
	return v, nil
}

// form returns an object in the form of JSON, nil for none.
func (w *write) form(obj runtime.Object) (any, error) {
	if obj == nil {
		return nil, nil //nolint:nilnil // there is no object
	}
	if known := w.contents[obj]; known != nil {
		return known, nil
	}
	form, err := content(obj)
	if err != nil {
		return nil, err
	}
	w.contents[obj] = form
	return form, nil
}

// request returns what makes the value of the variable request, once.
func (w *write) request(form *admission.VersionedAttributes, gvr schema.GroupVersionResource) func() any {
	var known any
	return func() any {
		if known == nil {
			request := admissioncel.CreateAdmissionRequest(form.Attributes, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(form.VersionedKind))
			value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
			if err != nil {
				return err // the expression fails with it
			}
			known = value
		}
		return known
	}
}

// space returns the Namespace of the write; nil for a cluster-scoped object, and for a
// Namespace.
func (w *write) space(ctx context.Context) (*corev1.Namespace, error) {
	n := &w.namespace
	if !n.read {
		n.read = true
		if w.Kind != corev1.SchemeGroupVersion.WithKind("Namespace") {
			n.obj, n.err = w.Namespace(ctx)
		}
	}
	return n.obj, n.err
}

// namespaceForm returns the value of the variable namespaceObject, once [write.space] has
// succeeded.
func (w *write) namespaceForm() any {
	n := &w.namespace
	if n.obj == nil || n.form != nil {
		return n.form
	}
	value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(admissioncel.CreateNamespaceObject(n.obj))
	if err != nil {
		return err // the expression fails with it
	}
	n.form = value
	return n.form
}

// content returns an object in the form of JSON. That of an unstructured object is shared.
func content(obj runtime.Object) (map[string]any, error) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		return u.Object, nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
