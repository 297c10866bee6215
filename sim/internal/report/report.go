// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report writes the page that a failing plan gives: the verdict, the plan in words,
// what happened around its faults beside what happens without them, and how to repeat it.
package report

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/steer-dev/steer/sim/internal/plan"
)

// What a page holds at most. What is left out is counted on the page.
const (
	maxFindings = 12
	maxSteps    = 8
	before      = 4  // lines before and after a fault or a difference
	maxLines    = 32 // lines of what happened
	maxWidth    = 160
)

// Failure is a run that failed.
type Failure struct {
	// Verdict says in one line what is at fault.
	Verdict string
	// Findings are the single ones of it, one line each; what they say of Secrets is hidden
	// by whom finds it.
	Findings []string
	// Plan of the run, and how many faults it had before it was shrunk, in how many runs;
	// 0 if it was not.
	Plan         plan.Plan
	ShrunkFrom   int
	ShrinkingRun int
	// Lines are what the recorder says of the run, Reference of the one without faults: one
	// line for each request, without times, uids and generated names, so that the same
	// request is the same line.
	Lines, Reference []string
	// Faults are the indexes of the lines at which faults happened. Such a line may say
	// which, after the line of the reference and a colon.
	Faults []int
	// Test is the name of the test that has the plan as a subtest, Package what names its
	// package to "go test". File, where there is one, holds the plan.
	Test, Package, File string
}

// String returns the page; it ends with a newline.
func (f Failure) String() string {
	var b strings.Builder
	line(&b, "", f.Verdict)
	fmt.Fprintf(&b, "\nplan %s", f.Plan.Name())
	if f.ShrunkFrom > len(f.Plan.Faults) {
		fmt.Fprintf(&b, ", of %d faults at first, in %d runs", f.ShrunkFrom, f.ShrinkingRun)
	}
	b.WriteByte('\n')
	list(&b, Words(f.Plan), maxSteps, "steps")
	if len(f.Findings) > 0 {
		b.WriteString("\nfound\n")
		list(&b, f.Findings, maxFindings, "findings")
	}
	if len(f.Lines)+len(f.Reference) > 0 {
		b.WriteString("\nwhat happened (\"-\": in the reference only, \"+\": in this run only, \"!\": a fault)\n")
		list(&b, beside(f.Reference, f.Lines, f.Faults), maxLines, "lines")
	}
	b.WriteString("\nto repeat it\n")
	line(&b, "  ", f.Command())
	if f.File != "" {
		line(&b, "  ", "the plan is in "+f.File+": it runs first from now on")
	}
	return b.String()
}

// Command returns the command that repeats the run.
func (f Failure) Command() string {
	cmd := "go test -run '" + exactly(f.Test) + "/" + exactly(f.Plan.Name()) + "'"
	if f.Package != "" {
		cmd += " " + f.Package
	}
	return cmd
}

// exactly returns a pattern of "go test -run" for one name, which may be that of a subtest.
func exactly(name string) string {
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return strings.Join(parts, "/")
}

// Words says what a plan does, one sentence for each fault and for the order.
func Words(p plan.Plan) []string {
	var out []string
	for _, f := range p.Faults {
		out = append(out, sentence(f))
	}
	switch {
	case p.Seed != 0:
		out = append(out, fmt.Sprintf("Where several actors can go on, order %d decides which does.", p.Seed))
	case len(out) == 0:
		out = append(out, "Nothing goes wrong: it is the reference.")
	}
	return out
}

func sentence(f plan.Fault) string {
	who, what := "The operator", "the write \""+f.At.String()+"\""
	if f.Restart > 0 {
		what = "write " + fmt.Sprint(f.Restart) + " after the restart"
	}
	if f.At.Actor != "" && f.At.Actor != plan.Operator {
		who = f.At.Actor
	}
	switch f.Type {
	case plan.CrashBefore:
		return who + " crashes before " + what + ": it is not done. It is started again."
	case plan.CrashAfter:
		return who + " crashes after " + what + ": it is done. It is started again."
	case plan.CrashDuring:
		return who + " crashes during " + what + ": it is done, its answer is lost. It is started again."
	case plan.TimeoutAfter:
		return who + " gets 504 for " + what + ", which is done all the same."
	}
	return fmt.Sprintf("%s gets %d for %s, which is not done.", who, f.Type.Status(), what)
}

// list writes at most so many lines, and how many are left out.
func list(b *strings.Builder, lines []string, most int, what string) {
	shown := lines
	if len(lines) > most {
		shown = lines[:most-1]
	}
	for _, s := range shown {
		line(b, "  ", s)
	}
	if more := len(lines) - len(shown); more > 0 {
		fmt.Fprintf(b, "  ... and %d more %s\n", more, what)
	}
}

// line writes one line, cut where it is long.
func line(b *strings.Builder, indent, s string) {
	s = strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	if utf8.RuneCountInString(s) > maxWidth && !strings.HasPrefix(s, "go test") {
		s = string([]rune(s)[:maxWidth-3]) + "..."
	}
	b.WriteString(indent + s + "\n")
}
