// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// interval of the scrapes, and of the evaluations of rules.
const interval = 30 * time.Second

// scrapes are what Prometheus has of one target, with the labels that a ServiceMonitor gives
// it.
type scrapes struct {
	series  map[string]*recorded
	from    time.Time
	through time.Time
}

type recorded struct {
	labels  labels.Labels
	samples []chunks.Sample
}

// scrape takes what an operator serves at a time. nil: it does not answer.
func (s *scrapes) scrape(t *testing.T, at time.Time, registry *client.Registry) {
	t.Helper()
	if s.series == nil {
		s.series, s.from = map[string]*recorded{}, at
	}
	s.through = at
	if registry == nil {
		return
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name := f.GetName()
		if strings.HasPrefix(name, "go_") { // of Go, and many
			continue
		}
		for _, m := range f.GetMetric() {
			switch f.GetType() {
			case dto.MetricType_COUNTER:
				s.add(at, m.GetCounter().GetValue(), name, m)
			case dto.MetricType_GAUGE:
				s.add(at, m.GetGauge().GetValue(), name, m)
			case dto.MetricType_HISTOGRAM:
				h := m.GetHistogram()
				s.add(at, h.GetSampleSum(), name+"_sum", m)
				s.add(at, float64(h.GetSampleCount()), name+"_count", m)
				s.add(at, float64(h.GetSampleCount()), name+"_bucket", m, "le", "+Inf")
				for _, b := range h.GetBucket() {
					if !math.IsInf(b.GetUpperBound(), 1) {
						s.add(at, float64(b.GetCumulativeCount()), name+"_bucket", m, "le", strconv.FormatFloat(b.GetUpperBound(), 'g', -1, 64))
					}
				}
			default:
				t.Fatalf("%s is a %s", name, f.GetType())
			}
		}
	}
}

// add adds a sample, with further labels.
func (s *scrapes) add(at time.Time, value float64, name string, m *dto.Metric, more ...string) {
	target := []string{"job", "guestbook-controller-manager-metrics-service", "instance", "10.0.0.1:8443", "namespace", "guestbook-system"}
	all := append([]string{model.MetricNameLabel, name}, more...)
	for _, l := range m.GetLabel() {
		label := l.GetName()
		if label == "job" || label == "instance" || label == "namespace" { // the target's win
			label = "exported_" + label
		}
		if l.GetValue() != "" {
			all = append(all, label, l.GetValue())
		}
	}
	set := labels.FromStrings(append(all, target...)...)
	key := set.String()
	if s.series[key] == nil {
		s.series[key] = &recorded{labels: set}
	}
	s.series[key].samples = append(s.series[key].samples, sample{at.UnixMilli(), value})
}

// sample is one of a series without histograms.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                    { return s.at }
func (sample) ST() int64                     { return 0 }
func (s sample) F() float64                  { return s.value }
func (sample) H() *histogram.Histogram       { return nil }
func (sample) FH() *histogram.FloatHistogram { return nil }
func (sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample         { return s }

// Querier implements storage.Queryable.
func (s *scrapes) Querier(int64, int64) (storage.Querier, error) { return querier{s}, nil }

type querier struct{ *scrapes }

// Select implements storage.Querier.
func (q querier) Select(_ context.Context, sorted bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range q.series {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool { return !m.Matches(s.labels.Get(m.Name)) }) {
			found = append(found, storage.NewListSeries(s.labels, s.samples))
		}
	}
	if sorted {
		slices.SortFunc(found, func(a, b storage.Series) int { return labels.Compare(a.Labels(), b.Labels()) })
	}
	return &set{found, -1}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

// set implements storage.SeriesSet.
type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                      { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series              { return s.series[s.at] }
func (*set) Err() error                        { return nil }
func (*set) Warnings() annotations.Annotations { return nil }
