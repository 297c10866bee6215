// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package mapping

import "k8s.io/apimachinery/pkg/runtime/schema"

// catalogue is everything a server serves at one moment. It does not change
// once built.
type catalogue struct {
	resources []Resource // in order of group and of version preference
	kinds     map[schema.GroupVersionKind]int
	names     map[schema.GroupVersionResource]int
}

func newCatalogue() *catalogue {
	return &catalogue{kinds: map[schema.GroupVersionKind]int{}, names: map[schema.GroupVersionResource]int{}}
}

// add appends r. The first resource of a kind wins, as does the first version
// of a group for questions without one.
func (c *catalogue) add(r Resource) {
	if _, ok := c.names[r.GVR]; ok {
		return
	}
	at := len(c.resources)
	c.resources = append(c.resources, r)
	c.names[r.GVR] = at
	c.addKind(r.GVK, at)
	r.GVR.Version, r.GVK.Version = "", ""
	if _, ok := c.names[r.GVR]; !ok {
		c.names[r.GVR] = at
	}
	c.addKind(r.GVK, at)
}

func (c *catalogue) addKind(gvk schema.GroupVersionKind, at int) {
	if _, ok := c.kinds[gvk]; !ok {
		c.kinds[gvk] = at
	}
}

func (c *catalogue) forKind(gvk schema.GroupVersionKind) (Resource, bool) {
	at, ok := c.kinds[gvk]
	if !ok {
		return Resource{}, false
	}
	return c.resources[at], true
}

func (c *catalogue) forResource(gvr schema.GroupVersionResource) (Resource, bool) {
	at, ok := c.names[gvr]
	if !ok {
		return Resource{}, false
	}
	return c.resources[at], true
}
