// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/steer-dev/steer/apiserver/resource"
)

// Request is one write as webhooks and policies see it. What they need of it is computed
// on first use. It is for one goroutine at a time, and for one pass of admission.
type Request struct {
	*resource.AdmissionRequest
	d *Deps
	// Kind and GVR are the kind of the objects and the resource, in the version of the
	// request.
	Kind schema.GroupVersionKind
	GVR  schema.GroupVersionResource
	// AttributedNamespace is the namespace as an AdmissionReview names it: that of a
	// Namespace is itself.
	AttributedNamespace string

	attributes admission.Attributes
	forms      map[schema.GroupVersionKind]*Form
	values     map[Invocation]*Values
	equals     []equivalent
	namespace  struct {
		read bool
		obj  *corev1.Namespace
		err  error
	}
}

// NewRequest returns a write for webhooks and policies. Raw members of its objects are
// decoded when [Request.As] is called.
func NewRequest(r *resource.AdmissionRequest, d *Deps) *Request {
	q := &Request{AdmissionRequest: r, d: d, AttributedNamespace: r.Namespace}
	q.Kind = kindOf(r.Resource, r.Version, r.Subresource)
	q.GVR = r.Resource.GroupResource().WithVersion(r.Version.Name)
	if isNamespaces(q.GVR.GroupResource()) && q.AttributedNamespace == "" {
		q.AttributedNamespace = r.Name
	}
	return q
}

func isNamespaces(gr schema.GroupResource) bool { return gr.Group == "" && gr.Resource == "namespaces" }

// kindOf is the kind of a resource or subresource in a version.
func kindOf(r *resource.Resource, v *resource.Version, subresource string) schema.GroupVersionKind {
	if s := v.Subresource(subresource); s != nil {
		switch {
		case s.Scale != nil:
			return schema.GroupVersionKind{Group: "autoscaling", Version: "v1", Kind: "Scale"}
		case !s.Kind.Empty():
			return s.Kind
		}
	}
	return r.GroupVersionKind(v.Name)
}

// Attributes returns the write as the libraries of Kubernetes want it. Its object is the
// one that the request had when Attributes or [Request.As] was first called.
func (q *Request) Attributes() admission.Attributes {
	if q.attributes != nil {
		return q.attributes
	}
	var obj, old, options runtime.Object
	if q.Object != nil {
		obj = q.Object
	}
	if q.Old != nil {
		old = q.Old
	}
	options, _ = q.Options.(runtime.Object)
	if q.Operation == resource.Connect {
		obj, options = options, nil
	}
	var by user.DefaultInfo
	if u := q.User; u != nil {
		by = user.DefaultInfo{Name: u.Name, UID: u.UID, Groups: u.Groups, Extra: u.Extra}
	}
	q.attributes = admission.NewAttributesRecord(obj, old, q.Kind, q.AttributedNamespace, q.Name, q.GVR, q.Subresource,
		admission.Operation(q.Operation), options, q.DryRun, &by)
	return q.attributes
}

// Form is a write in a kind.
type Form struct {
	admission.Attributes
	Kind schema.GroupVersionKind
	// Object and OldObject are those of the write, converted to Kind; nil where it has
	// none. The Object of a connection are its options.
	Object, OldObject runtime.Object
}

// As returns the object and the old object of the write in a kind: that of an
// [Invocation]. A failed conversion is a 500. The result must not be changed; an object
// that takes the place of the current one is set with [Request.Replace].
func (q *Request) As(ctx context.Context, kind schema.GroupVersionKind) (*Form, error) {
	if form := q.forms[kind]; form != nil {
		return form, nil
	}
	form := &Form{Attributes: q.Attributes(), Kind: kind}
	if obj := q.Attributes().GetObject(); obj != nil && q.Operation == resource.Connect {
		form.Object = obj
	}
	if q.Object != nil {
		obj, err := q.convert(ctx, q.Object, kind)
		if err != nil {
			return nil, err
		}
		form.Object = obj
	}
	if q.Old != nil {
		old, err := q.convert(ctx, q.Old, kind)
		if err != nil {
			return nil, err
		}
		form.OldObject = old
	}
	if q.forms == nil {
		q.forms = map[schema.GroupVersionKind]*Form{}
	}
	q.forms[kind] = form
	return form, nil
}

