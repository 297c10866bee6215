// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package mapping

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RESTMapper is m for code written against apimachinery's interface. Its
// questions have no context, so ctx ends them all.
func (m *Mapper) RESTMapper(ctx context.Context) meta.RESTMapper { return restMapper{m, ctx} }

type restMapper struct {
	m   *Mapper
	ctx context.Context // the interface has no place for one
}

var _ meta.RESTMapper = restMapper{}

func (r restMapper) KindFor(gvr schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	found, err := r.m.ForResource(r.ctx, gvr)
	return found.GVK, err
}

func (r restMapper) KindsFor(gvr schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	gvk, err := r.KindFor(gvr)
	if err != nil {
		return nil, err
	}
	return []schema.GroupVersionKind{gvk}, nil
}

func (r restMapper) ResourceFor(gvr schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	found, err := r.m.ForResource(r.ctx, gvr)
	return found.GVR, err
}

func (r restMapper) ResourcesFor(gvr schema.GroupVersionResource) ([]schema.GroupVersionResource, error) {
	found, err := r.ResourceFor(gvr)
	if err != nil {
		return nil, err
	}
	return []schema.GroupVersionResource{found}, nil
}

func (r restMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if len(versions) == 0 {
		versions = []string{""}
	}
	var firstErr error
	for _, version := range versions {
		found, err := r.m.ForKind(r.ctx, gk.WithVersion(version))
		if err == nil {
			return restMapping(found), nil
		}
		if firstErr == nil {
			firstErr = err
		}
	}
	return nil, firstErr
}

func (r restMapper) RESTMappings(gk schema.GroupKind, versions ...string) ([]*meta.RESTMapping, error) {
	one, err := r.RESTMapping(gk, versions...)
	if err != nil {
		return nil, err
	}
	return []*meta.RESTMapping{one}, nil
}

func (r restMapper) ResourceSingularizer(resource string) (string, error) {
	found, err := r.m.find(r.ctx, func(c *catalogue) (Resource, bool) {
		for _, res := range c.resources {
			if res.GVR.Resource == resource {
				return res, true
			}
		}
		return Resource{}, false
	})
	if err != nil || found.Singular == "" {
		return resource, err
	}
	return found.Singular, nil
}

func restMapping(r Resource) *meta.RESTMapping {
	scope := meta.RESTScope(meta.RESTScopeRoot)
	if r.Namespaced {
		scope = meta.RESTScopeNamespace
	}
	return &meta.RESTMapping{Resource: r.GVR, GroupVersionKind: r.GVK, Scope: scope}
}
