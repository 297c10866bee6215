// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/steer-dev/steer/apiserver/resource"
)

// noting notes the rounds in which it was called, and asks for a second one.
type noting struct {
	name   string
	repeat bool
	called *[]string
}

func (n noting) Admit(_ context.Context, r *resource.AdmissionRequest) error {
	call := n.name
	if r.Round.Second() {
		call += " again"
		if before, _ := r.Round.Value(n.name).(string); before != "" {
			call += " after " + before
		}
	}
	*n.called = append(*n.called, call)
	r.Round.SetValue(n.name, n.name)
	if n.repeat {
		r.Round.Repeat()
	}
	return nil
}

func (noting) Validate(context.Context, *resource.AdmissionRequest) error { return nil }

func TestRepeatedRunsOnceMoreWhenAMemberAsks(t *testing.T) {
	t.Parallel()
	for _, asks := range []bool{false, true} {
		var called []string
		chain := resource.Admissions{
			resource.Repeated{Admissions: resource.Admissions{noting{"a", false, &called}, noting{"b", asks, &called}}},
			noting{"c", true, &called}, // is not repeated
		}
		r := &resource.AdmissionRequest{Request: &resource.Request{Resource: widgets()}}
		if err := resource.ForResource(chain, widgets()).Admit(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		want := []string{"a", "b", "c"}
		if asks {
			want = []string{"a", "b", "a again after a", "b again after b", "c"}
		}
		if !slices.Equal(called, want) || r.Round != nil {
			t.Errorf("%v: called %q, want %q", asks, called, want)
		}
	}
}

func TestForResourceLeavesOutEmptyChains(t *testing.T) {
	t.Parallel()
	var called []string
	only := resource.Restrict(noting{"a", false, &called}, "gears.example.com")
	if a := resource.ForResource(resource.Repeated{Admissions: resource.Admissions{only}}, widgets()); a != nil {
		t.Errorf("of a chain without members there is %+v", a)
	}
}

// validating and mutating are plugins of one pass.
type (
	validating struct {
		resource.ValidatesOnly
		plugin
	}
	mutating struct {
		resource.MutatesOnly
		plugin
	}
)

func (v validating) Admit(ctx context.Context, r *resource.AdmissionRequest) error {
	return v.ValidatesOnly.Admit(ctx, r)
}

func (m mutating) Validate(ctx context.Context, r *resource.AdmissionRequest) error {
	return m.MutatesOnly.Validate(ctx, r)
}

func TestObserveReportsThePassesThatAnAdmissionHas(t *testing.T) {
	t.Parallel()
	var calls, observed []string
	for _, c := range []struct {
		name     string
		a        resource.Admission
		mutates  bool
		calls    []string
		observed []string
	}{
		{"both", plugin{"x", false, &calls}, true, []string{"admit x", "validate x"}, []string{"mutating: <nil>", "validating: <nil>"}},
		{"both fail", plugin{"x", true, &calls}, true, []string{"admit x", "validate x"}, []string{"mutating: x", "validating: x"}},
		{"no mutation", reader{plugin{"x", false, &calls}}, false, []string{"admit x", "validate x"}, []string{"mutating: <nil>", "validating: <nil>"}},
		{"one that validates", validating{plugin: plugin{"x", true, &calls}}, false, []string{"validate x"}, []string{"validating: x"}},
		{"one that mutates", mutating{plugin: plugin{"x", false, &calls}}, true, []string{"admit x"}, []string{"mutating: <nil>"}},
	} {
		r := &resource.AdmissionRequest{Request: &resource.Request{Resource: widgets()}}
		observe := resource.Observe(resource.Restrict(c.a, "widgets.example.com"), func(resource.Pass, *resource.AdmissionRequest, time.Duration, error) {})
		if resource.ForResource(observe, widgets()) == nil {
			t.Errorf("%s: the resource has none", c.name)
		}
		calls, observed = nil, nil
		a := resource.ForResource(resource.Observe(c.a, func(pass resource.Pass, of *resource.AdmissionRequest, took time.Duration, err error) {
			if of != r || took < 0 {
				t.Errorf("%s: observed %v for %v", c.name, of, took)
			}
			observed = append(observed, map[resource.Pass]string{resource.MutatingPass: "mutating", resource.ValidatingPass: "validating"}[pass]+fmt.Sprintf(": %v", err))
		}), widgets())
		for _, pass := range []func(context.Context, *resource.AdmissionRequest) error{a.Admit, a.Validate} {
			if err := pass(t.Context(), r); err != nil && err.Error() != "x" {
				t.Error(err)
			}
		}
		if got := resource.Mutates(a, r); got != c.mutates || !slices.Equal(calls, c.calls) || !slices.Equal(observed, c.observed) {
			t.Errorf("%s: mutates %v, calls %q, observed %q", c.name, got, calls, observed)
		}
	}
	others := resource.Observe(resource.Restrict(plugin{}, "pods"), nil)
	if a := resource.ForResource(others, widgets()); a != nil {
		t.Errorf("an admission of other resources handles widgets: %v", a)
	}
}

func TestValidatesOnlyAndMutatesOnlyAdmitTheOtherPass(t *testing.T) {
	t.Parallel()
	var calls []string
	r := &resource.AdmissionRequest{Request: &resource.Request{Resource: widgets()}}
	v, m := validating{plugin: plugin{"v", true, &calls}}, mutating{plugin: plugin{"m", true, &calls}}
	if err := errors.Join(v.Admit(t.Context(), r), m.Validate(t.Context(), r)); err != nil || calls != nil {
		t.Errorf("calls %q: %v", calls, err)
	}
	if resource.Mutates(v, r) || !resource.Mutates(m, r) {
		t.Error("an admission that only validates mutates, or one that only mutates does not")
	}
}

// defaulting gives objects a default, or fails.
type defaulting struct {
	noRules
	err error
}

func (n defaulting) Default(obj resource.Object) ([]string, error) {
	obj.SetLabels(map[string]string{"defaulted": "yes"})
	return nil, n.err
}

func TestAdmissionRequestSetsDefaultsWithItsStrategy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		strategy resource.Strategy
		labelled bool
		err      string
	}{
		"none":  {nil, false, ""},
		"sets":  {defaulting{}, true, ""},
		"fails": {defaulting{err: errors.New("no schema")}, true, "Internal error occurred: after admission: no schema"},
	} {
		obj := widget("example.com/v1", "1")
		r := &resource.AdmissionRequest{Strategy: c.strategy}
		got := ""
		if err := r.Default(obj); err != nil {
			got = err.Error()
		}
		if got != c.err || (obj.GetLabels() != nil) != c.labelled {
			t.Errorf("%s: labels %v, %q", name, obj.GetLabels(), got)
		}
		if err := r.Default(nil); err != nil {
			t.Errorf("%s: without an object: %v", name, err)
		}
	}
}

func TestRoundOfNilIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	var r *resource.Round
	r.Repeat()
	r.SetValue("key", "value")
	if r.Second() || r.Value("key") != nil {
		t.Errorf("second %v, value %v", r.Second(), r.Value("key"))
	}
}
