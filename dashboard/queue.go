// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"strings"

	h "github.com/steer-dev/steer/dashboard/internal/markup"
	"github.com/steer-dev/steer/dashboard/internal/model"
)

// queue is what runs, waits, and comes back by itself.
func (p *Page) queue(now model.Now, recording bool) h.Nodes {
	q := p.model.Queue(now)
	var out h.Nodes
	switch {
	case recording && !q.Known:
		out = h.Nodes{h.Tag("p", h.Class("faint"), h.Text("As it was when the recording ended."))}
	case !q.Known:
		out = h.Nodes{h.Tag("p", h.Class("faint"), h.Text("As the last attempt of each object left it; what an event brings back sooner shows once it has run."))}
	}
	if !recording {
		out = append(out, running(&q))
	}
	moment := func(e *model.Entry) h.Node { return until(e.At, now.At, recording) }
	if q.Known {
		waits := func(e *model.Entry) h.Node { return h.Tag("span", h.Text(model.Brief(now.At.Sub(e.At)))) }
		out = append(out, entries("Waiting", "waiting", "Ready, and waiting for a worker.", "Nothing waits for a worker.", q.Ready, q.AllReady, "#Waited", waits))
	} else if !recording {
		out = append(out, part("Waiting", nil, "What waits for a worker is not known here."))
	}
	return append(out,
		entries("Backing off", "backing-off", "Failed, or met a conflict; tried again after a pause.", "Nothing backs off.", q.BackingOff, q.AllBackingOff, "Comes back", moment),
		entries("Due", "due", "Asked to come back.", "Nothing asked to come back.", q.Due, q.AllDue, "Comes back", moment))
}

func running(q *model.Queue) h.Node {
	var rows []h.Part
	for i := range q.Running[:min(len(q.Running), model.MostEntries)] {
		r := &q.Running[i]
		rows = append(rows, h.Tag("tr", h.Attr("data-key", r.ID.String()), h.Tag("th", h.Attr("scope", "row"), subjectLink(model.SubjectOf(r))), cell(h.Foreign(brief(r.Controller))),
			number(model.Brief(r.Took)), cell(h.Foreign(brief(r.Where()))), cell(attemptLink(r.ID, h.Text("So far")))))
	}
	if q.Running == nil {
		return part("Running", nil, "Which attempts run at this moment is not known here.")
	}
	if len(rows) == 0 {
		return part("Running", nil, "No attempt runs at this moment.")
	}
	return h.Tag("section", h.Attr("aria-labelledby", "running"), h.Tag("h2", h.Attr("id", "running"), h.Text("Running")),
		table("Attempts that run", []string{"Object", "Controller", "#For", "At", "Attempt"}, rows...), more(len(q.Running)-len(rows)))
}

// entries is a table of requests, with a column for their time.
func entries(title, id, what, none string, all []model.Entry, total int, column string, moment func(*model.Entry) h.Node) h.Node {
	if len(all) == 0 {
		return part(title, nil, none)
	}
	var rows []h.Part
	for i := range all {
		e := &all[i]
		last := h.Nodes{h.Tag("span", h.Class("faint"), h.Text("none is known"))}
		if !e.Last.IsZero() {
			last = h.Nodes{attemptLink(e.Last, outcome(e.Outcome))}
		}
		if e.Error != "" {
			last = append(last, h.Tag("div", h.Class("error", "short"), h.Foreign(brief(e.Error))))
		}
		at := cell(moment(e))
		if strings.HasPrefix(column, "#") {
			at = cell(h.Class("num"), moment(e))
		}
		rows = append(rows, h.Tag("tr", h.Attr("data-key", e.Controller+" "+brief(e.Name())), at,
			h.Tag("th", h.Attr("scope", "row"), subjectLink(e.Subject)), cell(h.Foreign(brief(e.Controller))), number(count(e.Attempt)), cell(last)))
	}
	return h.Tag("section", h.Attr("aria-labelledby", id), h.Tag("h2", h.Attr("id", id), h.Text(title), h.Tag("span", h.Class("faint"), h.Text(" "+count(total)))),
		h.Tag("p", h.Class("faint"), h.Text(what)),
		table(title, []string{column, "Object", "Controller", "#Next attempt", "Last attempt"}, rows...), more(total-len(rows)))
}

// more counts what is left out.
func more(n int) h.Node {
	if n <= 0 {
		return h.Node{}
	}
	return h.Tag("p", h.Class("faint"), h.Textf("%d more are left out, which come later.", n))
}

// recording says what is kept, and saves it.
func (p *Page) recording() h.Nodes {
	records := p.model.Records()
	if len(records) == 0 {
		return empty("There are no records", "They are kept from the end of the first attempt on.")
	}
	first, last := &records[0], &records[len(records)-1]
	row := func(name string, inner ...h.Part) h.Nodes {
		return h.Nodes{h.Tag("dt", h.Text(name)), h.Tag("dd", inner...)}
	}
	const day = "2006-01-02 15:04:05.000"
	facts := h.Tag("dl", h.Class("facts"), row("Records", h.Text(count(len(records)))), row("Missed", h.Text(count(p.model.Missed()))),
		row("First", clock(first.Began, day)), row("Last", clock(last.Began.Add(last.Took), day)))
	if forgotten := p.model.Added() - len(records); forgotten > 0 {
		facts = h.Tag("div", facts, notice(plural(forgotten, "older record", "older records")+" had to go: the page keeps the newest. Those of --record-dir reach further back."))
	}
	say := "It has names, field paths and messages of errors, and no values of objects but those that messages quote. Open it later, without the operator, with"
	return h.Nodes{facts,
		h.Tag("p", h.Tag("a", h.Class("action"), h.Attr("href", "/recording.jsonl"), h.Attr("download", "records.jsonl"), h.Text("Save as a file"))),
		h.Tag("p", h.Text(say), h.Text(" "), h.Tag("code", h.Text("steer page records.jsonl")), h.Text("."))}
}
