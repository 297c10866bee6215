// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package screen lays out what steer dev shows in a terminal.
package screen

import (
	"fmt"
	"strings"
	"time"
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
	Rows                                []Row
	// Problems are shown below the table, the newest last.
	Problems []string
	// Log is what the operator has printed, the newest last.
	Log []string
	// About and Reconciles are the view of one object.
	About      string
	Reconciles []string
	View       View
	Debugging  bool
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
		if r < ' ' || r == 0x7f { // what the operator prints does not steer the terminal
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

// wrap adds a text as lines of at most the width; what follows the first is indented.
func (p *painter) wrap(style, text string) {
	for runes := []rune(text); ; runes = append([]rune("  "), runes...) {
		if len(runes) <= p.width || p.width <= len("  ") {
			p.add(style, string(runes))
			return
		}
		end := p.width
		for i := end; i > p.width/2; i-- {
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
	body := &painter{width: width, color: color}
	switch s.View {
	case Log:
		for _, line := range s.Log {
			body.add("", line)
		}
	case Object:
		head.add(bold, s.About)
		for _, line := range s.Reconciles {
			body.wrap("", line)
		}
	default:
		s.table(head)
		for _, problem := range s.Problems {
			body.wrap(red, "x "+problem)
		}
	}
	foot := &painter{width: width, color: color}
	foot.add(faint, s.keys())
	room := max(height-len(head.lines)-len(foot.lines), 0)
	if len(body.lines) > room {
		body.lines = body.lines[len(body.lines)-room:]
	}
	all := append(append(head.lines, body.lines...), foot.lines...)
	return all[:min(len(all), max(height, 1))]
}

// keys are what can be done.
func (s *Screen) keys() string {
	enter, logs, debug := "[enter] object", "[l]ogs", "[d]ebug"
	switch s.View {
	case Object:
		enter = "[enter] back"
	case Log:
		logs = "[l] back"
	}
	if s.Debugging {
		debug = "[d]ebug off"
	}
	return strings.Join([]string{enter, logs, "[r]estart", debug, "[q]uit"}, "  ")
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
	widths := make([]int, len(cells[0]))
	for _, line := range cells {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for n, line := range cells {
		var text strings.Builder
		for i, cell := range line {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			switch i {
			case 0:
				text.WriteString(cell + space)
			case len(line) - 1:
				text.WriteString("  " + cell)
			default: // numbers
				text.WriteString("  " + space + cell)
			}
		}
		style := ""
		if n == 0 {
			style = bold
		}
		to.add(style, strings.TrimRight(text.String(), " "))
	}
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
