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

// exponents are the names of the sides with how fast their costs grow.
func (l *line) exponents() map[Side]string {
	names := map[Side]string{}
	for side, points := range l.points {
		names[side] = string(side)
		if b, ok := slope(points); ok {
			names[side] = fmt.Sprintf("%s, n^%.2f", side, b)
		}
	}
	return names
}

// Measures of a panel, in pixels.
const (
	panelWidth  = 400
	panelHeight = 220
)

// The frame of a panel leaves room for a title above it, ticks below and beside it.
const (
	frameLeft, frameRight, frameTop, frameBottom = 64, 16, 30, 36
)

// colours of the sides: told apart without colours by their dashes.
func (s Side) colour() string {
	if s == Steer {
		return "#0b7285"
	}
	return "#c2570c"
}

func (s Side) dashes() string {
	if s == Steer {
		return "none"
	}
	return "5 3"
}

// panel draws a line with both axes logarithmic, so that its slope is the exponent. The
// names of the sides stand at the ends of their lines.
func (l *line) panel(out *strings.Builder, x, y float64, names map[Side]string) {
	low, high := [2]float64{math.Inf(1), math.Inf(1)}, [2]float64{math.Inf(-1), math.Inf(-1)}
	for _, points := range l.points {
		for _, p := range points {
			for axis := range p {
				low[axis], high[axis] = min(low[axis], math.Log10(p[axis])), max(high[axis], math.Log10(p[axis]))
			}
		}
	}
	if high[0] == low[0] {
		low[0], high[0] = low[0]-0.5, high[0]+0.5
	}
	low[1], high[1] = math.Floor(low[1]), math.Ceil(high[1]+0.1) // whole decades, so that noise looks like noise
	right, bottom := x+panelWidth-frameRight, y+panelHeight-frameBottom
	across := func(v float64) float64 {
		return x + frameLeft + (math.Log10(v)-low[0])/(high[0]-low[0])*(right-x-frameLeft)
	}
	up := func(v float64) float64 {
		return bottom - (math.Log10(v)-low[1])/(high[1]-low[1])*(bottom-y-frameTop)
	}
	fmt.Fprintf(out, `<text x="%.0f" y="%.0f" font-size="13" font-weight="600">%s</text>`+"\n", x+frameLeft, y+18, html.EscapeString(l.name))
	for decade := low[1]; decade <= high[1]; decade++ {
		v := math.Pow10(int(decade))
		fmt.Fprintf(out, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#dee2e6"/>`, x+frameLeft, up(v), right, up(v))
		fmt.Fprintf(out, `<text x="%.1f" y="%.1f" font-size="11" text-anchor="end" fill="#495057">%s</text>`+"\n", x+frameLeft-6, up(v)+4, html.EscapeString(human([]float64{v}, l.unit)))
	}
	ticks := map[float64]bool{}
	for _, side := range []Side{Steer, Upstream} {
		points := l.points[side]
		var path strings.Builder
		for i, p := range points {
			px, py := across(p[0]), up(p[1])
			fmt.Fprintf(&path, "%.1f,%.1f ", px, py)
			fmt.Fprintf(out, `<circle cx="%.1f" cy="%.1f" r="3.5" fill="%s"><title>%s %s: %s</title></circle>`+"\n",
				px, py, side.colour(), count(p[0]), html.EscapeString(l.of), html.EscapeString(human([]float64{p[1]}, l.unit)))
			if !ticks[p[0]] {
				ticks[p[0]] = true
				fmt.Fprintf(out, `<text x="%.1f" y="%.1f" font-size="11" text-anchor="%s" fill="#495057">%s</text>`+"\n", px, bottom+16, anchor(i, len(points)), count(p[0]))
			}
			if i == len(points)-1 {
				fmt.Fprintf(out, `<text x="%.1f" y="%.1f" font-size="12" text-anchor="end" fill="%s">%s</text>`+"\n", px, py-8, side.colour(), html.EscapeString(names[side]))
			}
		}
		fmt.Fprintf(out, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2" stroke-dasharray="%s"/>`+"\n", strings.TrimSpace(path.String()), side.colour(), side.dashes())
	}
	fmt.Fprintf(out, `<text x="%.1f" y="%.1f" font-size="11" text-anchor="middle" fill="#495057">%s</text>`+"\n", (x+frameLeft+right)/2, bottom+30, html.EscapeString(l.of))
}

// anchor of the i-th of n ticks: those at the ends stay inside the frame.
func anchor(i, n int) string {
	switch i {
	case 0:
		return "start"
	case n - 1:
		return "end"
	}
	return "middle"
}

// Picture draws how the costs of an API server grow with the objects that it has, from the
// kept figures of group scale.
func (k Kept) Picture() []byte {
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" role="img">`+"\n", 2*panelWidth, 2*panelHeight)
	out.WriteString("<title>How costs grow from 1,000 to 100,000 objects: Steer beside kube-apiserver with etcd</title>\n")
	out.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	names := map[Side]string{Steer: "Steer", Upstream: "kube-apiserver + etcd"}
	drawn := 0
	if r := k["scale"]; r != nil {
		wanted := []string{"server memory, resident", "create, server CPU", "get, server CPU", "patch, server CPU"}
		for _, l := range r.lines() {
			if l.of == "objects" && slices.Contains(wanted, l.name) {
				l.panel(&out, float64(drawn%2*panelWidth), float64(drawn/2*panelHeight), names)
				drawn++
			}
		}
	}
	out.WriteString("</svg>\n")
	return []byte(out.String())
}
