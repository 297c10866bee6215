// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/steer-dev/steer/trace"
)

// printer writes what the demo shows, whole blocks at a time; colours only on a
// terminal that wants them.
type printer struct {
	mu    sync.Mutex
	w     io.Writer
	color bool
	step  int
}

func newPrinter(f *os.File) *printer {
	_, plain := os.LookupEnv("NO_COLOR")
	return &printer{w: f, color: !plain && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))}
}

// ANSI styles.
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	green = "32"
	cyan  = "36"
)

func (p *printer) style(style, text string) string {
	if !p.color {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

// title starts a step.
func (p *printer) title(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.step++
	fmt.Fprintf(p.w, "\n%s\n", p.style(bold, fmt.Sprintf("%d. %s", p.step, fmt.Sprintf(format, args...))))
}

// line says something about the step.
func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "   %s\n", fmt.Sprintf(format, args...))
}

// reconcile shows one reconcile: cause, reads, writes, outcome.
func (p *printer) reconcile(r trace.Record) {
	outcome := r.Outcome.String()
	if r.After > 0 {
		outcome += ", again in " + r.After.Round(time.Second).String()
	}
	style := green
	switch r.Outcome {
	case trace.Failed, trace.Terminal, trace.Panicked, trace.TimedOut, trace.GaveUp:
		style = red
	}
	if r.Error != "" {
		outcome += ": " + r.Error
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "     %s %s\n", p.style(cyan, "reconcile "+r.Object.String()), p.style(faint, "in "+r.Took.Round(10*time.Microsecond).String()))
	for i, cause := range r.Causes {
		name := ""
		if i == 0 {
			name = "because"
		}
		p.row(name, cause.String())
	}
	p.row("read", accesses(r.Reads))
	p.row("wrote", accesses(r.Writes))
	p.row("outcome", p.style(style, outcome))
}

// admission shows what a webhook changed or denied; what it left alone is not shown.
func (p *printer) admission(r trace.Record) {
	if r.Outcome == trace.Allowed && len(r.Writes) == 0 {
		return
	}
	style, outcome := green, r.Outcome.String()
	if r.Outcome != trace.Allowed {
		style, outcome = red, outcome+": "+r.Error
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintf(p.w, "     %s %s\n", p.style(cyan, "webhook "+r.Controller), p.style(faint, "in "+r.Took.Round(10*time.Microsecond).String()))
	p.row("request", r.Request)
	p.row("wrote", accesses(r.Writes))
	p.row("outcome", p.style(style, outcome))
}

func (p *printer) row(name, text string) {
	if text != "" {
		fmt.Fprintf(p.w, "       %s %s\n", p.style(faint, fmt.Sprintf("%-7s", name)), text)
	}
}

// accesses joins what was read or written; what was done to several objects of
// a kind is told once.
func accesses(all []trace.Access) string {
	type group struct {
		verb trace.Verb
		kind string
	}
	count := map[group]int{}
	for _, a := range all {
		count[group{a.Verb, a.Kind + "/" + a.Subresource}]++
	}
	var texts []string
	for _, a := range all {
		g := group{a.Verb, a.Kind + "/" + a.Subresource}
		switch n := count[g]; {
		case n == 1 || !a.Verb.Reads():
			texts = append(texts, a.String())
		case n > 1:
			texts = append(texts, fmt.Sprintf("%s %s x%d", a.Verb, strings.TrimSuffix(g.kind, "/"), n))
			count[g] = 0 // told
		}
	}
	return strings.Join(texts, ", ")
}
