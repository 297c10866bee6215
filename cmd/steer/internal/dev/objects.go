// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/cmd/steer/internal/explain"
	"github.com/steer-dev/steer/cmd/steer/internal/feed"
	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/trace"
)

// objects are what of the screen is about objects: which is selected, which is open, and what
// is asked about it. The mutex of [live] guards all but asking.
type objects struct {
	// ask answers a question about an object; see [explain.Asker].
	ask func(context.Context, explain.Question, trace.Object) (string, error)

	// selected is where the cursor was moved to. Before it was moved, it is at what was
	// reconciled last.
	selected feed.Subject
	moved    bool
	cursor   int // the index that it had last
	open     feed.Subject

	asked  int    // counts the questions: only the last one is shown
	cancel func() // ends the last one
	asking sync.WaitGroup
	// width and height of the last drawing.
	width, height int
}

// at is the index of the cursor.
func (o *objects) at(subjects []feed.Subject, latest feed.Subject) int {
	if o.moved {
		latest = o.selected
	}
	if i := slices.Index(subjects, latest); i >= 0 {
		o.cursor = i
	}
	return min(o.cursor, max(len(subjects)-1, 0)) // it is not there any more: its place
}

// questionOf is what a tab has to ask.
func questionOf(tab screen.Tab) (q explain.Question, ok bool) {
	switch tab {
	case screen.History:
		return explain.History, true
	case screen.Why:
		return explain.Why, true
	case screen.Tree:
		return explain.Tree, true
	}
	return 0, false
}

// key obeys a key. Questions that it asks end with ctx.
func (v *live) key(ctx context.Context, k key) {
	defer v.changed()
	subjects, items, latest := v.feed.Subjects()
	v.mu.Lock()
	defer v.mu.Unlock()
	s := &v.screen
	s.Items, s.Cursor = items, v.objects.at(subjects, latest)
	if by := distance(k, v.objects.height); by != 0 {
		v.fill(s)
		s.Move(by, v.objects.width, v.objects.height)
		if s.View == screen.Overview && len(subjects) > 0 {
			v.objects.selected, v.objects.moved = subjects[s.Cursor], true
		}
		return
	}
	switch k {
	case 'l', 'L':
		if s.Scroll = 0; s.View == screen.Log {
			s.View = screen.Overview
		} else {
			s.View = screen.Log
		}
		return
	case keyEscape:
		s.View, s.Scroll = screen.Overview, 0
		return
	}
	switch s.View {
	case screen.Overview:
		if (k == '\r' || k == '\n') && len(subjects) > 0 {
			v.objects.open = subjects[s.Cursor]
			s.View = screen.Object
			v.turn(ctx, screen.Reconciles)
		}
	case screen.Object:
		if tab, ok := tabOf(k, s.Tab); ok {
			v.turn(ctx, tab)
		}
	}
}

// distance is how far a key moves on a screen of a height.
func distance(k key, height int) int {
	page := max(height-4, 1)
	switch k {
	case 'j', 'J', keyDown:
		return 1
	case 'k', 'K', keyUp:
		return -1
	case ' ', keyPageDown:
		return page
	case keyPageUp:
		return -page
	case 'g', keyHome:
		return -screen.Whole
	case 'G', keyEnd:
		return screen.Whole
	}
	return 0
}

// tabOf is the tab that a key leads to.
func tabOf(k key, from screen.Tab) (screen.Tab, bool) {
	switch k {
	case 'c', 'C':
		return screen.Reconciles, true
	case 'h', 'H':
		return screen.History, true
	case 'w', 'W':
		return screen.Why, true
	case 't', 'T':
		return screen.Tree, true
	case '\t', keyRight:
		return from.Next(1), true
	case keyBackTab, keyLeft:
		return from.Next(-1), true
	}
	return 0, false
}

// fill gives a screen what it shows of the object that is open.
func (v *live) fill(s *screen.Screen) {
	s.About = v.objects.open.String()
	if s.Tab == screen.Reconciles {
		if s.Text = v.feed.Reconciles(v.objects.open); len(s.Text) == 0 {
			s.Text = []string{"no reconcile of it since the operator was started"}
		}
	}
}

// turn shows a tab of the object that is open, with the mutex held. What has to be asked for is asked for
// meanwhile.
func (v *live) turn(ctx context.Context, tab screen.Tab) {
	o, s := &v.objects, &v.screen
	if o.cancel != nil {
		o.cancel()
		o.cancel = nil
	}
	o.asked++
	s.Tab, s.Scroll, s.Text, s.Reading = tab, 0, nil, false
	question, ok := questionOf(tab)
	if !ok {
		return
	}
	if o.open.Object == (trace.Object{}) {
		s.Text = []string{"the requests of this controller name no object of the server, so there is nothing to ask"}
		return
	}
	s.Reading = true
	ctx, o.cancel = context.WithCancel(ctx)
	number, about := o.asked, o.open.Object
	o.asking.Go(func() {
		text, err := o.ask(ctx, question, about)
		if err != nil {
			text = err.Error()
		}
		v.mu.Lock()
		if number == o.asked {
			s.Reading, s.Text = false, strings.Split(strings.TrimRight(text, "\n"), "\n")
		}
		v.mu.Unlock()
		v.changed()
	})
}
