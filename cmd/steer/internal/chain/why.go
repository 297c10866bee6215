// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/steer-dev/steer/trace"
)

// Bounds of an answer.
const (
	mostVersions = 200
	mostSteps    = 32
	mostDepth    = 12
	mostCauses   = 5 // of the reconciles of one controller
)

// Answer says why an object, or a field of it, is as it is.
type Answer struct {
	Object string `json:"object"`
	Field  string `json:"field,omitempty"`
	Value  any    `json:"value,omitempty"`
	// Step is the write that made it so; nil if that is not known.
	Step *Step `json:"step,omitempty"`
	// Missing says why there is no step.
	Missing string `json:"missing,omitempty"`
	// Reconciles of the object that records know, by controllers; not of a field.
	Reconciles []Reconciles `json:"reconciles,omitempty"`
}

// Reconciles are those of an object by one controller.
type Reconciles struct {
	Controller string    `json:"controller"`
	Count      int       `json:"count"`
	First      time.Time `json:"first"`
	Last       time.Time `json:"last"`
	// Causes by how often they came, the most frequent first: the type, and what the event
	// was of.
	Causes []Count `json:"causes,omitempty"`
}

// Count is a cause, and in how many reconciles it was one.
type Count struct {
	Cause string `json:"cause"`
	Count int    `json:"count"`
}

// Step is one write, and what caused the reconcile that made it.
type Step struct {
	Version
	Because []Cause `json:"because,omitempty"`
}

// Cause is one of a reconcile, and the writes that made its revisions.
type Cause struct {
	Cause string `json:"cause"`
	// Writes are those of the first and the newest revision of the cause.
	Writes []*Step `json:"writes,omitempty"`
	// Missing says why nothing is known of the writes.
	Missing string `json:"missing,omitempty"`
}

// Why answers for a field of an object, or with an empty field for its newest version.
func (f *Facts) Why(ctx context.Context, object trace.Object, field string) (*Answer, error) {
	out := &Answer{Object: object.String(), Field: field}
	current, err := f.Server.At(ctx, object, 0)
	if err != nil {
		return nil, err
	}
	if field != "" && current != nil {
		value, ok := valueAt(current, field)
		if !ok {
			return f.gone(ctx, out, object)
		}
		if object.Group != "" || object.Kind != "Secret" {
			out.Value = value
		}
	}
	if field == "" {
		out.Reconciles = f.reconciles(object)
	}
	return out, f.answer(ctx, out, object)
}

// reconciles counts those of an object.
func (f *Facts) reconciles(object trace.Object) (out []Reconciles) {
	causes := map[string]map[string]int{}
	for _, r := range f.Records(object) {
		if r.Object != object {
			continue
		}
		i := slices.IndexFunc(out, func(known Reconciles) bool { return known.Controller == r.Controller })
		if i < 0 {
			i = len(out)
			out = append(out, Reconciles{Controller: r.Controller, First: r.Began, Last: r.Began})
			causes[r.Controller] = map[string]int{}
		}
		out[i].Count++
		if r.Began.Before(out[i].First) {
			out[i].First = r.Began
		}
		if r.Began.After(out[i].Last) {
			out[i].Last = r.Began
		}
		for _, c := range r.Causes {
			cause := trace.Cause{Type: c.Type, Object: c.Object, Changed: c.Changed}.String()
			if c.Type == trace.Delayed {
				cause += ": the reconcile before asked to come back"
			}
			causes[r.Controller][cause]++
		}
	}
	for i := range out {
		for cause, n := range causes[out[i].Controller] {
			out[i].Causes = append(out[i].Causes, Count{cause, n})
		}
		slices.SortFunc(out[i].Causes, func(a, b Count) int { return cmp.Or(b.Count-a.Count, cmp.Compare(a.Cause, b.Cause)) })
		out[i].Causes = out[i].Causes[:min(len(out[i].Causes), mostCauses)]
	}
	slices.SortFunc(out, func(a, b Reconciles) int { return cmp.Compare(a.Controller, b.Controller) })
	return out
}