// convert returns an object of the request in another kind that serves the same objects.
func (q *Request) convert(ctx context.Context, obj resource.Object, kind schema.GroupVersionKind) (resource.Object, error) {
	if kind == q.Kind && obj.GetObjectKind().GroupVersionKind() == kind {
		return obj, nil
	}
	if kind == q.Kind {
		obj = obj.DeepCopyObject().(resource.Object)
		obj.GetObjectKind().SetGroupVersionKind(kind)
		return obj, nil
	}
	to, err := q.equivalentOf(kind)
	if err != nil {
		return nil, err
	}
	out, err := q.Resource.ConvertTo(ctx, obj, to.resource, to.gvr.Version)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	return out, nil
}

// Replace makes an object in a kind of [Request.As] the object of the write: it applies
// the defaults and the schema of that version, and converts it to the version of the
// request.
func (q *Request) Replace(ctx context.Context, obj resource.Object, kind schema.GroupVersionKind) error {
	if kind == q.Kind {
		if err := q.Default(obj); err != nil {
			return err
		}
		q.Object = obj
	} else {
		from, err := q.equivalentOf(kind)
		if err != nil {
			return err
		}
		if s := strategyOf(from.version, q.Subresource); s != nil {
			if _, err := s.Default(obj); err != nil {
				return apierrors.NewInternalError(fmt.Errorf("after admission: %w", err))
			}
		}
		back, err := from.resource.ConvertTo(ctx, obj, q.Resource, q.Version.Name)
		if err != nil {
			return apierrors.NewInternalError(err)
		}
		if err := q.Default(back); err != nil {
			return err
		}
		q.Object = back
	}
	old := q.forms[kind]
	q.attributes, q.forms, q.values = nil, nil, nil
	form := &Form{Attributes: q.Attributes(), Kind: kind, Object: obj}
	if old != nil {
		form.OldObject = old.OldObject
	}
	q.forms = map[schema.GroupVersionKind]*Form{kind: form}
	return nil
}

// ReplaceOptions makes an object the options of a connection, which have no metadata.
func (q *Request) ReplaceOptions(options runtime.Object) {
	q.Options = options
	q.attributes, q.forms, q.values = nil, nil, nil
}

// strategyOf is the strategy of a version, or of its subresource.
func strategyOf(v *resource.Version, subresource string) resource.Strategy {
	if subresource == "" {
		return v.Strategy
	}
	if s := v.Subresource(subresource); s != nil {
		return s.Strategy
	}
	return nil
}

// ServedAs returns the version that has a kind of [Request.As]; nil: there is none.
func (q *Request) ServedAs(kind schema.GroupVersionKind) *resource.Version {
	if kind == q.Kind {
		return q.Version
	}
	if e, err := q.equivalentOf(kind); err == nil {
		return e.version
	}
	return nil
}

func (q *Request) equivalentOf(kind schema.GroupVersionKind) (*equivalent, error) {
	all := q.equivalents()
	for i := range all {
		if all[i].kind == kind {
			return &all[i], nil
		}
	}
	return nil, apierrors.NewInternalError(fmt.Errorf("unable to convert %s to %s: it is not another version of it", q.Kind, kind))
}

// Namespace returns the stored Namespace of [Request.AttributedNamespace]; nil for a
// cluster-scoped object. A Namespace that does not exist is a 404.
func (q *Request) Namespace(ctx context.Context) (*corev1.Namespace, error) {
	if q.AttributedNamespace == "" {
		return nil, nil // there is none
	}
	n := &q.namespace
	if !n.read {
		n.read = true
		n.obj, n.err = q.d.namespace(q.AttributedNamespace)
	}
	return n.obj, n.err
}

// namespaceLabels returns the labels that namespace selectors are compared with; ok is
// false for a cluster-scoped object other than a Namespace, which all of them select.
func (q *Request) namespaceLabels(ctx context.Context) (labels map[string]string, ok bool, err error) {
	namespaces := q.GVR.Resource == "namespaces"
	switch {
	case namespaces && q.Subresource == "" && q.Object != nil && (q.Operation == resource.Create || q.Operation == resource.Update):
		return q.Object.GetLabels(), true, nil
	case q.AttributedNamespace == "" && !namespaces:
		return nil, false, nil
	}
	ns, err := q.Namespace(ctx)
	if err != nil || ns == nil {
		return nil, true, err
	}
	return ns.Labels, true, nil
}
