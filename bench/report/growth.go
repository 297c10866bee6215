// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"slices"
	"strings"
)

// line is how a cost grows.
type line struct {
	group, name, of, unit string
	points                map[Side][][2]float64 // how much there was, and the median cost
}

// lines collects the points of each cost, in the order in which they were added.
func (r *Report) lines() []*line {
	var all []*line
	for _, m := range r.Metrics {
		if m.Point == nil {
			continue
		}
		i := slices.IndexFunc(all, func(l *line) bool { return l.group == m.Group && l.name == m.Point.Line && l.of == m.Point.Of })
		if i < 0 {
			all = append(all, &line{group: m.Group, name: m.Point.Line, of: m.Point.Of, unit: m.Unit, points: map[Side][][2]float64{}})
			i = len(all) - 1
		}
		for side, values := range map[Side][]float64{Steer: m.Steer, Upstream: m.Upstream} {
			if v := Median(values); v > 0 {
				all[i].points[side] = append(all[i].points[side], [2]float64{m.Point.At, v})
			}
		}
	}
	return all
}

// slope is the exponent b of the cost a*n^b that fits the points best: 0 says that it
// does not grow, 1 that it grows as n does.
func slope(points [][2]float64) (b float64, ok bool) {
	var sx, sy, sxx, sxy float64
	for _, p := range points {
		x, y := math.Log(p[0]), math.Log(p[1])
		sx, sy, sxx, sxy = sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	n := float64(len(points))
	spread := n*sxx - sx*sx
	if n < 2 || spread == 0 {
		return 0, false
	}
	return (n*sxy - sx*sy) / spread, true
}

// writeGrowth shows the slopes of all lines.
func (r *Report) writeGrowth(w io.Writer) {
	all := r.lines()
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\nGROWTH: a cost is about n to the power of\tof\tsteer\tpeer\n")
	for _, l := range all {
		text := map[Side]string{Steer: "-", Upstream: "-"}
		for side, points := range l.points {
			if b, ok := slope(points); ok {
				text[side] = fmt.Sprintf("%.2f", b)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", l.name, l.of, text[Steer], text[Upstream])
	}
}

// Measures of a panel of the chart, in pixels.
const (
	panelWidth  = 380
	panelHeight = 190
	panelMargin = 34
)

// colours of the sides.
func (s Side) colour() string {
	if s == Steer {
		return "#2b8a3e"
	}
	return "#868e96"
}

// panel draws a line with both axes logarithmic, so that its slope is the exponent.
func (l *line) panel(out *strings.Builder, x, y float64) {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, points := range l.points {
		for _, p := range points {
			for axis := range p {
				low[axis], high[axis] = min(low[axis], math.Log(p[axis])), max(high[axis], math.Log(p[axis]))
			}
		}
	}
	for axis, least := range [2]float64{0.1, math.Log(10)} { // at least a decade of cost, so that noise looks like noise
		if missing := least - (high[axis] - low[axis]); missing > 0 {
			low[axis], high[axis] = low[axis]-missing/2, high[axis]+missing/2
		}
	}
	place := func(p [2]float64) (float64, float64) {
		fx := (math.Log(p[0]) - low[0]) / (high[0] - low[0])
		fy := (math.Log(p[1]) - low[1]) / (high[1] - low[1])
		return x + panelMargin + fx*(panelWidth-2*panelMargin), y + panelHeight - panelMargin - fy*(panelHeight-2*panelMargin)
	}
	fmt.Fprintf(out, `<text x="%.0f" y="%.0f">%s, by %s</text>`+"\n", x+4, y+14, html.EscapeString(l.name+" ["+l.unit+"]"), html.EscapeString(l.of))
	fmt.Fprintf(out, `<rect x="%.0f" y="%.0f" width="%d" height="%d" fill="none" stroke="#dee2e6"/>`+"\n", x+4, y+20, panelWidth-12, panelHeight-34)
	for _, side := range []Side{Steer, Upstream} {
		points := l.points[side]
		var path strings.Builder
		for i, p := range points {
			px, py := place(p)
			fmt.Fprintf(&path, "%.1f,%.1f ", px, py)
			fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s %s: %s %s</title></circle>`+"\n",
				px, py, side.colour(), count(p[0]), html.EscapeString(l.of), format(p[1]), html.EscapeString(l.unit))
			if i == len(points)-1 {
				label := string(side)
				if b, ok := slope(points); ok {
					label = fmt.Sprintf("%s, n^%.2f", side, b)
				}
				fmt.Fprintf(out, `<text x="%.1f" y="%.1f" font-size="10" text-anchor="end" fill="%s">%s</text>`+"\n", px, py-6, side.colour(), label)
			}
		}
		fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.TrimSpace(path.String()), side.colour())
	}
}
