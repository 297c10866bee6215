// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus evaluates the alerts and the board of a package with the query engine
// of Prometheus.
package prometheus

import (
	"cmp"
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/scaffold"
	"github.com/steer-dev/steer/scaffold/deploy"
	"github.com/steer-dev/steer/scaffold/project"
)

// rule is one of a PrometheusRule.
type rule struct {
	Alert, Expr, For    string
	Annotations, Labels map[string]string
}

// monitoring makes a project, and returns the alerts and the board of its package.
func monitoring(t *testing.T) (rules []rule, board map[string][]string) {
	t.Helper()
	dir := t.TempDir()
	checkout, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	gvk := project.GVK{Group: "webapp", Version: "v1", Kind: "Guestbook"}
	if _, err := scaffold.Init(t.Context(), scaffold.InitOptions{Dir: dir, Domain: "example.com", Name: "guestbook", Checkout: checkout}); err != nil {
		t.Fatal(err)
	}
	if _, err := scaffold.CreateAPI(t.Context(), scaffold.APIOptions{Dir: dir, GVK: gvk}); err != nil {
		t.Fatal(err)
	}
	p, settings, err := deploy.ReadProject(dir, "", deploy.Additions()...)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := deploy.Objects(t.Context(), dir, p, settings)
	if err != nil {
		t.Fatal(err)
	}
	board = map[string][]string{}
	for _, o := range objects {
		text, err := o.YAML()
		if err != nil {
			t.Fatal(err)
		}
		switch o.Part {
		case deploy.Alerts:
			var content struct {
				Spec struct{ Groups []struct{ Rules []rule } }
			}
			if err := yaml.Unmarshal(text, &content); err != nil {
				t.Fatal(err)
			}
			for _, g := range content.Spec.Groups {
				rules = append(rules, g.Rules...)
			}
		case deploy.Grafana:
			var content struct{ Data map[string]string }
			if err := yaml.Unmarshal(text, &content); err != nil {
				t.Fatal(err)
			}
			var shown struct {
				Panels []struct {
					Title   string
					Targets []struct{ Expr string }
				}
			}
			for _, text := range content.Data {
				if err := json.Unmarshal([]byte(text), &shown); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range shown.Panels {
				for _, target := range p.Targets {
					board[p.Title] = append(board[p.Title], target.Expr)
				}
			}
		}
	}
	return rules, board
}

// newEngine returns an engine with the bounds that Prometheus has by default.
func newEngine(t *testing.T) *promql.Engine {
	t.Helper()
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: 2 * time.Minute})
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// evaluate returns the result of an expression at each evaluation.
func evaluate(t *testing.T, engine *promql.Engine, of *scrapes, expr string, from, through time.Time) promql.Matrix {
	t.Helper()
	query, err := engine.NewRangeQuery(t.Context(), of, nil, expr, from, through, interval)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	defer query.Close()
	result := query.Exec(t.Context())
	matrix, err := result.Matrix()
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	// The engine reuses what it returns.
	for i, s := range matrix {
		matrix[i].Floats = slices.Clone(s.Floats)
	}
	return slices.Clone(matrix)
}

// fires returns the series that an alert first fires for between two times, and when: its
// expression has had this result at every evaluation for as long as the rule says.
func (r rule) fires(t *testing.T, engine *promql.Engine, of *scrapes, from, through time.Time) (series labels.Labels, at time.Time, value float64) {
	t.Helper()
	wait, err := time.ParseDuration(cmp.Or(r.For, "0s"))
	if err != nil {
		t.Fatalf("%s: for: %v", r.Alert, err)
	}
	for _, s := range evaluate(t, engine, of, r.Expr, from, through) {
		var began, last int64
		for _, point := range s.Floats {
			if last == 0 || point.T-last != interval.Milliseconds() {
				began = point.T
			}
			last = point.T
			if point.T-began >= wait.Milliseconds() {
				if when := time.UnixMilli(point.T); at.IsZero() || when.Before(at) {
					series, at, value = s.Metric, when, point.F
				}
				break
			}
		}
	}
	return series, at, value
}

// says renders the summary for what the alert fires for.
func (r rule) says(t *testing.T, series labels.Labels, value float64) string {
	t.Helper()
	functions := template.FuncMap{
		"humanize":         func(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) },
		"humanizeDuration": func(v float64) string { return time.Duration(v * float64(time.Second)).String() },
	}
	parsed, err := template.New(r.Alert).Option("missingkey=error").Funcs(functions).Parse("{{$labels := .Labels}}{{$value := .Value}}" + r.Annotations["summary"])
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := parsed.Execute(&out, map[string]any{"Labels": series.Map(), "Value": value}); err != nil {
		t.Errorf("the summary of %s: %v", r.Alert, err)
	}
	return out.String()
}
