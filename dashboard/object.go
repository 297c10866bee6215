// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	h "github.com/steer-dev/steer/dashboard/internal/markup"
	"github.com/steer-dev/steer/dashboard/internal/model"
	"github.com/steer-dev/steer/trace"
)

const (
	// pageOfObjects and pageOfAttempts are how many rows a page has.
	pageOfObjects, pageOfAttempts = 100, 60
	// askFor bounds a question to the control plane.
	askFor = 20 * time.Second
)

// objects is the list of what is reconciled, which can be searched.
func (p *Page) objects(now model.Now, query url.Values) h.Nodes {
	find := query.Get("find")
	from, _ := strconv.Atoi(query.Get("from")) // what is no number is the begin
	rows, total := p.model.Rows(now, find, from, pageOfObjects)
	form := findForm(find, "kind, name or controller")
	if total == 0 {
		if find != "" {
			return append(h.Nodes{form}, empty("No object has this text in its name", "Kinds, names and controllers are searched: a part of one is enough.")...)
		}
		return append(h.Nodes{form}, empty("Nothing has been reconciled yet", "Objects are listed once a controller has ended its first attempt.")...)
	}
	var body []h.Part
	for i := range rows {
		r := &rows[i]
		what := h.Nodes{attemptLink(r.Last, outcome(r.Outcome))}
		if r.Error != "" {
			what = append(what, h.Tag("div", h.Class("error", "short"), h.Foreign(brief(r.Error))))
		}
		body = append(body, h.Tag("tr", h.Attr("data-key", r.Controller+" "+brief(r.Name())),
			cell(mark(r.State)), h.Tag("th", h.Attr("scope", "row"), subjectLink(r.Subject)), cell(h.Foreign(brief(r.Controller))),
			cell(what), cell(clock(r.Ended, second)), number(count(r.Attempts))))
	}
	return h.Nodes{form,
		table("Objects, those that need you first", []string{"State", "Object", "Controller", "Last attempt", "Ended", "#Attempts"}, body...),
		pages(find, min(max(from, 0), total), len(rows), total)}
}

func findForm(find, what string) h.Node {
	return h.Tag("form", h.Attr("role", "search"), h.Attr("action", "/objects"), h.Class("find"),
		h.Tag("label", h.Attr("for", "find"), h.Text("Find")),
		h.Tag("input", h.Attr("id", "find"), h.Attr("name", "find"), h.Attr("type", "search"), h.Attr("value", find), h.Attr("placeholder", what), h.Attr("autocomplete", "off")),
		h.Tag("button", h.Attr("type", "submit"), h.Text("Find")))
}

// pages leads to the pages before and after.
func pages(find string, from, shown, total int) h.Node {
	at := func(n int) url.Values {
		q := url.Values{}
		if find != "" {
			q.Set("find", find)
		}
		if n > 0 {
			q.Set("from", strconv.Itoa(n))
		}
		return q
	}
	return h.Tag("nav", h.Class("pages"), h.Attr("aria-label", "Pages"),
		h.Tag("span", h.Textf("%d to %d of %d", min(from+1, total), from+shown, total)),
		h.If(from > 0, link("/objects", at(max(from-pageOfObjects, 0)), h.Attr("rel", "prev"), h.Text("Back"))),
		h.If(from+shown < total, link("/objects", at(from+pageOfObjects), h.Attr("rel", "next"), h.Text("Next"))))
}

// object is the view of one. What asks the control plane is returned as a function.
func (p *Page) object(ctx context.Context, now model.Now, of model.Subject, query url.Values) (out h.Nodes, ask func() h.Nodes) {
	if of == (model.Subject{}) {
		return empty("No object is named", "Objects lists those that there are."), nil
	}
	views := [][2]string{{"attempts", "Attempts"}, {"conditions", "Conditions"}, {"history", "History"}, {"tree", "Tree"}}
	if p.o.Source == nil { // no operator attempts anything
		views = [][2]string{{"history", "History"}, {"conditions", "Conditions"}, {"tree", "Tree"}}
	}
	view := cmp.Or(query.Get("view"), views[0][0])
	var tabs h.Nodes
	for _, tab := range views {
		to := objectURL(of)
		if tab != views[0] {
			to.Set("view", tab[0])
		}
		parts := []h.Part{h.Text(tab[1])}
		if tab[0] == view {
			parts = append(parts, h.Attr("aria-current", "page"))
		}
		tabs = append(tabs, h.Tag("li", link("/object", to, parts...)))
	}
	if of.Object != (trace.Object{}) {
		out = h.Nodes{h.Tag("nav", h.Class("tabs"), h.Attr("aria-label", "Of this object"), h.Tag("ul", tabs))}
	}
	before, _ := strconv.Atoi(query.Get("before")) // what is no number is the newest
	v := p.model.Object(now, of, before, pageOfAttempts)
	for i := range v.Problems {
		out = append(out, h.Tag("ol", h.Class("cards"), problemCard(&v.Problems[i], now.At, false)))
	}
	if view == "attempts" {
		return append(out, p.attempts(&v, of, now)...), nil
	}
	if of.Object == (trace.Object{}) || p.o.Objects == nil {
		return append(out, notAtHand(of)...), nil
	}
	return out, func() h.Nodes {
		ctx, cancel := context.WithTimeout(ctx, askFor)
		defer cancel()
		if view == "tree" {
			tree, err := p.o.Objects.Tree(ctx, of.Object)
			if err != nil {
				return broken(err)
			}
			return treeView(&tree)
		}
		history, err := p.o.Objects.History(ctx, of.Object)
		if err != nil {
			return broken(err)
		}
		if view == "conditions" {
			return conditionsView(&history)
		}
		return historyView(&history)
	}
}

