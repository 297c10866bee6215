// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	admissioncel "k8s.io/apiserver/pkg/admission/plugin/cel"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/internal/expression"
)

// Values are what the expressions of webhooks and policies can refer to, without the
// Namespace, which match conditions do not know.
type Values struct {
	expression.Values
	// conditions is the variable request of match conditions: as in kube-apiserver it has
	// the resource of the write, not the one that a rule names.
	conditions func() any
}

// Values returns the values of a write as an invocation sees it. They are made once for all
// that see it in the same way, and must not be changed.
func (q *Request) Values(ctx context.Context, as Invocation) (*Values, error) {
	if v := q.values[as]; v != nil {
		return v, nil
	}
	form, err := q.As(ctx, as.Kind)
	if err != nil {
		return nil, err
	}
	v := &Values{Values: expression.Values{
		Request:            requestValue(form, as.Resource),
		Authorizer:         library.NewAuthorizerVal(form.GetUserInfo(), q.d.Authorizer),
		ResourceAuthorizer: library.NewResourceAuthorizerVal(form.GetUserInfo(), q.d.Authorizer, form),
	}}
	if v.conditions = v.Request; as.Resource != q.GVR {
		v.conditions = requestValue(form, q.GVR)
	}
	for _, at := range []struct {
		obj  runtime.Object
		into *any
	}{{form.Object, &v.Object}, {form.OldObject, &v.OldObject}} {
		if at.obj == nil {
			continue // a nil value, not a nil map
		}
		if *at.into, err = Content(at.obj); err != nil {
			return nil, err
		}
	}
	if q.values == nil {
		q.values = map[Invocation]*Values{}
	}
	q.values[as] = v
	return v, nil
}

// requestValue returns what makes the value of the variable request, once.
func requestValue(form *Form, gvr schema.GroupVersionResource) func() any {
	var known any
	return func() any {
		if known == nil {
			request := admissioncel.CreateAdmissionRequest(form.Attributes, metav1.GroupVersionResource(gvr), metav1.GroupVersionKind(form.Kind))
			value, err := runtime.DefaultUnstructuredConverter.ToUnstructured(request)
			if err != nil {
				return err // the expression fails with it
			}
			known = value
		}
		return known
	}
}

// Content returns an object in the form of JSON.
func Content(obj runtime.Object) (map[string]any, error) {
	if d, ok := obj.(*resource.Doc); ok {
		return d.Content(), nil
	}
	return runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
}
