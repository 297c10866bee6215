// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache/internal/reflector"
	"github.com/steer-dev/steer/client/wire"
)

var (
	// ErrNotStarted is a cached read before Start.
	ErrNotStarted = errors.New("the cache has not been started: call Start first, or read with client.Live")
	// ErrStopped is a cached read after Stop.
	ErrStopped = errors.New("the cache has been stopped")
	// ErrUnknown is a read-only view at a moment in which an own write has
	// changed the answer in a way that only the server knows.
	ErrUnknown = errors.New("an own write is not visible in the cache yet: List through a Client, which asks the server")
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
	return fmt.Sprintf("m.Cache().Informer(&%[1]s{}), or with controller.Owns, Watches or References of *%[1]s", goType)
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
	if err == nil {
		return nil
	}
	src := s.sources[scope]
	where := s.place.GVK.Kind
	if src.collection.Namespace != "" {
		where += " in " + src.collection.Namespace
	}
	advice := ""
	switch {
	case meta.IsNoMatchError(err):
		return err // it says what to do
	case apierrors.IsForbidden(err):
		advice = "grant it: " + s.rbacRule(src)
	case wire.Advice(err) != "":
		advice = wire.Advice(err)
	case apierrors.IsTooManyRequests(err):
		advice = "the API server is shedding load; the watch is retried with a back-off"
	case apierrors.IsGone(err), apierrors.IsResourceExpired(err):
		advice = "the history was too short to resume; everything is listed again"
	case apierrors.IsNotFound(err):
		advice = "the server does not serve the resource right now; discovery is asked again"
	case errors.Is(err, reflector.ErrIdle):
		advice = "it is opened anew where it stopped"
	case apierrors.IsServiceUnavailable(err), apierrors.IsInternalError(err), apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		advice = "the API server is in trouble; the watch is retried with a back-off"
	case isNetwork(err):
		advice = "the API server cannot be reached; the watch is retried with a back-off"
	}
	if advice == "" {
		return fmt.Errorf("watch %s: %w", where, err)
	}
	return fmt.Errorf("watch %s: %w (%s)", where, err, advice)
}

func isNetwork(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) || errors.Is(err, io.ErrUnexpectedEOF)
}

func (s *shared) resourceName() string {
	if name := s.sources[0].resourceName.Load(); name != nil {
		return *name
	}
	return strings.ToLower(s.place.GVK.Kind)
}

// rbacRule is the rule the watch needs, as in a Role.
func (s *shared) rbacRule(src *source) string {
	role := "ClusterRole"
	if src.collection.Namespace != "" {
		role = "Role in " + src.collection.Namespace
	}
	return rbacRule(role, s.place.GVK.Group, s.resourceName())
}

func rbacRule(role, group, resource string) string {
	return fmt.Sprintf("a %s with {apiGroups: [%q], resources: [%q], verbs: [get, list, watch]}", role, group, resource)
}
