// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/admission"
	"github.com/steer-dev/steer/controlplane/component"
)

// Deps are what matching reads. They are safe for concurrent use.
type Deps struct {
	// Authorizer decides what the variable "authorizer" of expressions is asked.
	Authorizer authorizer.Authorizer

	server     *apiserver.Server
	metrics    metrics
	namespaces *admission.Lister[corev1.Namespace]
}

// NewDeps returns what all plugins of a control plane share, and registers the metrics of
// match conditions.
func NewDeps(d component.Deps) *Deps {
	m := newMetrics()
	d.Measure(m.seconds, m.errors, m.exclusions)
	return &Deps{
		Authorizer: authorizer.AuthorizerFunc(authorization{d.Authorizer}.Authorize), server: d.Server, metrics: m,
		namespaces: admission.NewLister[corev1.Namespace](d.Store, "namespaces"),
	}
}

// namespace returns a Namespace; a missing one is a 404.
func (d *Deps) namespace(name string) (*corev1.Namespace, error) {
	ns, err := d.namespaces.Get(name)
	if err != nil {
		return nil, apierrors.NewInternalError(err)
	}
	if ns == nil {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, name)
	}
	return ns, nil
}

// equivalent is another version, or another resource, that serves the objects of a
// resource.
type equivalent struct {
	resource *resource.Resource
	version  *resource.Version
	gvr      schema.GroupVersionResource
	kind     schema.GroupVersionKind
}

// equivalents returns the other served versions of the resource of a request, and those of
// resources that share its objects, which have the same subresource.
func (q *Request) equivalents() []equivalent {
	if q.equals == nil {
		q.equals = q.d.equivalents(q.Resource, q.Version, q.Subresource)
	}
	return q.equals
}

func (d *Deps) equivalents(r *resource.Resource, v *resource.Version, subresource string) []equivalent {
	out := []equivalent{}
	add := func(of *resource.Resource) {
		for i := range of.Versions {
			other := &of.Versions[i]
			if other == v || other.NotServed || !hasSubresource(other, subresource) {
				continue
			}
			out = append(out, equivalent{
				resource: of, version: other, gvr: of.GroupResource().WithVersion(other.Name), kind: kindOf(of, other, subresource),
			})
		}
	}
	add(r)
	if bucket := r.Storage.Bucket; bucket != "" {
		for _, of := range d.server.Resources() {
			if of.Storage.Bucket == bucket && of.GroupResource() != r.GroupResource() {
				add(of)
			}
		}
	}
	return out
}

func hasSubresource(v *resource.Version, name string) bool {
	return name == "" || v.Subresource(name) != nil
}
