// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// Measures of the chart, in pixels.
const (
	barHeight  = 18
	labelWidth = 330
	barWidth   = 420
)

// WriteChart draws one bar per metric: its length is the logarithm of the
// ratio, to the right where Steer is better, to the left where upstream is. Below
// the bars, one panel for each cost shows how it grows.
func (r *Report) WriteChart(w io.Writer) error {
	var drawn []*Metric
	reach := 1.0
	for _, m := range r.Metrics {
		if m.Ratio > 0 {
			drawn = append(drawn, m)
			reach = max(reach, math.Abs(math.Log2(m.Ratio)))
		}
	}
	bars := (len(drawn) + 2) * barHeight
	lines := r.lines()
	height := bars + (len(lines)+1)/2*panelHeight
	var out strings.Builder
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		max(labelWidth+barWidth+80, 2*panelWidth), height)
	middle := float64(labelWidth + barWidth/2)
	fmt.Fprintf(&out, `<line x1="%.0f" y1="0" x2="%.0f" y2="%d" stroke="#888"/>`+"\n", middle, middle, bars)
	for i, m := range drawn {
		y := (i + 1) * barHeight
		length := math.Log2(m.Ratio) / reach * barWidth / 2
		x, colour := middle, "#2b8a3e"
		if length < 0 {
			x, colour = middle+length, "#c92a2a"
		}
		fmt.Fprintf(&out, `<text x="4" y="%d">%s</text>`+"\n", y+13, html.EscapeString(m.Group+": "+m.Name))
		fmt.Fprintf(&out, `<rect x="%.1f" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", x, y+2, math.Abs(length), barHeight-4, colour)
		fmt.Fprintf(&out, `<text x="%d" y="%d">%.2fx</text>`+"\n", labelWidth+barWidth+8, y+13, m.Ratio)
	}
	for i, l := range lines {
		l.panel(&out, float64(i%2*panelWidth), float64(bars+i/2*panelHeight), l.exponents())
	}
	out.WriteString("</svg>\n")
	_, err := io.WriteString(w, out.String())
	return err
}
