// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package versions reads the versions of objects and who wrote them: from an API server,
// and from the file that a failed test leaves.
package versions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/trace"
)

// ErrForgotten is returned for a revision that the source does not have any more.
var ErrForgotten = errors.New("the server does not have this revision any more")

// Object is one with its content.
type Object struct {
	trace.Object
	Content map[string]any
}

// Source has versions of objects.
type Source interface {
	// At returns an object as it was at a revision, 0 for now; nil if there was none.
	At(ctx context.Context, object trace.Object, revision int64) (map[string]any, error)
	// All returns the objects of a namespace, or with an empty one all, and says what is
	// left out.
	All(ctx context.Context, namespace string) (all []Object, missing []string)
	// Notes say who wrote what; if there are none, why is in words.
	Notes(ctx context.Context) (items []notes.Note, why string)
	// Resource finds one by a name that kubectl takes: plural, singular, short or kind,
	// with the group or without.
	Resource(name string) (mapping.Resource, error)
	// Plural is the name of the resource of a kind; empty if it is not served.
	Plural(group, kind string) string
}

// resources are what a source serves.
type resources []mapping.Resource

// Resource implements [Source].
func (s resources) Resource(name string) (mapping.Resource, error) {
	plain, group, grouped := strings.Cut(strings.ToLower(name), ".")
	for _, r := range s {
		if grouped && r.GVR.Group != group && r.GVR.Version+"."+r.GVR.Group != group {
			continue
		}
		if plain == r.GVR.Resource || plain == r.Singular || plain == strings.ToLower(r.GVK.Kind) || slices.Contains(r.ShortNames, plain) {
			return r, nil
		}
	}
	return mapping.Resource{}, fmt.Errorf("the server doesn't have a resource type %q", name)
}

// of returns the resource of a kind.
func (s resources) of(group, kind string) (mapping.Resource, bool) {
	return s.first(func(r *mapping.Resource) bool { return r.GVK.Group == group && r.GVK.Kind == kind })
}

// named returns the resource of a group and a plural name.
func (s resources) named(group, plural string) (mapping.Resource, bool) {
	return s.first(func(r *mapping.Resource) bool { return r.GVR.Group == group && r.GVR.Resource == plural })
}

func (s resources) first(is func(*mapping.Resource) bool) (mapping.Resource, bool) {
	for i := range s {
		if is(&s[i]) {
			return s[i], true
		}
	}
	return mapping.Resource{}, false
}

// Plural implements [Source].
func (s resources) Plural(group, kind string) string {
	r, _ := s.of(group, kind)
	return r.GVR.Resource
}
