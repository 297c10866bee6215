// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"fmt"
	"math"
)

// Tab is what is shown of an object.
type Tab int

// The tabs: its last reconciles, and what the commands history, why and tree say.
const (
	Reconciles Tab = iota
	History
	Why
	Tree

	tabs // how many there are
)

func (t Tab) String() string {
	return [...]string{"reconciles", "history", "why", "tree"}[t]
}

// Next is the tab after so many others; after the last one comes the first.
func (t Tab) Next(by int) Tab { return ((t+Tab(by))%tabs + tabs) % tabs }

// Item is the line of an object that can be opened.
type Item struct {
	Object string
	// Count is how many reconciles of it are at hand, Last when the newest began, and
	// Outcome how that ended.
	Count         int
	Last, Outcome string
}

// Whole is a distance for [Screen.Move] that reaches the end of everything.
const Whole = math.MaxInt32

// Move moves the cursor over the objects, or what is shown of the log or an object, down by
// so many lines of a screen of a size, and no further than there is something.
func (s *Screen) Move(by, width, height int) {
	if s.View == Overview {
		s.Cursor = min(max(s.Cursor+by, 0), max(len(s.Items)-1, 0))
		return
	}
	p := &painter{width: width}
	s.body(p)
	most := max(len(p.lines)-s.room(height), 0)
	if s.newestLast() {
		by = -by
	}
	s.Scroll = min(max(min(s.Scroll, most)+by, 0), most)
}

// room is how many lines of the log or of an object a screen has.
func (s *Screen) room(height int) int {
	around := 2 // the first line, and the keys
	if s.View == Object {
		around++
	}
	return max(height-around, 0)
}

// newestLast reports whether the end of what is shown comes first.
func (s *Screen) newestLast() bool {
	return s.View == Log || s.Tab == Reconciles || s.Tab == History
}

// window returns the lines that there is room for.
func (s *Screen) window(lines []string, room int) []string {
	most := max(len(lines)-room, 0)
	from := min(s.Scroll, most)
	if s.newestLast() {
		from = most - from
	}
	return lines[from:min(from+room, len(lines))]
}

// overview adds the objects, and the problems below them. Where there is no room for all,
// each of both has half of it, or what the other leaves.
func (s *Screen) overview(to *painter, room int) {
	problems := &painter{width: to.width, color: to.color}
	for _, problem := range s.Problems {
		problems.wrap(red, "x "+problem)
	}
	s.items(to, max(room-len(problems.lines), room/2))
	room = max(room-len(to.lines), 0)
	to.lines = append(to.lines, problems.lines[max(len(problems.lines)-room, 0):]...)
}

// items adds at most so many lines of the table of objects, around the selected one.
func (s *Screen) items(to *painter, room int) {
	if len(s.Items) == 0 || room == 0 {
		return
	}
	cells := [][]string{{"  OBJECT", "RECONCILES", "LAST", "OUTCOME"}}
	for i, item := range s.Items {
		mark := "  "
		if i == s.Cursor {
			mark = "> "
		}
		cells = append(cells, []string{mark + item.Object, fmt.Sprint(item.Count), item.Last, item.Outcome})
	}
	lines := columns(cells, 1, 2)
	if room > 1 {
		to.add(bold, lines[0])
		room--
	}
	lines = lines[1:]
	from := min(max(s.Cursor-room/2, 0), max(len(lines)-room, 0))
	for i, line := range lines[from:min(from+room, len(lines))] {
		style := ""
		if from+i == s.Cursor {
			style = bold
		}
		to.add(style, line)
	}
}
