// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
)

// Check returns an error for a resource that could not be served.
func (r *Resource) Check() error {
	if err := r.check(); err != nil {
		return fmt.Errorf("apiserver: install %s.%s: %w", r.Plural, r.Group, err)
	}
	return nil
}

func (r *Resource) check() error {
	switch {
	case r.Plural == "" || r.Kind == "" || r.Singular == "" || r.ListKind == "":
		return errors.New("Plural, Singular, Kind and ListKind are required")
	case len(r.Versions) == 0:
		return errors.New("it has no versions")
	case r.Backend == nil && r.Storage.Bucket == "":
		return errors.New("Storage.Bucket is required without a Backend")
	}
	if a := r.Storage.Alias; a != nil && (a.Kind.Empty() || a.New == nil || a.Load == nil || a.Save == nil) {
		return errors.New("Kind, New, Load and Save of Storage.Alias are required")
	}
	stored := r.Backend != nil && len(r.Versions) == 1 && r.Storage.Version == ""
	seen := map[string]bool{}
	for i := range r.Versions {
		v := &r.Versions[i]
		if v.Strategy == nil {
			return fmt.Errorf("version %s has no Strategy", v.Name)
		}
		if seen[v.Name] {
			return fmt.Errorf("version %s is listed twice", v.Name)
		}
		seen[v.Name] = true
		stored = stored || v.Name == r.Storage.Version
		if err := r.checkSubresources(v); err != nil {
			return fmt.Errorf("version %s: %w", v.Name, err)
		}
	}
	if !stored {
		return fmt.Errorf("the storage version %q is not one of its versions", r.Storage.Version)
	}
	if r.Backend != nil {
		return r.checkBackend()
	}
	return nil
}

// checkBackend returns an error for what a resource with a backend cannot have.
func (r *Resource) checkBackend() error {
	d := r.Deletion
	switch {
	case r.Committed != nil:
		return errors.New("Committed is not called with a Backend: do in the backend what follows a change")
	case d.Grace != nil || d.Mark != nil || d.Holds != nil:
		return errors.New("Grace, Mark and Holds of Deletion have no effect with a Backend: its Deleter decides which objects remain")
	case d.Propagation != "" || d.PropagationWarning != "" || d.NoGarbageCollection:
		return errors.New("Propagation, PropagationWarning and NoGarbageCollection of Deletion have no effect with a Backend: its Deleter gets the options of the request")
	case d.NoDeleteCollection:
		return errors.New("NoDeleteCollection has no effect with a Backend: its verbs follow from its methods")
	}
	below := slices.ContainsFunc(r.Versions, func(v Version) bool { return len(v.Subresources) > 0 })
	return checkCapable("Backend", r.Backend, below)
}

// checkCapable returns an error for a backend that implements nothing, unless it may.
func checkCapable(what string, backend any, may bool) error {
	if _, connects := backend.(Connecter); connects || len(BackendVerbs(backend)) > 0 {
		return nil
	}
	t := reflect.TypeOf(backend)
	if t.Kind() != reflect.Pointer && len(BackendVerbs(reflect.New(t).Interface())) > 0 {
		return fmt.Errorf("%s is a %v, whose methods belong to the pointer: pass a *%v", what, t, t)
	}
	if may {
		return nil
	}
	return fmt.Errorf("%s is a %v, which has the method of no capability, such as Get of a resource.Getter", what, t)
}

// checkSubresources returns an error for subresources that could not be served.
func (r *Resource) checkSubresources(v *Version) error {
	seen := map[string]bool{}
	for i := range v.Subresources {
		s := &v.Subresources[i]
		if s.Name == "" || seen[s.Name] {
			return fmt.Errorf("the name %q of a subresource is empty or taken", s.Name)
		}
		seen[s.Name] = true
		if err := s.check(r.Backend); err != nil {
			return fmt.Errorf("subresource %s: %w", s.Name, err)
		}
	}
	return nil
}

// check returns an error for a subresource that could not be served; backend is that of the
// resource.
func (s *Subresource) check(backend any) error {
	set := 0
	for _, has := range []bool{s.Scale != nil, s.Backend != nil, s.Action != nil} {
		if has {
			set++
		}
	}
	if set > 1 || set == 0 && s.Strategy == nil || s.Scale != nil && s.Strategy != nil {
		return errors.New("exactly one of Strategy, Scale, Backend and Action is required; Strategy may also be set beside Backend and Action")
	}
	_, updates := backend.(Updater)
	_, connects := s.Backend.(Connecter)
	switch {
	case s.Action != nil && backend != nil && !updates:
		return errors.New("an Action changes the object, and the Backend of the resource is no Updater")
	case (s.Action != nil || s.Backend != nil && !connects) && s.Kind.Empty():
		return errors.New("the Kind of its bodies is required")
	case s.Backend != nil:
		return checkCapable("its Backend", s.Backend, false)
	}
	return nil
}

// Viewed returns the resource with those of its views, such as status and scale, and with
// those of their verbs that its backend can answer; the resource itself without a backend.
func (r *Resource) Viewed() *Resource {
	if r.Backend == nil {
		return r
	}
	can := BackendVerbs(r.Backend)
	return r.Changed(func(v *Version) {
		v.Subresources = slices.DeleteFunc(v.Subresources, func(s Subresource) bool { return s.view() && len(s.verbsOf(can)) == 0 })
		for i := range v.Subresources {
			if s := &v.Subresources[i]; s.view() {
				s.Verbs = s.verbsOf(can)
			}
		}
	})
}

// view reports whether a subresource shows the object itself.
func (s *Subresource) view() bool { return s.Scale != nil || s.Backend == nil && s.Action == nil }

// verbsOf returns the verbs of a view of objects that have some verbs.
func (s *Subresource) verbsOf(can []string) []string {
	asked := s.Verbs
	if asked == nil {
		asked = []string{"get", "patch", "update"}
	}
	var out []string
	for _, verb := range asked {
		if slices.Contains(can, verb) {
			out = append(out, verb)
		}
	}
	return out
}
