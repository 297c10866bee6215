// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
)

// mistakes fails the test for what no retry mends, only a change of the
// operator: each mistake once.
type mistakes struct {
	report func(err error, advice string)
	scheme *runtime.Scheme

	mu   sync.Mutex
	told map[string]bool
}

// intercept is for interceptor.Each: it sees what the operator's client returns,
// whatever the operator makes of it.
func (m *mistakes) intercept(_ context.Context, _ client.Call, do func() error) error {
	err := do()
	m.look(err)
	return err
}

// look reports err if it is a mistake.
func (m *mistakes) look(err error) {
	advice := m.adviceOn(err)
	if advice == "" {
		return
	}
	m.mu.Lock()
	known := m.told[advice]
	m.told[advice] = true
	m.mu.Unlock()
	if !known {
		m.report(fmt.Errorf("a mistake of the operator (Options.Mistakes permits it): %w", err), advice)
	}
}

// adviceOn returns what to change in the operator, or for a panic where it was;
// empty if err is not a mistake.
func (m *mistakes) adviceOn(err error) string {
	var panicked *controller.PanicError
	var changed *controller.ChangedError
	var undeclared *cache.NotDeclaredError
	var unindexed *cache.NotIndexedError
	switch {
	case errors.As(err, &panicked):
		return string(panicked.Stack)
	case errors.As(err, &changed):
		return fmt.Sprintf("Reconcile may set only the status of its object. Write %s with the client instead:\n"+
			"\tbefore := obj.DeepCopy(); ...; err := r.Client.Patch(ctx, obj, client.MergeFrom(before))", changed.Fields)
	case errors.As(err, &undeclared) && undeclared.Namespace == "":
		return fmt.Sprintf("Add this line to Setup, or controller.Watches or controller.Owns to the controller if it is to follow these objects:\n"+
			"\t_, err := m.Cache().Informer(&%s{})", m.typeOf(undeclared.GVK))
	case errors.As(err, &undeclared):
		return fmt.Sprintf("Add the namespace to Cache.Namespaces in Operator.Configure:\n"+
			"\to.Cache.Namespaces = append(o.Cache.Namespaces, %q)", undeclared.Namespace)
	case errors.As(err, &unindexed):
		return "Add this line to Setup:\n\terr := " + unindexed.Declare
	}
	return ""
}

// typeOf is the Go type of a kind as a program names it.
func (m *mistakes) typeOf(gvk schema.GroupVersionKind) string {
	obj, err := m.scheme.New(gvk)
	if err != nil {
		return "unstructured.Unstructured"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")
}