// notAtHand says how to ask for what only the control plane knows.
func notAtHand(of model.Subject) h.Nodes {
	out := h.Nodes{h.Tag("p", h.Class("lead"), h.Text("The control plane is not at hand")),
		h.Tag("p", h.Text("Conditions, history and tree are read from it with the rights of a person. This page has records alone: it reads no objects, so that it does not show what only the operator may read."))}
	name := strings.ToLower(of.Kind) + "/" + of.Object.Name
	if of.Group != "" {
		name = strings.ToLower(of.Kind) + "." + of.Group + "/" + of.Object.Name
	}
	if of.Namespace != "" {
		name += " -n " + of.Namespace
	}
	if of.Kind != "" && of.Object.Name != "" && len(name) < 200 {
		out = append(out, h.Tag("p", h.Text("With a kubeconfig of yours: "), h.Tag("code", h.Foreign("steer tree "+name)), h.Text(", "), h.Tag("code", h.Foreign("steer history "+name)),
			h.Text(", or "), h.Tag("code", h.Text("steer page deploy/NAME")), h.Text(" for a page with all of it.")))
	} else {
		out = append(out, h.Tag("p", h.Text("With a kubeconfig of yours: steer tree, steer history, or steer page deploy/NAME for a page with all of it.")))
	}
	return h.Nodes{h.Tag("div", h.Class("empty"), out)}
}

// broken is the state of a view whose source has failed.
func broken(err error) h.Nodes {
	return h.Nodes{h.Tag("div", h.Class("empty", "broken-view"), h.Tag("p", h.Class("lead"), h.Text("The control plane did not answer")),
		h.Tag("pre", h.Class("error"), h.Foreign(err.Error())), h.Tag("p", h.Text("What the records say is still shown. Reload to ask again.")))}
}

// attempts are a table, the newest first.
func (p *Page) attempts(v *model.Object, of model.Subject, now model.Now) h.Nodes {
	if v.Total == 0 {
		return empty("The records have nothing of it", "No attempt was of this object, none was caused by it and none wrote it.")
	}
	what := plural(v.Total, "attempt", "attempts")
	if v.Foreign {
		what += " of others that it caused, or that wrote it: no controller here reconciles it"
	}
	if v.Every > 0 {
		what += ", one in " + model.Brief(v.Every) + " on average"
	}
	var often h.Nodes
	for i := range v.Often {
		c := &v.Often[i]
		often = append(often, h.Tag("li", h.Tag("strong", h.Text(count(c.Attempts))), h.Text(" because "), p.cause(&model.Cause{Cause: c.Cause}), h.If(c.Type == trace.Delayed, h.Tag("span", h.Class("faint"), h.Text(": the one before asked to come back")))))
	}
	counts := h.Node{} // of one attempt the row says it
	if v.Total > 1 && len(often) > 0 {
		counts = h.Tag("ul", h.Class("plain", "often"), h.Attr("id", "often"), often)
	}
	several := map[string]bool{}
	for i := range v.Attempts {
		several[v.Attempts[i].Controller] = true
	}
	heads := []string{"Began", "Because", "#Waited", "#Read", "Wrote", "#Took", "Outcome", "Comes back"}
	if len(several) > 1 || v.Foreign {
		heads = append([]string{heads[0], "Controller"}, heads[1:]...)
	}
	var rows []h.Part
	for i := range v.Attempts {
		rows = append(rows, p.attemptRow(&v.Attempts[i], len(heads) > 8, v.Foreign, now))
	}
	older := objectURL(of)
	older.Set("before", strconv.Itoa(v.Older))
	return h.Nodes{
		h.Tag("p", h.Class("faint"), h.Text(what+", the newest first."), h.If(!v.Newest, h.Nodes{h.Tag("span", h.Text(" ")), link("/object", objectURL(of), h.Text("The newest"))})),
		counts,
		h.Tag("div", h.Attr("id", "attempts"), h.Attr("data-newest", strconv.FormatBool(v.Newest)), table("Attempts", heads, rows...)),
		h.Tag("nav", h.Class("pages"), h.Attr("aria-label", "Pages"), h.If(v.Older > 0, link("/object", older, h.Attr("rel", "next"), h.Attr("id", "older"), h.Text("Older attempts")))),
	}
}

