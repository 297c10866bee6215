// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package screen lays out what steer dev shows in a terminal.
package screen

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// View is which part of the screen is shown.
type View int

// The parts: the controllers and problems, one object, what the operator prints.
const (
	Overview View = iota
	Object
	Log
)

// Screen is what steer dev shows in a terminal. It is a value without connections:
// [Screen.Render] is a function of its fields.
type Screen struct {
	// Project, Server and Kubeconfig are the first line, Status the end of it: what is
	// done now, or how long the build took.
	Project, Server, Kubeconfig, Status string
	// Page is the URL of the page, in the line below; empty: there is none.
	Page string
	Rows []Row
	// Problems are shown below the table, the newest last.
	Problems []string
	// Log is what the operator has printed, the newest last.
	Log []string
	// Items are the objects that can be opened, Cursor is the one that is selected.
	Items  []Item
	Cursor int
	// About is the object that is open, Tab what is shown of it, and Text that, the lines
	// of [Reconciles] and [History] with the newest last.
	About string
	Tab   Tab
	Text  []string
	// Reading says that Text is being asked for.
	Reading bool
	// Scroll is how many lines of the log or of Text are passed over: at the end where the
	// newest are last, and at the start elsewhere. See [Screen.Move].
	Scroll    int
	View      View
	Debugging bool
}

// Row is the line of a controller.
type Row struct {
	Controller        string
	Queue, OK, Errors int
	Median            time.Duration
	Cause             string
}

// The sequences of terminals that are used.
const (
	bold, red, faint, plain = "\x1b[1m", "\x1b[31m", "\x1b[2m", "\x1b[0m"
)

// painter makes lines that fit into a terminal.
type painter struct {
	width int
	color bool
	lines []string
}

// add adds a line, cut to the width, in a style.
func (p *painter) add(style, text string) {
	text = strings.Map(func(r rune) rune {
		if r == '\t' {
			return ' '
		}
		if unicode.IsControl(r) { // what the operator prints does not steer the terminal
			return -1
		}
		return r
	}, text)
	if utf8.RuneCountInString(text) > p.width {
		text = string([]rune(text)[:max(p.width-1, 0)]) + "…"
	}
	if p.color && style != "" && text != "" {
		text = style + text + plain
	}
	p.lines = append(p.lines, text)
}

// wrap adds a text as lines of at most the width; what follows the first is indented by
// two more than it.
func (p *painter) wrap(style, text string) {
	text = strings.ReplaceAll(text, "\t", " ")
	indent := len(text) - len(strings.TrimLeft(text, " ")) + len("  ")
	if indent > p.width/2 {
		indent = len("  ")
	}
	following := []rune(strings.Repeat(" ", indent))
	for runes := []rune(text); ; runes = slices.Concat(following, runes) {
		if len(runes) <= p.width || p.width <= len("  ") {
			p.add(style, string(runes))
			return
		}
		end := p.width
		for i := end; i > max(p.width/2, indent); i-- {
			if runes[i] == ' ' {
				end = i
				break
			}
		}
		p.add(style, string(runes[:end]))
		runes = []rune(strings.TrimLeft(string(runes[end:]), " "))
	}
}

// Render returns the lines of the screen, at most height of them, none wider than width.
func (s *Screen) Render(width, height int, color bool) []string {
	head := &painter{width: width, color: color}
	head.add(bold, strings.Join([]string{s.Project, s.Server, s.Kubeconfig, s.Status}, "  "))
	if s.Page != "" && s.View == Overview {
		head.wrap(faint, "page  "+s.Page)
	}
	if s.View == Object {
		head.add(bold, s.About+": "+s.Tab.String())
	}
	body := &painter{width: width, color: color}
	foot := &painter{width: width, color: color}
	foot.add(faint, s.keys())
	if s.View == Overview {
		s.table(head)
		s.overview(body, max(height-len(head.lines)-len(foot.lines), 0))
	} else {
		s.body(body)
		body.lines = s.window(body.lines, max(height-len(head.lines)-len(foot.lines), 0))
	}
	all := append(append(head.lines, body.lines...), foot.lines...)
	return all[:min(len(all), max(height, 1))]
}

// body adds the log, or what is shown of an object.
func (s *Screen) body(to *painter) {
	switch {
	case s.View == Log:
		for _, line := range s.Log {
			to.wrap("", line)
		}
	case s.Reading:
		to.add(faint, "reading ...")
	default:
		for _, line := range s.Text {
			to.wrap("", line)
		}
	}
}

// keys are what can be done.
func (s *Screen) keys() string {
	debug := "[d]ebug"
	if s.Debugging {
		debug = "[d]ebug off"
	}
	keys := []string{"[j/k] select", "[enter] open", "[l]ogs", "[r]estart", debug, "[q]uit"}
	switch s.View {
	case Object:
		keys = []string{"[j/k] scroll", "re[c]onciles", "[h]istory", "[w]hy", "[t]ree", "[esc] back", "[l]ogs", "[q]uit"}
	case Log:
		keys = []string{"[j/k] scroll", "[esc] back", "[r]estart", debug, "[q]uit"}
	}
	return strings.Join(keys, "  ")
}

// table adds the table of controllers; the columns are as wide as their contents.
func (s *Screen) table(to *painter) {
	cells := [][]string{{"CONTROLLER", "QUEUE", "OK", "ERR", "P50", "LAST CAUSE"}}
	for _, r := range s.Rows {
		median := ""
		if r.OK+r.Errors > 0 {
			median = Brief(r.Median)
		}
		cells = append(cells, []string{r.Controller, fmt.Sprint(r.Queue), fmt.Sprint(r.OK), fmt.Sprint(r.Errors), median, r.Cause})
	}
	for n, line := range columns(cells, 1, len(cells[0])-1) {
		style := ""
		if n == 0 {
			style = bold
		}
		to.add(style, line)
	}
}

// columns are lines of a table, as wide as their contents: those from the first to before
// the last of the numbers are at the right of their column.
func columns(cells [][]string, first, last int) (lines []string) {
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range cells {
		var out []string
		for i, cell := range line {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i >= first && i < last {
				cell, space = space, cell
			}
			out = append(out, cell+space)
		}
		lines = append(lines, strings.TrimRight(strings.Join(out, "  "), " "))
	}
	return lines
}

// Brief is a duration in at most three digits.
func Brief(d time.Duration) string {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(time.Microsecond).String()
}
