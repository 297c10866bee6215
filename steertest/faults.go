// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package steertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/client/interceptor"
	"github.com/steer-dev/steer/client/mapping"
	"github.com/steer-dev/steer/steertest/internal/host"
)

// Fault makes calls of the operator fail; see [Options.Faults]. The zero value
// answers the first write of every verb and kind with status 500.
type Fault struct {
	// Verb of the calls. Default: every verb that writes.
	Verb client.Verb
	// Kind of the objects, such as "Job". Default: every kind.
	Kind string
	// SubResource of the calls, such as "status". Default: calls with any
	// subresource and with none.
	SubResource string
	// With is how a call fails. Default [InternalError].
	With Failure
	// Skip is how many calls of each verb, kind and subresource succeed first.
	Skip int
	// Times is how many calls of each verb, kind and subresource fail then.
	// Default 1; negative: all of them.
	Times int
}

// Failure makes a call, or does not, and returns what the operator gets. The call has
// the Resource that its kind is mapped to.
// [Conflict], [InternalError], [TooManyRequests] and [TimeoutAfterCommit] are
// failures.
type Failure func(call client.Call, do func() error) error

// errInjected is the cause that injected failures name.
var errInjected = errors.New("injected by steertest.Fault")

// Conflict answers 409 and does not make the call: another client changed the
// object first.
func Conflict(call client.Call, _ func() error) error {
	return apierrors.NewConflict(resourceOf(call), call.Key.Name, errInjected)
}

// InternalError answers 500 and does not make the call.
func InternalError(client.Call, func() error) error { return apierrors.NewInternalError(errInjected) }

// TooManyRequests answers 429 with Retry-After of one second, and does not make
// the call.
func TooManyRequests(client.Call, func() error) error {
	return apierrors.NewTooManyRequests(errInjected.Error(), 1)
}

// TimeoutAfterCommit makes the call and answers 504: the operator cannot know
// that the write was done.
func TimeoutAfterCommit(_ client.Call, do func() error) error {
	if err := do(); err != nil {
		return err
	}
	return apierrors.NewTimeoutError("the write was done, its answer is lost: "+errInjected.Error(), 0)
}

func resourceOf(call client.Call) schema.GroupResource {
	return schema.GroupResource{Group: call.GVK.Group, Resource: call.Resource}
}

// String describes the calls that f is for, for the failure of a test.
func (f Fault) String() string {
	verb, kind := string(f.Verb), f.Kind
	if verb == "" {
		verb = "write"
	}
	if kind == "" {
		kind = "any kind"
	}
	if f.SubResource != "" {
		kind += "/" + f.SubResource
	}
	return fmt.Sprintf("%s of %s, after %d calls", verb, kind, f.Skip)
}

func (f Fault) matches(call client.Call) bool {
	return (call.Verb == f.Verb || f.Verb == "" && call.Verb.Writes()) &&
		(f.Kind == "" || f.Kind == call.GVK.Kind) && (f.SubResource == "" || f.SubResource == call.SubResource)
}

// faults count the calls that the faults of a test are for.
type faults struct {
	faults []Fault

	mu   sync.Mutex
	seen []map[string]int // for each fault: calls by verb, kind and subresource
	hit  []int            // for each fault: calls that failed
}

func newFaults(list []Fault) *faults {
	f := &faults{faults: list, seen: make([]map[string]int, len(list)), hit: make([]int, len(list))}
	for i := range f.seen {
		f.seen[i] = map[string]int{}
	}
	return f
}

// intercept makes a call, or has it fail. A call of a kind that the server does not
// have is made, and not counted: it fails by itself.
func (f *faults) intercept(ctx context.Context, kinds *mapping.Mapper, call client.Call, do func() error) error {
	if !slices.ContainsFunc(f.faults, func(fault Fault) bool { return fault.matches(call) }) {
		return do()
	}
	if !call.GVK.Empty() { // an apply configuration has its kind in a field
		resource, err := kinds.ForKind(ctx, call.GVK)
		if err != nil {
			return do()
		}
		call.Resource = resource.GVR.Resource
	}
	if fail := f.next(call); fail != nil {
		return fail(call, do)
	}
	return do()
}

// next counts a call and returns how it fails; nil means that it does not. Every
// fault counts every call that it is for; the first that is due decides.
func (f *faults) next(call client.Call) (fail Failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	what := host.Describe(call, "")
	for i, fault := range f.faults {
		if !fault.matches(call) {
			continue
		}
		n := f.seen[i][what]
		f.seen[i][what] = n + 1
		times := fault.Times
		if times == 0 {
			times = 1
		}
		if fail != nil || n < fault.Skip || times > 0 && n >= fault.Skip+times {
			continue
		}
		f.hit[i]++
		if fail = fault.With; fail == nil {
			fail = InternalError
		}
	}
	return fail
}

// unused returns the faults that no call has met.
func (f *faults) unused() []Fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Fault
	for i, n := range f.hit {
		if n == 0 {
			out = append(out, f.faults[i])
		}
	}
	return out
}

// checkFaults fails a test that has passed although a fault never happened: it
// proves nothing about it.
func (e *Env) checkFaults() {
	if e.Failed() || e.Skipped() {
		return
	}
	for _, fault := range e.faults.unused() {
		e.Errorf("steertest: the operator made no call that this fault is for: %s; correct its Verb, Kind, SubResource or Skip", fault)
	}
}

// interceptors puts the faults, the user's own interceptor and the end of a
// process in front of a client, in this order from the server on.
func (e *Env) interceptors(c client.Client) client.Client {
	kinds := c.Mapper()
	c = interceptor.New(c, interceptor.Each(func(ctx context.Context, call client.Call, do func() error) error {
		return e.faults.intercept(ctx, kinds, call, do)
	}))
	c = interceptor.New(c, e.options.Intercept)
	return interceptor.New(c, interceptor.Each(e.killer.Intercept))
}
