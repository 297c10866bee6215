// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	h "github.com/steer-dev/steer/dashboard/internal/markup"
	"github.com/steer-dev/steer/dashboard/internal/model"
)

const (
	// mostControllers is how many rows the table has, and mostPlots how many of them have plots.
	mostControllers, mostPlots = 100, 20
)

// pulse is the first view: what needs a person, then how all controllers do.
func (p *Page) pulse(now model.Now, recording bool) h.Nodes {
	v := p.model.Pulse(now, recording)
	if v.Objects == 0 && len(now.Running) == 0 {
		if recording {
			return empty("There are no records", "The file has none: it was written before the operator reconciled anything.")
		}
		return empty("Nothing has been reconciled yet", "The page fills by itself once a controller has ended its first attempt.")
	}
	out := h.Nodes{summary(&v)}
	if missed := p.model.Missed(); missed > 0 {
		out = append(out, notice(plural(missed, "record was", "records were")+" overwritten before they could be read: counts and plots are of the others."))
	}
	out = append(out, problems(&v))
	out = append(out, controllers(&v, recording))
	return out
}

// summary says in one line whether a person is needed.
func summary(v *model.Pulse) h.Node {
	broken := v.NeedPerson
	say := "Nothing needs you."
	if broken > 0 {
		say = plural(broken, "thing needs", "things need") + " you."
	}
	rest := plural(v.AreRetried, "is", "are") + " retried, " + plural(v.Objects, "object", "objects") + " in all."
	if v.AreRetried == 0 {
		rest = plural(v.Objects, "object", "objects") + " in all."
	}
	class := "fine"
	if broken > 0 {
		class = "broken"
	}
	return h.Tag("p", h.Class("lead", class), h.Attr("id", "summary"), h.Text(say), h.Tag("span", h.Class("faint"), h.Text(" "+rest)))
}

// problems are cards, the worst first; the first link of each leads to the object.
func problems(v *model.Pulse) h.Node {
	if len(v.Problems) == 0 {
		return h.Node{}
	}
	var cards h.Nodes
	for i := range v.Problems {
		cards = append(cards, problemCard(&v.Problems[i], v.To, true))
	}
	return h.Tag("section", h.Attr("aria-labelledby", "problems"),
		h.Tag("h2", h.Attr("id", "problems"), h.Text("What is the matter")),
		h.Tag("ol", h.Class("cards"), cards),
		h.If(v.More > 0, h.Tag("p", h.Tag("a", h.Attr("href", "/objects"), h.Textf("And %d more", v.More)))))
}

func problemCard(p *model.Problem, at time.Time, named bool) h.Node {
	class := "broken"
	if p.State == model.Retried {
		class = "retried"
	}
	var name h.Node
	if named {
		name = h.Tag("h3", subjectLink(p.Subject), h.Tag("span", h.Class("faint"), h.Text(" by "), h.Foreign(brief(p.Controller))))
	}
	return h.Tag("li", h.Class("card", class), h.Attr("data-state", class), h.Attr("data-key", p.Controller+" "+brief(p.Name())),
		h.Tag("p", h.Class("state"), mark(p.State), h.If(!p.Since.IsZero(), h.Tag("span", h.Class("faint"), h.Text(" since "), clock(p.Since, second), h.Text(", "+model.Brief(at.Sub(p.Since))))),
			h.If(!named, h.Tag("span", h.Class("faint"), h.Text(" by "), h.Foreign(brief(p.Controller))))),
		name,
		h.Tag("p", h.Foreign(p.What), h.Text(". "), attemptLink(p.Last, h.Text("The last attempt"))),
		h.If(p.Error != "", h.Tag("pre", h.Class("error"), h.Foreign(p.Error))))
}

