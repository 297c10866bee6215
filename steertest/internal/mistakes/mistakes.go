// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mistakes knows what no retry mends, only a change of the operator: panics, reads
// that the cache cannot answer, fields that Reconcile must not set, webhooks that differ
// from their configurations, defaulters that do not come to an end. It says what to change.
package mistakes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/webhook"
)

// Finder reports each mistake once. It is safe for concurrent use.
type Finder struct {
	report func(err error, advice string)
	scheme *runtime.Scheme

	mu   sync.Mutex
	told map[string]bool
}

// NewFinder makes a Finder that calls report with each mistake, and what to do about it.
func NewFinder(scheme *runtime.Scheme, report func(err error, advice string)) *Finder {
	return &Finder{report: report, scheme: scheme, told: map[string]bool{}}
}

// Webhooks returns what of a server the webhook configurations and definitions do not have.
// There is nothing to compare without configurations. What they have and the server lacks
// may be of parts of the operator that do not run in this test: it is a mistake once it
// is called.
func Webhooks(server *webhook.Server, configured []*unstructured.Unstructured) error {
	if len(configured) == 0 {
		return nil
	}
	if _, unconfigured := server.Compare(configured...); len(unconfigured) > 0 {
		return fmt.Errorf("the webhooks of the operator differ from Options.Webhooks (Options.Mistakes permits it):\n\t%s", strings.Join(unconfigured, "\n\t"))
	}
	return nil
}

// Intercept is for interceptor.Each: it sees what the operator's client returns,
// whatever the operator makes of it.
func (m *Finder) Intercept(_ context.Context, _ client.Call, do func() error) error {
	err := do()
	m.Look(err)
	return err
}

// Look reports err if it is a mistake.
func (m *Finder) Look(err error) {
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
func (m *Finder) adviceOn(err error) string {
	var panicked *controller.PanicError
	var changed *controller.ChangedError
	var undeclared *cache.NotDeclaredError
	var unindexed *cache.NotIndexedError
	var unsettled *webhook.NotIdempotentError
	var unserved *webhook.NotServedError
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
	case errors.As(err, &unsettled):
		return "The API server may call a defaulter again with what it returned, after another webhook has changed the object, and calls it for every update. Set a field only where it is empty."
	case errors.As(err, &unserved):
		return "Add webhook.AddDefaulter, webhook.AddValidator or webhook.AddConversion for that kind to Setup, or correct the path in its marker +kubebuilder:webhook and run steer generate."
	case errors.As(err, &unindexed):
		return "Add this line to Setup:\n\terr := " + unindexed.Declare
	}
	return ""
}

// typeOf is the Go type of a kind as a program names it.
func (m *Finder) typeOf(gvk schema.GroupVersionKind) string {
	obj, err := m.scheme.New(gvk)
	if err != nil {
		return "unstructured.Unstructured"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")
}
