// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mapping finds out what an API server serves, and turns kinds into
// resources and back.
//
// A Mapper is lazy (nothing is asked before the first question), refreshes
// itself when a question has no answer (a CRD may have been installed since)
// and forgets what turned out to be wrong (Invalidate). It asks by aggregated
// discovery, one request per API root with an ETag, and falls back to the
// older, one document per group version, where the server has no other.
package mapping

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client/wire"
)

// A refresh for want of an answer costs one unchanged-answer request where the
// server knows entity tags. It may happen so often in a row, for the tool that
// installs a definition and uses it at once, and then so often, for the
// controller that asks again and again for what is not there.
const (
	refreshBurst    = 16
	refreshInterval = time.Second
)

// Resource is one served resource.
type Resource struct {
	GVK        schema.GroupVersionKind
	GVR        schema.GroupVersionResource
	Singular   string
	Namespaced bool
	Verbs      []string
	ShortNames []string
	Categories []string
	// Subresources by name, such as "status", with their verbs.
	Subresources map[string][]string
}

// Can says that the resource serves the verb.
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Path is the URL path of an object, of a collection when name is empty, or of
// a subresource.
func (r Resource) Path(namespace, name, subresource string) string {
	var b strings.Builder
	if r.GVR.Group == "" {
		b.WriteString("/api/")
	} else {
		b.WriteString("/apis/")
		b.WriteString(r.GVR.Group)
		b.WriteByte('/')
	}
	b.WriteString(r.GVR.Version)
	if r.Namespaced && namespace != "" {
		b.WriteString("/namespaces/")
		b.WriteString(namespace)
	}
	b.WriteByte('/')
	b.WriteString(r.GVR.Resource)
	for _, part := range []string{name, subresource} {
		if part != "" {
			b.WriteByte('/')
			b.WriteString(part)
		}
	}
	return b.String()
}

// Doer sends a request; *wire.Conn is one.
type Doer interface {
	Do(ctx context.Context, req wire.Request) (*wire.Response, error)
}

// Mapper answers from what it has discovered. It is safe for concurrent use.
type Mapper struct {
	discovery *discovery

	mu        sync.Mutex
	known     *catalogue    // nil before the first question; replaced, never changed
	spent     int           // refreshes of the burst that are used up
	refreshed time.Time     // when spent was last counted
	flight    chan struct{} // open while a refresh is under way
}

// New makes a Mapper that asks conn. Nothing is sent.
func New(conn Doer) *Mapper { return &Mapper{discovery: &discovery{conn: conn}} }

// ForKind is the resource that serves gvk. With an empty version it is the one
// in the group's preferred version. For a kind the server does not have the
// error satisfies meta.IsNoMatchError.
func (m *Mapper) ForKind(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	r, err := m.find(ctx, func(c *catalogue) (Resource, bool) { return c.forKind(gvk) })
	if err != nil {
		return r, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	if r.GVK.Kind == "" {
		match := &meta.NoKindMatchError{GroupKind: gvk.GroupKind()}
		if gvk.Version != "" {
			match.SearchedVersions = []string{gvk.Version}
		}
		return r, fmt.Errorf("%w: install its CustomResourceDefinition, or check the apiVersion against `kubectl api-resources`", match)
	}
	return r, nil
}

// ForResource is the resource named gvr. An empty version means the group's
// preferred one. For a missing one the error satisfies meta.IsNoMatchError.
func (m *Mapper) ForResource(ctx context.Context, gvr schema.GroupVersionResource) (Resource, error) {
	r, err := m.find(ctx, func(c *catalogue) (Resource, bool) { return c.forResource(gvr) })
	if err != nil {
		return r, fmt.Errorf("find the kind of %s: %w", gvr, err)
	}
	if r.GVK.Kind == "" {
		return r, fmt.Errorf("%w: check it against `kubectl api-resources`", &meta.NoResourceMatchError{PartialResource: gvr})
	}
	return r, nil
}

// All is every served resource, of every version.
func (m *Mapper) All(ctx context.Context) ([]Resource, error) {
	c, err := m.refresh(ctx, true)
	if err != nil {
		return nil, err
	}
	return slices.Clone(c.resources), nil
}

// Invalidate makes the next question ask the server: what was found here has
// turned out to be wrong.
func (m *Mapper) Invalidate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known = nil
}

func (m *Mapper) find(ctx context.Context, look func(*catalogue) (Resource, bool)) (Resource, error) {
	m.mu.Lock()
	known := m.known
	m.mu.Unlock()
	if known != nil {
		if r, ok := look(known); ok {
			return r, nil
		}
		if !m.mayRefresh() {
			return Resource{}, nil
		}
	}
	known, err := m.refresh(ctx, known == nil)
	if err != nil {
		return Resource{}, err
	}
	r, _ := look(known)
	return r, nil
}

// mayRefresh takes one refresh from the burst, which one fills up per interval.
func (m *Mapper) mayRefresh() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if regained := int(now.Sub(m.refreshed) / refreshInterval); regained > 0 {
		m.spent = max(m.spent-regained, 0)
		m.refreshed = now
	}
	if m.spent == refreshBurst {
		return false
	}
	m.spent++
	return true
}

// refresh asks the server; concurrent callers share one answer. With
// useKnown a catalogue that is there is good enough.
func (m *Mapper) refresh(ctx context.Context, useKnown bool) (*catalogue, error) {
	for {
		m.mu.Lock()
		if useKnown && m.known != nil {
			defer m.mu.Unlock()
			return m.known, nil
		}
		if m.flight == nil {
			break
		}
		flight := m.flight
		m.mu.Unlock()
		select {
		case <-flight:
			useKnown = true // what it found is as fresh as our own would be
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	flight := make(chan struct{})
	m.flight = flight
	m.mu.Unlock()

	found, err := m.discovery.fetch(ctx)

	m.mu.Lock()
	defer m.mu.Unlock()
	m.flight = nil
	close(flight)
	if err != nil {
		return nil, err
	}
	m.known = found
	return found, nil
}