func (p *Page) attemptRow(a *model.Attempt, named, foreign bool, now model.Now) h.Node {
	because := h.Nodes{h.Tag("span", h.Class("faint"), h.Text("not known"))}
	if a.Request != "" { // that of a webhook
		because = h.Nodes{h.Foreign(brief(a.Request))}
	}
	if len(a.Why) > 0 {
		because = h.Nodes{p.cause(&a.Why[0])}
		if more := max(a.Adds, len(a.Why)) - 1; more > 0 {
			because = append(because, h.Tag("span", h.Class("faint"), h.Textf(" and %d more", more)))
		}
	}
	var wrote h.Nodes
	for i := range a.Writes[:min(len(a.Writes), 3)] {
		wrote = append(wrote, h.Tag("div", access(&a.Writes[i])))
	}
	if more := len(a.Writes) - 3; more > 0 {
		wrote = append(wrote, h.Tag("div", h.Class("faint"), h.Textf("and %d more", more)))
	}
	if len(wrote) == 0 {
		wrote = h.Nodes{h.Tag("span", h.Class("faint"), h.Text("nothing"))}
	}
	ended := h.Nodes{outcome(a.Outcome)}
	if a.Retries > 0 {
		ended = append(ended, h.Tag("span", h.Class("faint"), h.Textf(" attempt %d", a.Retries+1)))
	}
	if a.Error != "" {
		ended = append(ended, h.Tag("div", h.Class("error", "short"), h.Foreign(brief(a.Error))))
	}
	due := h.Node{}
	if !a.Due.IsZero() {
		due = until(a.Due, now.At, true)
	}
	var name h.Part = h.Attribute{}
	if named {
		inner := h.Nodes{h.Foreign(brief(a.Controller))}
		if foreign {
			inner = append(inner, h.Tag("div", subjectLink(model.SubjectOf(&a.Record))))
		}
		name = h.Nodes{cell(inner)}
	}
	return h.Tag("tr", h.Attr("data-key", strconv.Itoa(a.Number)),
		h.Tag("th", h.Class("when"), h.Attr("scope", "row"), attemptLink(a.ID, clock(a.Began, millisecond))),
		name, cell(because), number(model.Brief(a.Waited)), number(count(len(a.Reads))), cell(wrote), number(model.Brief(a.Took)), cell(ended), cell(due))
}

// cause is one in words, which lead to the object and to the attempt that wrote it.
func (p *Page) cause(c *model.Cause) h.Node {
	parts := []h.Part{h.Text(c.Type.String())}
	if c.Object != (trace.Object{}) {
		parts = append(parts, h.Text(" "), objectLink(c.Object))
	}
	if c.Changed != "" {
		parts = append(parts, h.Tag("code", h.Class("field"), h.Text(brief(strings.ReplaceAll(c.Changed, ",", ", ")))))
	}
	if c.Count > 1 {
		parts = append(parts, h.Tag("span", h.Class("faint"), h.Textf(" %d times", c.Count)))
	}
	if c.By != nil {
		parts = append(parts, h.Tag("span", h.Class("faint"), h.Text(" written by ")), attemptLink(c.By.ID, h.Foreign(brief(c.By.Controller)), h.Textf(" #%d", c.By.ID.Number)))
	}
	return h.Tag("span", parts...)
}

// access is a read or a write in words.
func access(a *trace.Access) h.Node {
	what := a.Verb.String()
	if a.Subresource != "" {
		what += " " + a.Subresource + " of"
	}
	parts := []h.Part{h.Text(what + " "), objectLink(a.Object)}
	switch {
	case a.Verb == trace.List:
		parts = append(parts, h.Tag("span", h.Class("faint"), h.Text(" "+plural(a.Items, "item", "items"))))
	case a.Absent:
		parts = append(parts, h.Tag("span", h.Class("faint"), h.Text(" absent")))
	}
	if a.Changed != "" {
		parts = append(parts, h.Tag("code", h.Class("field"), h.Text(brief(strings.ReplaceAll(a.Changed, ",", ", ")))))
	}
	if a.Error != "" {
		parts = append(parts, h.Tag("span", h.Class("mark-state", "retried"), h.Text(" ✕ failed")))
	}
	return h.Tag("span", parts...)
}

