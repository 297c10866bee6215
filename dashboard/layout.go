// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	h "github.com/steer-dev/steer/dashboard/internal/markup"
	"github.com/steer-dev/steer/dashboard/internal/model"
	"github.com/steer-dev/steer/trace"
)

// tabs are the views that every page leads to.
func tabs() [][3]string {
	return [][3]string{{"pulse", "/", "Pulse"}, {"objects", "/objects", "Objects"}, {"queue", "/queue", "Queue"}, {"recording", "/recording", "Recording"}}
}

// document is a whole page.
func (p *Page) document(r *http.Request, s shown) h.Node {
	title := s.title
	if p.o.Title != "" {
		title += " · " + p.o.Title
	}
	var nav h.Nodes
	for _, tab := range tabs() {
		inner := []h.Part{h.Attr("href", tab[1]), h.Text(tab[2])}
		if tab[0] == s.name {
			inner = append(inner, h.Attr("aria-current", "page"))
		}
		nav = append(nav, h.Tag("li", h.Tag("a", inner...)))
	}
	return h.Tag("html", h.Attr("lang", "en"),
		h.Tag("head",
			h.Tag("meta", h.Attr("charset", "utf-8")),
			h.Tag("meta", h.Attr("name", "viewport"), h.Attr("content", "width=device-width, initial-scale=1")),
			h.Tag("meta", h.Attr("name", "color-scheme"), h.Attr("content", "light dark")),
			h.Tag("title", h.Text(title)),
			h.Tag("link", h.Attr("rel", "icon"), h.Attr("href", "/icon.svg")),
			h.Tag("link", h.Attr("rel", "stylesheet"), h.Attr("href", "/page.css")),
			h.Tag("script", h.Attr("src", "/page.js"), h.Attr("defer", "")),
		),
		h.Tag("body",
			h.Tag("a", h.Class("skip"), h.Attr("href", "#view"), h.Text("Skip to the content")),
			h.Tag("header", h.Class("top"),
				h.Tag("p", h.Class("brand"), h.Tag("span", h.Class("mark"), h.Attr("aria-hidden", "true")), h.Foreign(p.title())),
				h.Tag("nav", h.Attr("aria-label", "Views"), h.Tag("ul", nav)),
				status(s.ended, r.URL.RequestURI(), s.version),
			),
			h.Tag("main", h.Attr("id", "view"), h.Attr("tabindex", "-1"), h.Attr("data-view", s.name),
				h.Tag("h1", h.Foreign(s.title)), s.content),
			h.Tag("footer", h.Tag("p", h.Text("Read only. Times are those of the machine that serves the page, "+zone()+"."), h.Text(" Keys: "),
				h.Tag("kbd", h.Text("1")), h.Text("–"), h.Tag("kbd", h.Text("4")), h.Text(" views, "), h.Tag("kbd", h.Text("/")), h.Text(" find, "), h.Tag("kbd", h.Text("p")), h.Text(" pause, "),
				h.Tag("kbd", h.Text("j")), h.Text(" "), h.Tag("kbd", h.Text("k")), h.Text(" next and previous link."))),
		))
}

func (p *Page) title() string {
	if p.o.Title == "" {
		return "Steer"
	}
	return p.o.Title
}

func zone() string { name, _ := time.Now().Zone(); return name }

// status says whether the page goes on, and lets a reader pause it. The button is for the
// script, which shows it.
func status(ended, uri string, version uint64) h.Node {
	if ended != "" {
		return h.Tag("div", h.Class("status"), h.Attr("id", "status"), h.Attr("data-ended", ended),
			h.Tag("p", h.Class("badge"), h.Attr("role", "status"), h.Foreign(ended)))
	}
	return h.Tag("div", h.Class("status"), h.Attr("id", "status"), h.Attr("data-version", strconv.FormatUint(version, 10)),
		h.Tag("p", h.Class("badge", "live"), h.Attr("id", "state"), h.Attr("role", "status"), h.Text("Live")),
		link(uri, nil, h.Attr("id", "reload"), h.Text("Reload")),
		h.Tag("button", h.Attr("id", "pause"), h.Attr("type", "button"), h.Attr("aria-pressed", "false"), h.Attr("hidden", ""), h.Text("Pause")))
}

// empty is the state of a view with nothing to show.
func empty(what, then string) h.Nodes {
	return h.Nodes{h.Tag("div", h.Class("empty"), h.Tag("p", h.Class("lead"), h.Text(what)), h.Tag("p", h.Text(then)))}
}

// notice is what a reader should know of the view.
func notice(text string) h.Node {
	return h.Tag("p", h.Class("notice"), h.Attr("role", "note"), h.Text(text))
}

// link leads to a view, with what it is asked. What would make too long a URL leads nowhere.
func link(path string, query url.Values, inner ...h.Part) h.Node {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	if len(path) > maxURL {
		return h.Tag("span", inner...)
	}
	return h.Tag("a", append([]h.Part{h.Attr("href", path)}, inner...)...)
}

// maxURL bounds links, in bytes: proxies and browsers refuse longer ones.
const maxURL = 2000

// objectURL names a subject. Of an object all controllers are meant.
func objectURL(s model.Subject) url.Values {
	q := url.Values{}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	if s.Object == (trace.Object{}) {
		set("controller", s.Controller)
		set("request", s.Request)
		return q
	}
	set("group", s.Group)
	set("kind", s.Kind)
	set("namespace", s.Namespace)
	set("name", s.Object.Name)
	return q
}

