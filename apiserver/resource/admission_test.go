// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"context"
	"slices"
	"testing"

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