// gone answers for a field that the object does not have: who took it away.
func (f *Facts) gone(ctx context.Context, out *Answer, object trace.Object) (*Answer, error) {
	if err := f.answer(ctx, out, object); err != nil {
		return nil, err
	}
	if out.Step != nil && out.Step.Change == "created" {
		out.Step, out.Missing = nil, "the object has no such field, and has had none since it was created"
	}
	return out, nil
}

// answer finds the newest write of the field.
func (f *Facts) answer(ctx context.Context, out *Answer, object trace.Object) error {
	field := out.Field
	var found *Version
	versions := 0
	end, err := f.walk(ctx, object, func(v Version) bool {
		versions++
		if versions > mostVersions || !v.Values && field != "" {
			return false
		}
		if v.made(field) {
			found = &v
		}
		return found == nil
	})
	if err != nil {
		return err
	}
	if found == nil {
		out.Missing = "no write of it is known: " + end
		if versions > 0 {
			out.Missing = fmt.Sprintf("it did not change in the versions that the server still has (%d), and who wrote it before is not known%s", versions, f.lacking())
		}
		return nil
	}
	steps := mostSteps
	out.Step, err = f.explain(ctx, *found, mostDepth, &steps, map[string]bool{})
	return err
}

// made reports whether a version is one in which a field, or anything, came to be as it is.
func (v *Version) made(field string) bool {
	if field == "" || v.Change == "created" || v.Change == "deleted" {
		return true
	}
	was, had := valueAt(v.before, field)
	is, has := valueAt(v.now, field)
	return had != has || !reflect.DeepEqual(was, is)
}

// explain follows a version to what caused it.
func (f *Facts) explain(ctx context.Context, v Version, depth int, steps *int, seen map[string]bool) (*Step, error) {
	*steps--
	step := &Step{Version: v}
	if v.Reconcile == nil {
		return step, nil
	}
	for _, c := range v.Reconcile.record.Causes {
		cause, err := f.cause(ctx, c, depth-1, steps, seen)
		if err != nil {
			return nil, err
		}
		step.Because = append(step.Because, cause)
	}
	return step, nil
}

// cause finds the writes of the revisions of a cause.
func (f *Facts) cause(ctx context.Context, c trace.Cause, depth int, steps *int, seen map[string]bool) (Cause, error) {
	out := Cause{Cause: c.String()}
	switch {
	case c.Object == (trace.Object{}):
		return out, nil // a timer, a retry, a signal
	case c.Revision == "":
		out.Missing = "the revision: its source has none"
		return out, nil
	}
	for _, text := range []string{c.First, c.Revision} {
		if text == "" {
			continue
		}
		revision, err := strconv.ParseInt(text, 10, 64)
		name := c.Object.String() + "@" + text
		switch {
		case err != nil:
			out.Missing = "the write: its revision is no number"
			continue
		case seen[name]:
			out.Missing = "it is told above"
			continue
		case depth <= 0 || *steps <= 0:
			out.Missing = "the rest is left out: ask why of " + name
			continue
		}
		seen[name] = true
		v, _, err := f.version(ctx, c.Object, revision)
		if err != nil {
			out.Missing = err.Error()
			continue
		}
		step, err := f.explain(ctx, v, depth, steps, seen)
		if err != nil {
			return out, err
		}
		out.Writes = append(out.Writes, step)
	}
	return out, nil
}

// String tells the answer in words.
func (a *Answer) String() string {
	var b strings.Builder
	subject := Plain(a.Object)
	if a.Field != "" {
		subject = Plain(a.Field) + " of " + subject
		if a.Value != nil {
			subject += " is " + Value(a.Value)
		}
	}
	if a.Step == nil {
		fmt.Fprintf(&b, "%s\n  not known: %s\n", subject, Plain(a.Missing))
	} else {
		fmt.Fprintf(&b, "%s, since revision %s\n", subject, Plain(a.Step.Revision))
		a.Step.tell(&b, "  ")
	}
	for i := range a.Reconciles {
		a.Reconciles[i].tell(&b)
	}
	return b.String()
}

