// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/collection"
)

var (
	// ErrNotStarted is a cached read before Start; see [AwaitStart].
	ErrNotStarted = errors.New("the cache has not been started: call Start first, or read with client.Live")
	// ErrStopped is a cached read after Stop.
	ErrStopped = errors.New("the cache has been stopped")
)

// NotDeclaredError is a cached read of a kind, or of a namespace of it, that
// the cache does not watch, where Options.Undeclared forbids it.
type NotDeclaredError struct {
	GVK       schema.GroupVersionKind
	Namespace string // not empty when the kind is watched, but not there
	// Declare is the line that declares the kind.
	Declare string
}

func (e *NotDeclaredError) Error() string {
	if e.Namespace != "" {
		return fmt.Sprintf("the cache does not watch %s in namespace %q: add the namespace to the cache's Namespaces, or read with client.Live", e.GVK.Kind, e.Namespace)
	}
	return fmt.Sprintf("the cache does not watch %s: declare it with %s, or read with client.Live", e.GVK.Kind, e.Declare)
}

// NotIndexedError is a cached list that selects by a field without an index.
type NotIndexedError struct {
	GVK   schema.GroupVersionKind
	Field string
	// Declare is the line that declares the index.
	Declare string
}

func (e *NotIndexedError) Error() string {
	return fmt.Sprintf("the cache has no index of the field %q of %s: declare it with %s, or read with client.Live if the server can select by it", e.Field, e.GVK.Kind, e.Declare)
}

// declaration is what declares a kind: in the setup of an operator, or by an option
// of a controller.
func declaration(goType string) string {
	return fmt.Sprintf("controller.Owns[*%[1]s](), Watches or References of a controller that makes or follows these objects, else m.Cache().Informer(&%[1]s{})", goType)
}

// NotSyncedError is a wait for a sync that ended early.
type NotSyncedError struct {
	Status Status
	Cause  error
}

func (e *NotSyncedError) Error() string {
	msg := fmt.Sprintf("cache of %s has not synced: %s", e.Status.GVK.Kind, e.Status.State)
	if e.Status.Err != nil {
		msg += ": " + e.Status.Err.Error()
	}
	return msg
}

// Unwrap gives the end of the wait and the trouble of the watch.
func (e *NotSyncedError) Unwrap() []error { return []error{e.Cause, e.Status.Err} }

// advise adds to err, the trouble of a watch, what to do about it.
func (s *shared) advise(scope int, err error) error {
	src := s.sources[scope]
	where := s.Place.GVK.Kind
	if src.Collection.Namespace != "" {
		where += " in " + src.Collection.Namespace
	}
	return collection.Advise(where, err, func() string { return s.rbacRule(src) })
}

func (s *shared) resourceName() string {
	return cmp.Or(s.sources[0].ResourceName(), strings.ToLower(s.Place.GVK.Kind))
}

// rbacRule is the rule the watch needs, as in a Role.
func (s *shared) rbacRule(src *collection.Source) string {
	role := "ClusterRole"
	if src.Collection.Namespace != "" {
		role = "Role in " + src.Collection.Namespace
	}
	return rbacRule(role, s.Place.GVK.Group, s.resourceName())
}

func rbacRule(role, group, resource string) string {
	return fmt.Sprintf("a %s with {apiGroups: [%q], resources: [%q], verbs: [get, list, watch]}", role, group, resource)
}