// attempt is the view of one; nil if it is not there.
func (p *Page) attempt(now model.Now, text string) h.Nodes {
	var id trace.ID
	if id.UnmarshalText([]byte(text)) != nil {
		return nil
	}
	a, caused, ok := p.model.Attempt(id)
	if !ok {
		for i := range now.Running {
			if r := &now.Running[i]; r.ID == id {
				a, ok = model.Attempt{Record: *r}, true
				for j := range r.Causes {
					a.Why = append(a.Why, model.Cause{Cause: r.Causes[j]})
				}
			}
		}
	}
	if !ok {
		return nil
	}
	row := func(name string, inner ...h.Part) h.Nodes {
		return h.Nodes{h.Tag("dt", h.Text(name)), h.Tag("dd", inner...)}
	}
	of := model.SubjectOf(&a.Record)
	facts := h.Tag("dl", h.Class("facts"),
		row("Of", subjectLink(of), h.Tag("span", h.Class("faint"), h.Text(" by "), h.Foreign(brief(a.Controller)))),
		row("Began", clock(a.Began, "2006-01-02 15:04:05.000"), h.Tag("span", h.Class("faint"), h.Text(" after it had waited "+model.Brief(a.Waited)+" for a worker"))),
		row("Took", h.Text(model.Brief(a.Took))),
		row("Outcome", outcome(a.Outcome), h.If(a.Retries > 0, h.Tag("span", h.Class("faint"), h.Textf(" after %s in a row", plural(a.Retries, "failure", "failures"))))),
		row("Comes back", dueOrNot(&a)),
		row("Id", h.Tag("code", h.Text(a.ID.String()))))
	out := h.Nodes{facts}
	if a.Error != "" {
		out = append(out, h.Tag("pre", h.Class("error"), h.Foreign(a.Error)))
	}
	var why h.Nodes
	if a.Request != "" {
		why = append(why, h.Tag("li", h.Foreign(a.Request)))
	}
	for i := range a.Why {
		why = append(why, h.Tag("li", p.cause(&a.Why[i])))
	}
	out = append(out, part("Because", why, "What caused it is not known: its source did not say."))
	out = append(out, part("Read", accesses(a.Reads), "It read nothing."))
	out = append(out, part("Wrote", accesses(a.Writes), "It wrote nothing."))
	if a.Omitted > 0 {
		out = append(out, notice(plural(a.Omitted, "access", "accesses")+" did not fit into the record."))
	}
	var then h.Nodes
	for i := range caused {
		then = append(then, h.Tag("li", attemptLink(caused[i].ID, h.Textf("#%d", caused[i].ID.Number)), h.Text(" of "), subjectLink(caused[i].Subject), h.Text(" by "), h.Foreign(brief(caused[i].Controller))))
	}
	out = append(out, part("Caused", then, "None of the records says that its writes caused another attempt."))
	if a.Stack != "" {
		out = append(out, h.Tag("details", h.Tag("summary", h.Text("Stack")), h.Tag("pre", h.Foreign(a.Stack))))
	}
	return out
}

func dueOrNot(a *model.Attempt) h.Part {
	switch {
	case !a.Due.IsZero():
		return h.Nodes{clock(a.Due, second), h.Tag("span", h.Class("faint"), h.Text(", "+model.Brief(a.After)+" after it ended"))}
	case a.Outcome == trace.Running:
		return h.Text("it has not ended")
	}
	return h.Text("not by itself: when something changes")
}

// part is a list with its heading, or why it is empty.
func part(title string, items h.Nodes, none string) h.Node {
	body := h.Tag("ul", h.Class("plain"), items)
	if len(items) == 0 {
		body = h.Tag("p", h.Class("faint"), h.Text(none))
	}
	return h.Tag("section", h.Tag("h2", h.Text(title)), body)
}

// mostAccesses is how many are listed, of reads and of writes.
const mostAccesses = 200

func accesses(all []trace.Access) (items h.Nodes) {
	for i := range all[:min(len(all), mostAccesses)] {
		a := &all[i]
		var how []h.Part
		if a.Revision != "" {
			how = append(how, h.Tag("span", h.Class("faint"), h.Text(" at "+a.Revision)))
		}
		if a.Cached {
			how = append(how, h.Tag("span", h.Class("faint"), h.Text(" from the cache")))
		}
		if a.Error != "" {
			how = append(how, h.Tag("div", h.Class("error", "short"), h.Foreign(a.Error)))
		}
		items = append(items, h.Tag("li", append([]h.Part{access(a)}, how...)...))
	}
	if more := len(all) - mostAccesses; more > 0 {
		items = append(items, h.Tag("li", h.Class("faint"), h.Textf("and %d more", more)))
	}
	return items
}