// tell says how often, and by which causes.
func (r *Reconciles) tell(b *strings.Builder) {
	fmt.Fprintf(b, "reconciled by %s: %d in %s", Plain(r.Controller), r.Count, r.Last.Sub(r.First).Round(time.Millisecond))
	if r.Count > 1 {
		fmt.Fprintf(b, ", every %s on average", (r.Last.Sub(r.First) / time.Duration(r.Count-1)).Round(time.Millisecond))
	}
	b.WriteString("\n")
	for _, c := range r.Causes {
		fmt.Fprintf(b, "  %d because %s\n", c.Count, Plain(c.Cause))
	}
}

func (s *Step) tell(b *strings.Builder, indent string) {
	what := cmp.Or(s.Change, "written")
	fmt.Fprintf(b, "%s%s at %s", indent, what, Plain(s.Revision))
	if len(s.Fields) > 0 {
		b.WriteString(" (" + Plain(s.paths()) + ")")
	}
	switch {
	case s.Reconcile != nil:
		fmt.Fprintf(b, " by reconcile %s of %s", s.Reconcile.ID, Plain(s.Reconcile.Controller))
		if s.Reconcile.Object != "" {
			b.WriteString(", " + Plain(s.Reconcile.Object))
		}
	case s.Manager != "":
		b.WriteString(" by " + Plain(s.Manager))
	}
	if s.User != "" {
		b.WriteString(", user " + Plain(s.User))
	}
	if !s.Time.IsZero() {
		b.WriteString(", " + s.Time.Local().Format(time.TimeOnly))
	}
	b.WriteString("\n")
	for _, missing := range s.Missing {
		fmt.Fprintf(b, "%s  not known: %s\n", indent, Plain(missing))
	}
	for _, c := range s.Because {
		fmt.Fprintf(b, "%s  because %s\n", indent, Plain(c.Cause))
		if c.Missing != "" {
			fmt.Fprintf(b, "%s    %s\n", indent, Plain(c.Missing))
		}
		for _, w := range c.Writes {
			w.tell(b, indent+"    ")
		}
	}
}

// paths of the fields, in one line.
func (v *Version) paths() string {
	var out []string
	for _, f := range v.Fields {
		out = append(out, f.Path)
	}
	return strings.Join(out, ",")
}

// Text tells the history as a table. With values it has a line for each field; wide it has
// the date, what was reconciled, the client and the id of the request as well.
func (h *History) Text(values, wide bool) string {
	var b strings.Builder
	var lines []string // of the values
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	row := func(more [3]string, cells ...string) {
		if wide {
			cells = slices.Insert(cells, len(cells)-1, more[:]...)
		}
		for i := range cells {
			cells[i] = cmp.Or(Plain(cells[i]), "-")
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	row([3]string{"OBJECT", "AUDIT ID", "USER AGENT"}, "REVISION", "TIME", "CHANGE", "MANAGER", "USER", "RECONCILE", "FIELDS")
	clock := time.TimeOnly
	if wide {
		clock = time.RFC3339
	}
	for i := range h.Versions {
		v := &h.Versions[i]
		at, reconcile, about := "", "", ""
		if !v.Time.IsZero() {
			at = v.Time.Local().Format(clock)
		}
		if v.Reconcile != nil {
			reconcile, about = v.Reconcile.ID.String()+" "+v.Reconcile.Controller, v.Reconcile.Object
		}
		row([3]string{about, v.AuditID, v.UserAgent}, v.Revision, at, v.Change, v.Manager, v.User, reconcile, v.paths())
		if !values {
			continue
		}
		for _, f := range v.Fields {
			if v.Values {
				lines = append(lines, fmt.Sprintf("  %s  %s: %s -> %s", Plain(v.Revision), Plain(f.Path), Value(f.Old), Value(f.New)))
			}
		}
		for _, missing := range v.Missing {
			lines = append(lines, fmt.Sprintf("  %s  not known: %s", Plain(v.Revision), Plain(missing)))
		}
	}
	_ = table.Flush() // into memory
	for _, line := range lines {
		b.WriteString(line + "\n")
	}
	fmt.Fprintf(&b, "%s\n", Plain(h.End))
	return b.String()
}
