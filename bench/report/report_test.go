// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

func TestRatiosSayHowManyTimesBetterSteerIs(t *testing.T) {
	t.Parallel()
	r := report.New(time.Unix(0, 0))
	for _, v := range []float64{10, 12, 11} {
		r.Add("server", "create", "ops/s", report.Higher, report.Steer, v*10)
		r.Add("server", "create", "ops/s", report.Higher, report.Peer, v)
		r.Add("server", "start", "ms", report.Lower, report.Steer, v*2)
		r.Add("server", "start", "ms", report.Lower, report.Peer, v)
	}
	r.Add("server", "only ours", "ms", report.Lower, report.Steer, 1)
	for i, want := range []float64{10, 0.5, 0} {
		if got := r.Metrics[i].Ratio; got != want {
			t.Errorf("%s: ratio %v, want %v", r.Metrics[i].Name, got, want)
		}
	}
	var table, chart, data bytes.Buffer
	for _, err := range []error{r.WriteTable(&table), r.WriteChart(&chart), r.WriteJSON(&data)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"110 ±9%", "10.00x", "0.50x"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	if got := strings.Count(chart.String(), "<rect"); got != 2 {
		t.Errorf("the chart has %d bars, want 2", got)
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	r := report.New(time.Unix(0, 0))
	for _, name := range []string{"twice", "thrice", "little"} {
		r.Add("runtime", name, "ms", report.Lower, report.Steer, 2)
		r.Add("runtime", name, "ms", report.Lower, report.Peer, 5)
	}
	r.Add("runtime", "alone", "ms", report.Lower, report.Steer, 2)
	r.Expect("runtime", "twice", report.Goal{Times: 2})
	r.Expect("runtime", "thrice", report.Goal{Times: 3})
	r.Expect("runtime", "little", report.Goal{AtMost: 1})
	r.Expect("runtime", "alone", report.Goal{Times: 2})
	var table bytes.Buffer
	if err := r.WriteTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2.00x: met", "3.00x: missed", "at most 1: missed", "2.00x: not measured"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
}