func subjectOf(q url.Values) model.Subject {
	s := model.Subject{Object: trace.Object{Group: q.Get("group"), Kind: q.Get("kind"), Namespace: q.Get("namespace"), Name: q.Get("name")}}
	if s.Object == (trace.Object{}) {
		s.Controller, s.Request = q.Get("controller"), q.Get("request")
	}
	return s
}

// subjectLink is the name of a subject, which leads to it.
func subjectLink(s model.Subject) h.Node {
	switch {
	case s.Name() == "":
		return h.Tag("span", h.Class("faint"), h.Text("no object"))
	case s.Request == "" && s.Object.Name == "": // a collection
		return h.Tag("span", objectName(s))
	}
	return link("/object", objectURL(s), h.Attr("data-object", brief(s.Name())), objectName(s))
}

// objectName sets the kind apart from the name.
func objectName(s model.Subject) h.Part {
	if s.Object == (trace.Object{}) || s.Kind == "" {
		return h.Foreign(brief(s.Name()))
	}
	o := s.Object
	o.Kind = ""
	return h.Nodes{h.Tag("span", h.Class("kind"), h.Text(brief(s.Kind)+" ")), h.Foreign(brief(o.String()))}
}

func objectLink(o trace.Object) h.Node { return subjectLink(model.Subject{Object: o}) }

func attemptLink(id trace.ID, inner ...h.Part) h.Node {
	if id.IsZero() {
		return h.Tag("span", inner...)
	}
	return link("/attempt", url.Values{"id": {id.String()}}, inner...)
}

// brief cuts what is long in a list.
func brief(text string) string {
	const most = 160
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// clock is a moment, exact to the millisecond where that is wanted.
func clock(t time.Time, form string) h.Node {
	if t.IsZero() {
		return h.Tag("span", h.Class("faint"), h.Text("not known"))
	}
	local := t.Local()
	return h.Tag("time", h.Attr("datetime", t.UTC().Format(time.RFC3339Nano)), h.Attr("title", local.Format("2006-01-02 15:04:05.000 MST")), h.Text(local.Format(form)))
}

// Forms of moments.
const (
	second      = "15:04:05"
	millisecond = "15:04:05.000"
)

// until is a moment that is counted down by the script.
func until(t, now time.Time, recording bool) h.Node {
	if recording {
		return clock(t, second)
	}
	text := "now"
	if left := t.Sub(now); left > 0 {
		text = "in " + model.Brief(left.Truncate(time.Second)+time.Second)
	}
	return h.Tag("time", h.Attr("datetime", t.UTC().Format(time.RFC3339Nano)), h.Attr("data-due", strconv.FormatInt(t.UnixMilli(), 10)),
		h.Attr("title", t.Local().Format("2006-01-02 15:04:05.000 MST")), h.Text(text))
}

// mark is a state as a sign with its word: colour is never alone.
func mark(s model.State) h.Node {
	switch s {
	case model.NeedsPerson:
		return h.Tag("span", h.Class("mark-state", "broken"), h.Text("✕ needs you"))
	case model.Retried:
		return h.Tag("span", h.Class("mark-state", "retried"), h.Text("↻ is retried"))
	}
	return h.Tag("span", h.Class("mark-state", "fine"), h.Text("✓ fine"))
}

// outcome is how an attempt ended, as a sign with its word.
func outcome(o trace.Outcome) h.Node {
	class, sign := "fine", "✓"
	switch {
	case o == trace.Terminal || o == trace.GaveUp:
		class, sign = "broken", "✕"
	case model.Failure(o):
		class, sign = "retried", "↻"
	case o == trace.Running:
		class, sign = "plain", "…"
	case o == trace.Conflicted || o == trace.Again || o == trace.Stopped || o == trace.Denied:
		class, sign = "plain", "–"
	}
	return h.Tag("span", h.Class("mark-state", class), h.Text(sign+" "+outcomeWord(o)))
}

func outcomeWord(o trace.Outcome) string {
	switch o {
	case trace.Requeued:
		return "done, comes back"
	case trace.Again:
		return "comes back"
	case trace.Conflicted:
		return "met a conflict"
	case trace.TimedOut:
		return "timed out"
	case trace.GaveUp:
		return "gave up"
	case trace.Terminal:
		return "failed for good"
	}
	return o.String()
}

// table has a caption for those who hear it, and can be scrolled by keyboard.
func table(caption string, heads []string, rows ...h.Part) h.Node {
	var head h.Nodes
	for _, title := range heads {
		class := h.Attribute{}
		if name, ok := strings.CutPrefix(title, "#"); ok { // numbers are aligned at their end
			class, title = h.Class("num"), name
		}
		head = append(head, h.Tag("th", h.Attr("scope", "col"), class, h.Text(title)))
	}
	return h.Tag("div", h.Class("scroll"), h.Attr("role", "region"), h.Attr("aria-label", caption+", table"), h.Attr("tabindex", "0"),
		h.Tag("table", h.Tag("caption", h.Text(caption)), h.Tag("thead", h.Tag("tr", head)), h.Tag("tbody", rows...)))
}

func cell(inner ...h.Part) h.Node { return h.Tag("td", inner...) }
func number(text string) h.Node   { return h.Tag("td", h.Class("num"), h.Text(text)) }
func count(n int) string          { return strconv.Itoa(n) }
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}
