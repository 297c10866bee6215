// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress shows on a terminal what a command does, while that takes longer than
// a second.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"
)

// after is how long a command works before it is shown.
const after = time.Second

// Line is the last line of a terminal. Its methods are safe for concurrent use. The zero
// Line shows nothing.
type Line struct {
	out   io.Writer // nil shows nothing
	style string
	done  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	text  string
	began time.Time
	shown bool
	open  bool // what was written last ends within a line
}

// Start begins to show a text, on w if that is a terminal; NO_COLOR leaves its style out.
// [Line.Stop] ends it.
func Start(w io.Writer, text string) *Line {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return &Line{}
	}
	return start(w, text, os.Getenv("NO_COLOR") == "")
}

func start(w io.Writer, text string, color bool) *Line {
	l := &Line{out: w, done: make(chan struct{}), text: text, began: time.Now()}
	if color {
		l.style = "\x1b[2m" // faint
	}
	l.ended.Go(l.run)
	return l
}

func (l *Line) run() {
	tick := time.NewTicker(after)
	defer tick.Stop()
	for {
		select {
		case <-l.done:
			return
		case <-tick.C:
			l.mu.Lock()
			l.draw()
			l.mu.Unlock()
		}
	}
}

func (l *Line) draw() {
	if l.open {
		return
	}
	reset := ""
	if l.style != "" {
		reset = "\x1b[0m"
	}
	fmt.Fprintf(l.out, "\r\x1b[K%s%s  %s%s", l.style, l.text, time.Since(l.began).Round(time.Second), reset)
	l.shown = true
}

// erase takes the line away until it is drawn again.
func (l *Line) erase() {
	if l.shown {
		fmt.Fprint(l.out, "\r\x1b[K")
		l.shown = false
	}
}

// Visible reports whether the text is shown, while it goes on for more than a second.
func (l *Line) Visible() bool { return l.out != nil }

// Show changes the text.
func (l *Line) Show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
}

// Stop takes the line away.
func (l *Line) Stop() {
	if l.out == nil {
		return
	}
	l.mu.Lock()
	select {
	case <-l.done:
	default:
		close(l.done)
	}
	l.mu.Unlock()
	l.ended.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
}

// Writer writes to w while the line is away.
func (l *Line) Writer(w io.Writer) io.Writer {
	if l.out == nil {
		return w
	}
	return &above{l, w}
}

type above struct {
	line *Line
	to   io.Writer
}

// Write implements io.Writer.
func (a *above) Write(p []byte) (int, error) {
	a.line.mu.Lock()
	defer a.line.mu.Unlock()
	a.line.erase()
	if len(p) > 0 {
		a.line.open = p[len(p)-1] != '\n'
	}
	return a.to.Write(p)
}
