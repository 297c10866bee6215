// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"github.com/steer-dev/steer/manager/internal/metrics"
)

// expect compares the series of a metric, which are written as
//
//	label=value,label=value number
//
// and sorted. The number of a histogram is its count and its sum. Series that are 0
// are left out.
func expect(t *testing.T, m *metrics.Metrics, name string, want ...string) {
	t.Helper()
	families, err := m.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, s := range f.GetMetric() {
			var labels []string
			for _, l := range s.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if number := numberOf(s); number != "0" {
				got = append(got, strings.TrimSpace(strings.Join(labels, ",")+" "+number))
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", name, diff)
	}
}

func numberOf(s *dto.Metric) string {
	switch {
	case s.GetHistogram().GetSampleCount() > 0:
		return fmt.Sprint(s.GetHistogram().GetSampleCount(), " ", s.GetHistogram().GetSampleSum())
	case s.Gauge != nil:
		return fmt.Sprint(s.GetGauge().GetValue())
	}
	return fmt.Sprint(s.GetCounter().GetValue())
}
