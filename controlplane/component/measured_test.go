// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/controlplane/component"
)

// verdict is an admission that changes nothing and answers with an error.
type verdict struct{ admit, validate error }

func (v verdict) Admit(context.Context, *resource.AdmissionRequest) error    { return v.admit }
func (v verdict) Validate(context.Context, *resource.AdmissionRequest) error { return v.validate }

// counts renders how often each series was observed.
func counts(t *testing.T, from prometheus.Gatherer) []string {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			name := strings.TrimPrefix(f.GetName(), "apiserver_admission_")
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s rejected=%s: %d %s", name, labels["type"], labels["operation"], labels["rejected"],
				m.GetHistogram().GetSampleCount()+m.GetSummary().GetSampleCount(), labels["name"])))
		}
	}
	slices.Sort(out)
	return out
}

func TestAdmissionIsMeasuredByPluginAndChain(t *testing.T) {
	t.Parallel()
	registry, refused := prometheus.NewRegistry(), errors.New("refused")
	chain := component.List{
		component.Plugin("Gears", verdict{}, "gears.example.com"),
		{Name: "not optional", Admission: verdict{}},
		component.Plugin("Refuses", verdict{validate: refused}),
	}.Admission(registry)
	request := func(operation resource.Operation, plural string) *resource.AdmissionRequest {
		return &resource.AdmissionRequest{Request: &resource.Request{Resource: describe("example.com", plural)}, Operation: operation}
	}
	for range 2 {
		for _, r := range []*resource.AdmissionRequest{request(resource.Create, "gears"), request(resource.Delete, "wheels")} {
			if err := chain.Admit(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if err := chain.Validate(t.Context(), r); !errors.Is(err, refused) {
				t.Fatal(err)
			}
		}
	}
	const plugins, steps = "controller_admission_duration_seconds", "step_admission_duration_seconds"
	var want []string
	for _, operation := range []string{"CREATE", "DELETE"} {
		want = append(want, plugins+" admit "+operation+" rejected=false: 2 Refuses", plugins+" validate "+operation+" rejected=true: 2 Refuses")
		for _, name := range []string{steps, steps + "_summary"} {
			want = append(want, name+" admit "+operation+" rejected=false: 2", name+" validate "+operation+" rejected=true: 2")
		}
	}
	want = append(want, plugins+" admit CREATE rejected=false: 2 Gears", plugins+" validate CREATE rejected=false: 2 Gears")
	slices.Sort(want)
	if diff := cmp.Diff(want, counts(t, registry)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
}
