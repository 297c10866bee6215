// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/steer-dev/steer/sim/internal/ends"
	"github.com/steer-dev/steer/sim/internal/engine"
	"github.com/steer-dev/steer/sim/internal/plan"
	"github.com/steer-dev/steer/sim/internal/worker"
)

// The verdicts about a run, beside the types of trouble of package engine.
const (
	asserts  = "the test fails"
	differs  = "the end is not that of the reference"
	destroys = "an object is deleted that the reference keeps"
	orphans  = "an object is created for an owner that is gone"
	leftover = "an object is left that nothing needs any more"
)

// judge compares runs with the reference.
type judge struct {
	reference *ends.State
	masks     ends.Masks
	// aside are the findings of the reference about its own.
	aside []string
}

func newJudge(reference *ends.State, masks ends.Masks) *judge {
	j := &judge{reference: reference, masks: masks}
	_, j.aside = j.alone(reference)
	return j
}

// alone returns the findings that need no reference.
func (j *judge) alone(end *ends.State) (verdict string, lines []string) {
	add := func(of string, objects []string, what string) {
		for _, object := range objects {
			if line := object + what; !slices.Contains(j.aside, line) {
				verdict, lines = cmp.Or(verdict, of), append(lines, line)
			}
		}
	}
	add(orphans, ends.Orphans(end), "")
	add(leftover, ends.Leftovers(end, plan.Operator), " is left although what it was made for is gone")
	return verdict, lines
}

func stateOf(r engine.Record) *ends.State {
	lives := make([]ends.Life, len(r.Lives))
	for i, l := range r.Lives {
		lives[i] = ends.Life{
			Object: l.Object, CreatedBy: l.CreatedBy, DeletedBy: l.DeletedBy,
			Created: int64(l.Created), Deleted: int64(l.Deleted), // revisions
		}
	}
	return ends.New(lives)
}

// findings returns the faults of a run: the verdict, and the single ones, one line
// each. An empty verdict is a run that passes.
func (j *judge) findings(a worker.Answer) (verdict string, lines []string) {
	switch {
	case a.Trouble != nil:
		lines = strings.Split(a.Trouble.Message, "\n")
		return a.Trouble.Type, lines
	case a.Failed:
		return asserts, assertions(a.Output)
	}
	end := stateOf(a.Record)
	for _, d := range ends.Compare(j.reference, end, j.masks) {
		lines = append(lines, d.String())
	}
	if len(lines) > 0 {
		verdict = differs
	}
	for _, object := range ends.Destroyed(j.reference, end, plan.Operator) {
		lines = append(lines, object+" was deleted: the reference keeps it")
		if verdict == "" {
			verdict = destroys
		}
	}
	of, more := j.alone(end)
	return cmp.Or(verdict, of), append(lines, more...)
}

// logged is the place that begins what a test logs.
var logged = regexp.MustCompile(`^\s+\w[\w.-]*\.go:\d+: `)

// assertions are what a test that failed says.
func assertions(output []string) []string {
	first := slices.IndexFunc(output, logged.MatchString)
	if first < 0 {
		return output
	}
	var out []string
	for _, line := range output[first:] {
		out = append(out, strings.TrimSpace(line))
	}
	return out
}

// request is a line of the log of the gate without the digests of bytes.
var request = regexp.MustCompile(`( [0-9a-f]{1,16})+$`)

// firstDifference tells where two logs differ first in what is sent; "" if they differ in
// bytes alone.
func firstDifference(a, b []string) string {
	plain := func(log []string, i int) string {
		if i >= len(log) {
			return "nothing more"
		}
		return request.ReplaceAllString(log[i], "")
	}
	for i := range max(len(a), len(b)) {
		if one, other := plain(a, i), plain(b, i); one != other {
			return fmt.Sprintf("step %d\n  of one:       %s\n  of the other: %s", i+1, one, other)
		}
	}
	return ""
}

// linesOf are the lines of a run for a report, and those at which faults happened.
func linesOf(r engine.Record) (lines []string, faults []int) {
	for i, w := range r.Writes {
		name := w.Write
		name.Nth = 1
		line := name.String()
		if w.Status != 0 {
			line += fmt.Sprint(" -> ", w.Status)
		}
		if !w.Effective && w.Status/100 == 2 {
			line += ", nothing changed"
		}
		if w.Fault != "" {
			faults = append(faults, i)
			line += ": " + strings.ReplaceAll(w.Fault, "_", " ")
		}
		lines = append(lines, line)
	}
	return lines, faults
}
