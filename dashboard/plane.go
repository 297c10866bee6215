// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	h "github.com/steer-dev/steer/dashboard/internal/markup"
)

const (
	// mostVersions is how many versions of a history are shown, the newest.
	mostVersions = 100
	// mostNodes is how many objects of a tree are drawn.
	mostNodes = 200
	// mostFields is how many fields of a version are shown.
	mostFields = 20
)

// historyView is a table of versions, the newest first.
func historyView(v *History) h.Nodes {
	if len(v.Versions) == 0 {
		return empty("No version is known", v.End)
	}
	var rows []h.Part
	shown := newest(v)
	for i := range shown {
		version := &shown[len(shown)-1-i]
		var fields h.Nodes
		for j := range version.Fields[:min(len(version.Fields), mostFields)] {
			f := &version.Fields[j]
			inner := []h.Part{h.Tag("code", h.Class("field"), h.Text(brief(f.Path)))}
			if f.Old != "" || f.New != "" {
				inner = append(inner, h.Tag("del", h.Foreign(brief(cmp.Or(f.Old, "none")))), h.Text(" "), h.Tag("ins", h.Foreign(brief(cmp.Or(f.New, "none")))))
			}
			fields = append(fields, h.Tag("div", inner...))
		}
		if more := len(version.Fields) - mostFields; more > 0 {
			fields = append(fields, h.Tag("div", h.Class("faint"), h.Textf("and %d more", more)))
		}
		for _, missing := range version.Missing {
			fields = append(fields, h.Tag("div", h.Class("faint"), h.Text("not known: "), h.Foreign(missing)))
		}
		by := h.Nodes{h.Foreign(version.Manager)}
		if !version.Reconcile.IsZero() {
			by = append(by, h.Tag("div", attemptLink(version.Reconcile, h.Textf("attempt #%d", version.Reconcile.Number))))
		}
		rows = append(rows, h.Tag("tr", h.Attr("data-key", version.Revision), h.Tag("th", h.Attr("scope", "row"), h.Text(version.Revision)),
			cell(clock(version.Time, second)), cell(h.Text(cmp.Or(version.Change, "written"))), cell(by), cell(h.Foreign(version.User)), cell(fields)))
	}
	return h.Nodes{
		table("Versions, the newest first", []string{"Revision", "Time", "Change", "Written by", "User", "Fields"}, rows...),
		h.Tag("p", h.Class("faint"), h.Foreign(leftOut(v)+v.End))}
}

func newest(v *History) []Version { return v.Versions[max(len(v.Versions)-mostVersions, 0):] }

func leftOut(v *History) string {
	if more := len(v.Versions) - mostVersions; more > 0 {
		return fmt.Sprintf("%d older versions are left out; ", more)
	}
	return ""
}

// conditionsView is each condition over the versions, the newest last.
func conditionsView(v *History) h.Nodes {
	type change struct {
		Condition
		at time.Time
		in string
	}
	var order []string
	courses := map[string][]change{}
	for _, version := range newest(v) {
		for _, c := range version.Conditions {
			course := courses[c.Type]
			if course == nil {
				order = append(order, c.Type)
			}
			if n := len(course); n == 0 || course[n-1].Condition != c {
				courses[c.Type] = append(course, change{c, version.Time, version.Revision})
			}
		}
	}
	if len(order) == 0 {
		return empty("It has no conditions", "None of the versions that are known has status.conditions. "+v.End)
	}
	var out h.Nodes
	for _, name := range order {
		var items h.Nodes
		for _, c := range courses[name] {
			items = append(items, h.Tag("li", h.Attr("data-status", c.Status), h.Tag("strong", h.Foreign(brief(c.Status))), h.Text(" "), h.Foreign(brief(c.Reason)),
				h.Tag("span", h.Class("faint"), h.Text(" since "), clock(c.at, second), h.Text(", revision "+c.in)),
				h.If(c.Message != "", h.Tag("div", h.Foreign(c.Message)))))
		}
		out = append(out, h.Tag("section", h.Tag("h2", h.Foreign(brief(name))), h.Tag("ol", h.Class("course"), items)))
	}
	return append(out, h.Tag("p", h.Class("faint"), h.Foreign(v.End)))
}

// treeView draws the objects, the blocked first, and counts those that are left out.
func treeView(t *Tree) h.Nodes {
	var out h.Nodes
	for i := range t.Owners {
		owner := &t.Owners[len(t.Owners)-1-i]
		out = append(out, h.Tag("p", h.Class("owner"), h.Text("Owned by "), nodeLine(owner)))
	}
	left, omitted := mostNodes, 0
	out = append(out, h.Tag("ul", h.Class("tree"), branch(&t.Root, &left, &omitted)))
	if omitted > 0 {
		out = append(out, notice(plural(omitted, "object is", "objects are")+" left out: those that are not ready, and what leads to them, come first."))
	}
	for _, missing := range t.Missing {
		out = append(out, notice("Not known: "+missing))
	}
	return out
}

func branch(n *Node, left, omitted *int) h.Node {
	*left--
	parts := []h.Part{nodeLine(n)}
	var children h.Nodes
	for _, blocked := range []bool{true, false} {
		for i := range n.Children {
			child := &n.Children[i]
			switch {
			case child.Blocked != blocked:
			case *left > 0:
				children = append(children, branch(child, left, omitted))
			default:
				*omitted += child.size()
			}
		}
	}
	if len(children) > 0 {
		parts = append(parts, h.Tag("ul", children))
	}
	return h.Tag("li", parts...)
}

func (n *Node) size() int {
	size := 1
	for i := range n.Children {
		size += n.Children[i].size()
	}
	return size
}

func nodeLine(n *Node) h.Node {
	parts := []h.Part{objectLink(n.Object)}
	if n.NotReady {
		parts = append(parts, h.Text(" "), h.Tag("span", h.Class("mark-state", "retried"), h.Text("↻ not ready")))
	}
	state, message := n.State, n.NotReady && n.Message != ""
	if message {
		state, _, _ = strings.Cut(state, "; ") // the message stands below
	}
	if state != "" {
		parts = append(parts, h.Tag("span", h.Class("faint"), h.Text(" "), h.Foreign(brief(state))))
	}
	if message {
		parts = append(parts, h.Tag("div", h.Class("error", "short"), h.Foreign(n.Message)))
	}
	return h.Tag("span", append([]h.Part{h.Class("node")}, parts...)...)
}
