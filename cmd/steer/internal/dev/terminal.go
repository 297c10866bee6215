// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dev

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/steer-dev/steer/cmd/steer/internal/feed"
	"github.com/steer-dev/steer/cmd/steer/internal/rights"
	"github.com/steer-dev/steer/cmd/steer/internal/screen"
	"github.com/steer-dev/steer/trace"
)

const (
	// keptLines is how many lines of the operator are kept to show.
	keptLines = 2000
	// redraw is the shortest time between two drawings, and look the longest: the
	// terminal may have another size.
	redraw, look = 50 * time.Millisecond, time.Second
)

// Terminal is where [Project] shows a screen.
type Terminal struct {
	In, Out *os.File
	// NoColor leaves colours out.
	NoColor bool
}

// live is the screen while it is shown. It is safe for concurrent use.
type live struct {
	feed  *feed.Feed
	dirty chan struct{}
	// author is who made the change of a cause; empty if it is not known. One goroutine
	// calls it.
	author func(trace.Cause) string

	mu      sync.Mutex
	screen  screen.Screen
	objects objects
	failed  []string // why the operator was not started anew
	lacks   []lack
}

// lack is a right that the operator lacks, with what to do.
type lack struct {
	right rights.Right
	text  string
}

func newLive(s screen.Screen) (*live, error) {
	v := &live{screen: s, dirty: make(chan struct{}, 1), author: func(trace.Cause) string { return "" }}
	var err error
	v.feed, err = feed.New(v.changed)
	return v, err
}

// changed asks for a drawing.
func (v *live) changed() {
	select {
	case v.dirty <- struct{}{}:
	default: // one is due
	}
}

// update changes the screen.
func (v *live) update(change func(s *screen.Screen)) {
	v.mu.Lock()
	change(&v.screen)
	v.mu.Unlock()
	v.changed()
}

// log is for what the operator and the compiler print.
func (v *live) log() io.Writer {
	return &lines{to: func(line string) {
		v.update(func(s *screen.Screen) {
			if s.Log = append(s.Log, line); len(s.Log) > keptLines {
				s.Log = slices.Delete(s.Log, 0, len(s.Log)-keptLines)
			}
		})
	}}
}

// began forgets the problems of the operator that ran before.
func (v *live) began() {
	v.mu.Lock()
	v.failed, v.lacks = nil, nil
	v.mu.Unlock()
	v.changed()
}

// fail shows why the operator was not started anew.
func (v *live) fail(lines []string) {
	v.mu.Lock()
	v.failed = lines
	v.mu.Unlock()
	v.changed()
}

// lack shows that the operator lacks a right.
func (v *live) lack(right rights.Right, text string) {
	v.mu.Lock()
	v.lacks = append(v.lacks, lack{right, text})
	v.mu.Unlock()
	v.changed()
}

// snapshot is the screen as it is to be drawn.
func (v *live) snapshot() screen.Screen {
	rows := v.feed.Rows(v.author)
	subjects, items, latest := v.feed.Subjects()
	failures, running := v.feed.Failures(), v.feed.Running()
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.screen
	s.Log = slices.Clone(s.Log)
	s.Rows, s.Items, s.Cursor = rows, items, v.objects.at(subjects, latest)
	v.fill(&s)
	s.Problems = slices.Clone(v.failed)
	told := map[rights.Right]bool{}
	for _, failure := range failures {
		if right, ok := rights.Refused(failure); ok {
			name, _, _ := strings.Cut(failure, ": ")
			for _, l := range v.lacks {
				if l.right == right {
					failure, told[right] = name+": "+l.text, true
				}
			}
		}
		s.Problems = append(s.Problems, failure)
	}
	for _, l := range v.lacks {
		if !told[l.right] {
			s.Problems = append(s.Problems, "the operator "+l.text)
		}
	}
	s.Problems = append(s.Problems, running...)
	return s
}

// show draws until ctx ends. Keys that the screen does not know go to pressed; q, Ctrl-C
// and Ctrl-D call quit. The returned function restores the terminal.
func (v *live) show(ctx context.Context, t *Terminal, pressed chan<- byte, quit func()) (restore func(), err error) {
	before, err := term.MakeRaw(int(t.In.Fd()))
	if err != nil {
		return nil, fmt.Errorf("set the terminal up: %w", err)
	}
	fmt.Fprint(t.Out, "\x1b[?1049h\x1b[?25l")
	showing, stop := context.WithCancel(ctx)
	input := make(chan []byte)
	var parts sync.WaitGroup
	parts.Go(func() { v.draw(showing, t) })
	parts.Go(func() { listen(showing, input, func(k key) { v.obey(showing, k, pressed, quit) }) })
	// A read of a terminal cannot be ended: this goroutine lives as long as the process.
	go func() {
		for {
			bytes := make([]byte, 64)
			n, err := t.In.Read(bytes)
			if err != nil {
				return
			}
			select {
			case input <- bytes[:n]:
			case <-showing.Done():
				return
			}
		}
	}()
	return func() {
		stop()
		parts.Wait()
		v.objects.asking.Wait()
		fmt.Fprint(t.Out, "\x1b[?25h\x1b[?1049l")
		_ = term.Restore(int(t.In.Fd()), before) // the terminal has gone otherwise
	}, nil
}

// obey obeys a key, or passes it on.
func (v *live) obey(ctx context.Context, k key, pressed chan<- byte, quit func()) {
	switch k {
	case 'q', 'Q', 3, 4:
		quit()
	case 'r', 'd':
		select {
		case pressed <- byte(k):
		default: // one is being obeyed
		}
	default:
		v.key(ctx, k)
	}
}

// usable is the size of a terminal, or a common one where it has none: serial lines say that
// they are 0 by 0.
func usable(width, height int, err error) (int, int) {
	if err != nil || width < 1 || height < 1 {
		return 80, 24
	}
	return width, height
}

func (v *live) draw(ctx context.Context, t *Terminal) {
	for {
		width, height := usable(term.GetSize(int(t.Out.Fd())))
		v.mu.Lock()
		v.objects.width, v.objects.height = width, height
		v.mu.Unlock()
		s := v.snapshot()
		fmt.Fprint(t.Out, "\x1b[H"+strings.Join(s.Render(width, height, !t.NoColor), "\x1b[K\r\n")+"\x1b[K\x1b[J")
		select {
		case <-ctx.Done():
			return
		case <-time.After(redraw):
		}
		select {
		case <-ctx.Done():
			return
		case <-v.dirty:
		case <-time.After(look):
		}
	}
}
