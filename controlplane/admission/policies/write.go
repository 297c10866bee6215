// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package policies

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission/match"
)

// write is one write as the expressions of all policies see it, with its Namespace. It is
// for one goroutine.
type write struct {
	*match.Request
	namespace struct {
		read bool
		obj  *corev1.Namespace
		err  error
		form any
	}
}

func newWrite(r *resource.AdmissionRequest, deps *match.Deps) *write {
	return &write{Request: match.NewRequest(r, deps)}
}

// replace makes an object in a kind of [match.Request.As] that of the write. For a
// connection it is the options.
func (w *write) replace(ctx context.Context, obj runtime.Object, kind schema.GroupVersionKind) error {
	if obj, ok := obj.(resource.Object); ok {
		return w.Replace(ctx, obj, kind)
	}
	w.ReplaceOptions(obj)
	return nil
}

// readNamespace reads the Namespace of the write, once. A cluster-scoped object has none, nor
// has a Namespace.
func (w *write) readNamespace(ctx context.Context) error {
	n := &w.namespace
	if !n.read {
		n.read = true
		if w.Kind != corev1.SchemeGroupVersion.WithKind("Namespace") {
			n.obj, n.err = w.Namespace(ctx)
		}
	}
	return n.err
}

// namespaceForm returns the value of the variable namespaceObject, once [write.readNamespace] has
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
