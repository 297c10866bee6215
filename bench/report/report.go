// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report collects what two sides needed for the same work and shows it
// as a table of medians and ratios, as JSON, and as a chart.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Side is one of the two compared.
type Side string

// The two sides.
const (
	Steer    Side = "steer"
	Upstream Side = "upstream"
)

// Direction says which way is better.
type Direction int

const (
	// Lower values are better: times, bytes.
	Lower Direction = iota
	// Higher values are better: rates.
	Higher
)

// Metric is one line of the table.
type Metric struct {
	Group    string    `json:"group"`
	Name     string    `json:"name"`
	Unit     string    `json:"unit"`
	Better   string    `json:"better"`
	Steer    []float64 `json:"steer"`
	Upstream []float64 `json:"upstream"`
	// Ratio says how many times better Steer's median is; 0 when a side is
	// missing.
	Ratio float64 `json:"ratio"`
	// Goal, if any.
	Goal *Goal `json:"goal,omitempty"`
	// Point, if any, says where on a line the metric lies.
	Point *Point `json:"point,omitempty"`
}

// Point is a place on the line that a cost makes while something grows.
type Point struct {
	// Line is the name of the cost, Of what grows, At how much there was of it.
	Line string  `json:"line"`
	Of   string  `json:"of"`
	At   float64 `json:"at"`
}

// name of the metric at the point.
func (p Point) name() string { return fmt.Sprintf("%s, %s %s", p.Line, count(p.At), p.Of) }

// Goal is what a metric is to reach; the zero value asks for nothing.
type Goal struct {
	// Times better than upstream, at least.
	Times float64 `json:"times,omitempty"`
	// AtMost is a limit for Steer's own median.
	AtMost float64 `json:"atMost,omitempty"`
}

// Report is the result of a run. It is not safe for concurrent use.
type Report struct {
	Started time.Time `json:"started"`
	// Command is what was run, as its flags.
	Command string            `json:"command,omitempty"`
	Machine map[string]string `json:"machine"`
	Notes   []string          `json:"notes,omitempty"`
	Metrics []*Metric         `json:"metrics"`
}

// New returns an empty report about this machine.
func New(now time.Time) *Report {
	machine := map[string]string{
		"os": runtime.GOOS, "arch": runtime.GOARCH, "cpus": fmt.Sprint(runtime.NumCPU()), "go": runtime.Version(),
	}
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		machine["load"] = strings.TrimSpace(string(load))
	}
	return &Report{Started: now.UTC(), Machine: machine}
}

// Note adds a remark that belongs to the figures.
func (r *Report) Note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// Add records one measured value.
func (r *Report) Add(group, name, unit string, better Direction, side Side, value float64) {
	at := slices.IndexFunc(r.Metrics, func(m *Metric) bool { return m.Group == group && m.Name == name })
	if at < 0 {
		direction := map[Direction]string{Lower: "lower", Higher: "higher"}[better]
		r.Metrics = append(r.Metrics, &Metric{Group: group, Name: name, Unit: unit, Better: direction})
		at = len(r.Metrics) - 1
	}
	m := r.Metrics[at]
	if side == Steer {
		m.Steer = append(m.Steer, value)
	} else {
		m.Upstream = append(m.Upstream, value)
	}
	m.Ratio = ratio(m)
}

// AddPoint records a value that was measured while there was so much of something.
func (r *Report) AddPoint(group string, p Point, unit string, side Side, value float64) {
	name := p.name()
	r.Add(group, name, unit, Lower, side, value)
	for _, m := range r.Metrics {
		if m.Group == group && m.Name == name {
			m.Point = &p
		}
	}
}

// count writes a number of things.
func count(n float64) string {
	text := fmt.Sprintf("%.0f", n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Expect sets the goal of a metric that was added before.
func (r *Report) Expect(group, name string, goal Goal) {
	for _, m := range r.Metrics {
		if m.Group == group && m.Name == name && goal != (Goal{}) {
			m.Goal = &goal
		}
	}
}

// ExpectAt is Expect for what [Report.AddPoint] added.
func (r *Report) ExpectAt(group string, p Point, goal Goal) { r.Expect(group, p.name(), goal) }

// verdict of a metric: its goal, and whether it was met.
func verdict(m *Metric) string {
	if m.Goal == nil {
		return ""
	}
	goal, met, known := fmt.Sprintf("%.2fx", m.Goal.Times), m.Ratio >= m.Goal.Times, m.Ratio > 0
	if m.Goal.AtMost > 0 {
		goal, met, known = "at most "+format(m.Goal.AtMost), Median(m.Steer) <= m.Goal.AtMost, len(m.Steer) > 0
	}
	switch {
	case !known:
		return goal + ": not measured"
	case met:
		return goal + ": met"
	}
	return goal + ": missed"
}

func ratio(m *Metric) float64 {
	ours, theirs := Median(m.Steer), Median(m.Upstream)
	if len(m.Steer) == 0 || len(m.Upstream) == 0 || ours <= 0 || theirs <= 0 { // a difference may be below the noise
		return 0
	}
	if m.Better == "lower" {
		return theirs / ours
	}
	return ours / theirs
}

// Median returns the middle value, 0 for none.
func Median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}

// WriteTable shows medians with their spread, and how many times better Steer
// is; a ratio below 1 says that upstream is better.
func (r *Report) WriteTable(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	group := ""
	for _, m := range r.Metrics {
		if m.Group != group {
			group = m.Group
			fmt.Fprintf(table, "\n%s\tunit\tsteer\tpeer\tsteer is better by\tgoal\n", strings.ToUpper(group))
		}
		better := "-"
		if m.Ratio > 0 {
			better = fmt.Sprintf("%.2fx", m.Ratio)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", m.Name, m.Unit, show(m.Steer), show(m.Upstream), better, verdict(m))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	r.writeGrowth(table)
	for _, note := range r.Notes {
		fmt.Fprintf(table, "\nnote: %s\n", note)
	}
	return table.Flush()
}

func show(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	median := Median(values)
	text := format(median)
	if low, high := slices.Min(values), slices.Max(values); median != 0 && high > low {
		text += fmt.Sprintf(" ±%.0f%%", 100*(high-low)/2/median)
	}
	return text
}

func format(v float64) string {
	switch {
	case v >= 100:
		return fmt.Sprintf("%.0f", v)
	case v >= 10:
		return fmt.Sprintf("%.1f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

// WriteJSON writes everything that was measured.
func (r *Report) WriteJSON(w io.Writer) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(r)
}