// controllers is a table with plots over the window.
func controllers(v *model.Pulse, recording bool) h.Node {
	span := "the last five minutes"
	if recording {
		span = v.From.Local().Format("2006-01-02 15:04:05") + " to " + v.To.Local().Format(second)
	}
	var rows []h.Part
	for i := range v.Controllers[:min(len(v.Controllers), mostControllers)] {
		c := &v.Controllers[i]
		plots := []h.Part{h.Class("plots")}
		if i < mostPlots {
			plots = append(plots,
				bars(c.Rate, c.Failed, fmt.Sprintf("attempts: %d, of which %d failed; at most %.0f in %s", c.Attempts, c.Failures, slices.Max(c.Rate), model.Brief(v.Step))))
		}
		took := []h.Part{h.Class("plots")}
		if i < mostPlots {
			took = append(took, line(c.Took, fmt.Sprintf("slowest attempts: at most %s", model.Brief(c.Slowest))))
		}
		waiting := "–"
		if c.Waiting >= 0 {
			waiting = count(c.Waiting)
		}
		broken := number(count(c.NeedPerson))
		if c.NeedPerson > 0 {
			broken = cell(h.Class("num"), h.Tag("strong", h.Class("broken"), h.Text(count(c.NeedPerson))))
		}
		rows = append(rows, h.Tag("tr", h.Attr("data-key", c.Name),
			h.Tag("th", h.Attr("scope", "row"), link("/objects", url.Values{"find": {brief(c.Name)}}, h.Foreign(brief(c.Name))), kindOf(c.Name)),
			number(count(c.Objects)), broken, number(count(c.Retried)), number(waiting), number(count(c.Attempts)), number(count(c.Failures)),
			h.Tag("td", plots...), number(model.Brief(c.Median)), number(model.Brief(c.Slowest)), h.Tag("td", took...)))
	}
	more := len(v.Controllers) - len(rows)
	return h.Tag("section", h.Attr("aria-labelledby", "controllers"),
		h.Tag("h2", h.Attr("id", "controllers"), h.Text("Controllers")),
		h.Tag("p", h.Class("faint"), h.Text("Attempts of "+span+", in steps of "+model.Brief(v.Step)+". A solid bar is an attempt, an outlined one a failure.")),
		table("Controllers", []string{"Controller", "#Objects", "#Need you", "#Retried", "#Waiting", "#Attempts", "#Failures", "Attempts over time", "#Median", "#Slowest", "Slowest over time"}, rows...),
		h.If(more > 0, h.Tag("p", h.Class("faint"), h.Textf("%d more controllers are left out.", more))))
}

func kindOf(controller string) h.Part {
	return h.If(strings.HasPrefix(controller, "/"), h.Tag("span", h.Class("faint"), h.Text(" webhook")))
}

// Plots have one unit per step, and stand on the height.
const plotHeight = 24

// plot is a picture with its words.
func plot(words string, parts ...h.Part) h.Node {
	size := strconv.Itoa(model.Steps * 3)
	return h.Tag("svg", append([]h.Part{h.Class("plot"), h.Attr("role", "img"), h.Attr("aria-label", words),
		h.Attr("viewBox", "0 0 "+size+" "+strconv.Itoa(plotHeight)), h.Attr("width", size), h.Attr("height", strconv.Itoa(plotHeight)), h.Attr("preserveAspectRatio", "none"),
		h.Tag("title", h.Text(words)), h.Tag("path", h.Class("axis"), h.Attr("d", fmt.Sprintf("M0 %dH%s", plotHeight, size)))}, parts...)...)
}

// bars are counts, with a part of each set apart.
func bars(all, part []float64, words string) h.Node {
	most := slices.Max(all)
	return plot(words, h.Tag("path", h.Class("bar"), h.Attr("d", steps(all, most))), h.Tag("path", h.Class("bar-failed"), h.Attr("d", steps(part, most))))
}

// steps are bars of values, each two wide with one between them.
func steps(values []float64, most float64) string {
	var b strings.Builder
	for i, value := range values {
		if value <= 0 {
			continue
		}
		height := max(value/cmp.Or(most, 1)*plotHeight, 1.5)
		fmt.Fprintf(&b, "M%d %dv-%.1fh2v%.1fz", i*3, plotHeight, height, height)
	}
	return b.String()
}

// line is a course of values.
func line(values []float64, words string) h.Node {
	most := slices.Max(values)
	var b strings.Builder
	pen := "M"
	for i, value := range values {
		if value <= 0 {
			pen = "M" // nothing was measured
			continue
		}
		fmt.Fprintf(&b, "%s%d %.1fh2", pen, i*3, plotHeight-1-value/cmp.Or(most, 1)*(plotHeight-2))
		pen = "L"
	}
	return plot(words, h.Tag("path", h.Class("line"), h.Attr("d", b.String())))
}
