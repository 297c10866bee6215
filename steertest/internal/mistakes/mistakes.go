// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package mistakes knows what no retry mends, only a change of the operator: panics, types
// that are not registered, reads that the cache cannot answer, fields that Reconcile must
// not set, webhooks that differ from their configurations, defaulters that do not come to
// an end. It says what to change.
package mistakes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller"
	"github.com/steer-dev/steer/trace"
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
// whatever the operator makes of it, and where it called.
func (m *Finder) Intercept(_ context.Context, _ client.Call, do func() error) error {
	err := do()
	if m.adviceOn(err, "") != "" {
		m.look(err, string(debug.Stack()))
	}
	return err
}

// Look reports err if it is a mistake.
func (m *Finder) Look(err error) { m.look(err, "") }

// look reports err if it is a mistake; stack is that of the call that returned it, if it is
// known.
func (m *Finder) look(err error, stack string) {
	advice := m.adviceOn(err, stack)
	if advice == "" {
		return
	}
	m.mu.Lock()
	known := m.told[advice]
	m.told[advice] = true
	m.mu.Unlock()
	if known {
		return
	}
	caller := trace.Record{Stack: stack}
	if at := caller.Where(); at != "" {
		err = fmt.Errorf("%s: %w", at, err)
	}
	m.report(fmt.Errorf("a mistake of the operator (Options.Mistakes permits it): %w", err), advice)
}

// adviceOn returns what to change in the operator, or for a panic where it was;
// empty if err is not a mistake.
func (m *Finder) adviceOn(err error, stack string) string {
	var panicked *controller.PanicError
	var changed *controller.ChangedError
	var undeclared *cache.NotDeclaredError
	var unindexed *cache.NotIndexedError
	var unsettled *webhook.NotIdempotentError
	var unserved *webhook.NotServedError
	var unregistered *client.UnregisteredError
	switch {
	case errors.As(err, &unregistered):
		return "Add it to the scheme of the operator, in main and in the test:\n\tScheme: steer.Scheme{..., " + strings.Replace(unregistered.AddToScheme, " // ", "},\n\t", 1)
	case errors.As(err, &panicked):
		return frames(string(panicked.Stack))
	case errors.As(err, &changed):
		return fmt.Sprintf("Reconcile may set only the status of its object. Write %s with the client instead:\n"+
			"\tbefore := obj.DeepCopy(); ...; err := r.Client.Patch(ctx, obj, client.MergeFrom(before))", changed.Fields)
	case errors.As(err, &undeclared) && undeclared.Namespace == "":
		own := fmt.Sprintf("controller.Owns[*%s]()", m.typeOf(undeclared.GVK))
		if child := (*controller.ChildError)(nil); strings.Contains(stack, ourChildren) || errors.As(err, &child) {
			return "The operator does not watch these children. Add this option to controller.Add:\n\t" + own
		}
		return fmt.Sprintf("If the operator makes these objects, add this option to controller.Add, or controller.Watches if it is to follow those of others:\n\t%s\n"+
			"If it only looks at what they are at the time, add this line to Setup:\n\t_, err := m.Cache().Informer(&%s{})", own, m.typeOf(undeclared.GVK))
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

// ourChildren begins the names of the functions that read the children of a set.
const ourChildren = "steer/controller/internal/children."

// call is one in a stack: the values of its arguments, and where in the machine code it was,
// differ when it happens again.
var call = regexp.MustCompile(`(?m)\([^()]*\)\n(\t.*?)(?: \+0x[0-9a-f]+)?$`)

// frames are the frames of a panic from where it was to where the controller called the
// reconciler, the same each time.
func frames(stack string) string {
	if i := strings.LastIndex(stack, "\npanic("); i >= 0 {
		stack = stack[i+1:]
	}
	if i := strings.Index(stack, "\ngithub.com/steer-dev/steer/controller."); i >= 0 {
		stack = stack[:i]
	}
	return call.ReplaceAllString(stack, "(...)\n$1")
}

// typeOf is the Go type of a kind as a program names it.
func (m *Finder) typeOf(gvk schema.GroupVersionKind) string {
	obj, err := m.scheme.New(gvk)
	if err != nil {
		return "unstructured.Unstructured"
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", obj), "*")
}
