// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"context"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"

	h "github.com/steer-dev/steer/dashboard/internal/markup"
	"github.com/steer-dev/steer/dashboard/internal/model"
	"github.com/steer-dev/steer/trace"
)

// none is the source of a page without an operator.
type none struct{}

func (none) New() iter.Seq[trace.Record] { return func(func(trace.Record) bool) {} }
func (none) Now() Now                    { return Now{} }

// mostNotReady is how many objects that are not ready are on the first view.
const mostNotReady = 30

// noOperator says what the page lacks, and what to do.
func noOperator() h.Nodes {
	return h.Nodes{h.Tag("div", h.Class("empty"), h.Tag("p", h.Class("lead"), h.Text("No operator runs here")),
		h.Tag("p", h.Text("This is the page of a control plane alone: it has objects, their conditions, history and owners. An operator adds what it does to them, on a page of its own: start one with "),
			h.Tag("code", h.Text("steer dev")), h.Text(" in its project, or open that of a running one with "), h.Tag("code", h.Text("steer page deploy/NAME")), h.Text(".")))}
}

// alone is a view of a control plane without an operator, nil for one that needs none. What
// asks the control plane is returned as a function.
func (p *Page) alone(ctx context.Context, path string, query url.Values) (out h.Nodes, ask func() h.Nodes) {
	list := func(show func(*List) h.Nodes) func() h.Nodes {
		return func() h.Nodes {
			ctx, cancel := context.WithTimeout(ctx, askFor)
			defer cancel()
			found, err := p.o.Objects.List(ctx)
			if err != nil {
				return broken(err)
			}
			out := show(&found)
			for _, missing := range found.Missing {
				out = append(out, notice("Not known: "+missing))
			}
			return out
		}
	}
	switch path {
	case "/":
		return noOperator(), list(notReady)
	case "/objects":
		return nil, list(func(l *List) h.Nodes { return listed(l, query) })
	}
	return noOperator(), nil
}

// notReady are the objects that are not, on the first view.
func notReady(l *List) h.Nodes {
	n := 0
	for n < len(l.Nodes) && l.Nodes[n].NotReady {
		n++
	}
	rows := nodeRows(l.Nodes[:min(n, mostNotReady)])
	if len(rows) == 0 {
		return h.Nodes{part("Not ready", nil, "All of its "+plural(len(l.Nodes), "object is", "objects are")+" ready, or do not say.")}
	}
	return h.Nodes{h.Tag("section", h.Attr("aria-labelledby", "not-ready"),
		h.Tag("h2", h.Attr("id", "not-ready"), h.Text("Not ready"), h.Tag("span", h.Class("faint"), h.Textf(" %d of %s", n, plural(len(l.Nodes), "object", "objects")))),
		nodeTable("Objects that are not ready", rows),
		h.If(n > len(rows), h.Tag("p", h.Tag("a", h.Attr("href", "/objects"), h.Textf("And %d more", n-len(rows))))))}
}

// listed is the list of all objects, which can be searched.
func listed(l *List, query url.Values) h.Nodes {
	find := query.Get("find")
	nodes := l.Nodes
	if find != "" {
		nodes = slices.DeleteFunc(slices.Clone(nodes), func(n Node) bool {
			return !strings.Contains(strings.ToLower(n.Object.String()+" "+n.Object.Group), strings.ToLower(find))
		})
	}
	from, _ := strconv.Atoi(query.Get("from")) // what is no number is the begin
	from = min(max(from, 0), len(nodes))
	form := findForm(find, "kind, name or group")
	if len(nodes) == 0 {
		if find != "" {
			return append(h.Nodes{form}, empty("No object has this text in its name", "Kinds, names and groups are searched: a part of one is enough.")...)
		}
		return append(h.Nodes{form}, empty("There are no objects", "None that may be listed.")...)
	}
	rows := nodeRows(nodes[from:min(from+pageOfObjects, len(nodes))])
	return h.Nodes{form, nodeTable("Objects, those that are not ready first, then the newest", rows), pages(find, from, len(rows), len(nodes))}
}

func nodeTable(caption string, rows []h.Part) h.Node {
	return table(caption, []string{"State", "Object", "Says", "Created"}, rows...)
}

func nodeRows(nodes []Node) (rows []h.Part) {
	for i := range nodes {
		n := &nodes[i]
		state, to := h.Tag("span", h.Class("mark-state", "plain"), h.Text("– does not say")), objectURL(model.Subject{Object: n.Object})
		switch {
		case n.NotReady:
			state = h.Tag("span", h.Class("mark-state", "retried"), h.Text("↻ not ready"))
			to.Set("view", "tree")
		case n.State != "":
			state = h.Tag("span", h.Class("mark-state", "fine"), h.Text("✓ ready"))
		}
		says := h.Nodes{h.Foreign(brief(n.State))}
		if n.NotReady && n.Message != "" {
			says = append(says, h.Tag("div", h.Class("error", "short"), h.Foreign(brief(n.Message))))
		}
		rows = append(rows, h.Tag("tr", h.Attr("data-key", brief(n.Object.Group+" "+n.Object.String())), cell(state),
			h.Tag("th", h.Attr("scope", "row"), link("/object", to, h.Attr("data-object", brief(n.Object.String())), objectName(model.Subject{Object: n.Object}))),
			cell(says), cell(clock(n.Created, "2006-01-02 15:04:05"))))
	}
	return rows
}
