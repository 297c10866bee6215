// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/steer-dev/steer/bench/report"
)

func TestRatiosSayHowManyTimesBetterSteerIs(t *testing.T) {
	t.Parallel()
	r := report.New(time.Unix(0, 0))
	for _, v := range []float64{10, 12, 11} {
		r.Add("server", "create", "ops/s", report.Higher, report.Steer, v*10)
		r.Add("server", "create", "ops/s", report.Higher, report.Upstream, v)
		r.Add("server", "start", "ms", report.Lower, report.Steer, v*2)
		r.Add("server", "start", "ms", report.Lower, report.Upstream, v)
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

func TestRoundsThatWouldNotEndInTimeAreLeftOutAndNoted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		r := report.New(time.Now())
		var began []int
		for round := range r.Turns(ctx, "server", 5) {
			began = append(began, round)
			time.Sleep(4 * time.Minute)
		}
		if len(began) != 2 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "server: 2 of 5 rounds") {
			t.Errorf("rounds %v, notes %q", began, r.Notes)
		}
	})
	r := report.New(time.Now())
	rounds := 0
	for range r.Turns(t.Context(), "server", 3) {
		rounds++
	}
	if rounds != 3 || len(r.Notes) != 0 {
		t.Errorf("%d rounds without a limit, notes %q", rounds, r.Notes)
	}
}

// TestPagesShowTheKeptFigures publishes what is kept into a copy of the pages: nothing changes.
func TestPagesShowTheKeptFigures(t *testing.T) {
	t.Parallel()
	kept, err := report.ReadKept("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) == 0 {
		t.Fatal("no figures are kept")
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	pages := map[string]string{"README.md": "", "docs/measured.md": "", "docs/measured.json": "", "docs/growth.svg": ""}
	for page := range pages {
		text, err := os.ReadFile(filepath.Join("../..", page))
		if err != nil {
			t.Fatal(err)
		}
		pages[page] = string(text)
		if err := os.WriteFile(filepath.Join(root, page), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := kept.Publish(root); err != nil {
		t.Fatal(err)
	}
	for page, want := range pages {
		if got, err := os.ReadFile(filepath.Join(root, page)); err != nil || string(got) != want {
			t.Errorf("%s does not show docs/measured.json (%v): run `go run ./cmd/sidebyside -only GROUP -publish`, or restore it", page, err)
		}
	}
}

func TestTablesAreRewrittenBetweenTheirLines(t *testing.T) {
	t.Parallel()
	r := report.New(time.Unix(0, 0))
	r.Command = "-only server"
	for side, values := range map[report.Side][3]float64{report.Steer: {28, 2920, 450}, report.Upstream: {2300, 873, 2000}} {
		r.Add("server", "start to /readyz", "ms", report.Lower, side, values[0])
		r.Add("server", "create, 16 clients", "ops/s", report.Higher, side, values[1])
		r.Add("server", "create, 16 clients, server CPU per request", "µs", report.Lower, side, values[2])
	}
	kept := report.Kept{"server": r}
	lines := strings.Split(kept.Tables(), "\n")
	root := t.TempDir()
	page := filepath.Join(root, "docs", "measured.md")
	if err := os.Mkdir(filepath.Dir(page), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{page, filepath.Join(root, "README.md")} {
		if err := os.WriteFile(file, []byte("before\n"+lines[0]+"\nold\n"+lines[len(lines)-2]+"\nafter\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := kept.Publish(root); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"before\n<!-- measured", "-->\nafter\n", "| `-only server` | Steer | kube-apiserver",
		"| start to `/readyz` | 28.0 ms | 2.3 s | 82.1x |\n",
		"| create, 16 clients, durable; server CPU of one | 2,920/s; 450 µs | 873/s; 2 ms | 3.34x; 4.44x |\n",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	if strings.Contains(string(got), "old") {
		t.Error("the old tables are still there")
	}
	if err := os.WriteFile(page, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := kept.Publish(root); err == nil {
		t.Error("a page without the lines was accepted")
	}
}

func TestValuesInTheFormatOfBenchmarks(t *testing.T) {
	t.Parallel()
	r := report.New(time.Unix(0, 0))
	r.Add("server", "start to /readyz", "ms", report.Lower, report.Steer, 2.5)
	r.Add("server", "packages", "", report.Lower, report.Upstream, 7)
	var out bytes.Buffer
	if err := r.WriteBenchstat(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"BenchmarkServer/start_to_-readyz/side=steer 1 2.5 ms\n", "BenchmarkServer/packages/side=upstream 1 7 count\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestGrowthIsTheExponent(t *testing.T) {
	t.Parallel()
	r := report.New(time.Unix(0, 0))
	for _, n := range []float64{10, 100, 1000} {
		r.AddPoint("scale", report.Point{Line: "memory", Of: "objects", At: n}, "MB", report.Steer, 3*n)
		r.AddPoint("scale", report.Point{Line: "memory", Of: "objects", At: n}, "MB", report.Upstream, 8)
	}
	var table, chart bytes.Buffer
	if err := errors.Join(r.WriteTable(&table), r.WriteChart(&chart)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"memory, 1,000 objects", "memory                                     objects  1.00   0.00"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, table.String())
		}
	}
	if got := strings.Count(chart.String(), "<polyline"); got != 2 || !strings.Contains(chart.String(), "n^1.00") {
		t.Errorf("the chart has %d lines, want 2:\n%s", got, chart.String())
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	r := report.New(time.Unix(0, 0))
	for _, name := range []string{"twice", "thrice", "little"} {
		r.Add("runtime", name, "ms", report.Lower, report.Steer, 2)
		r.Add("runtime", name, "ms", report.Lower, report.Upstream, 5)
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
