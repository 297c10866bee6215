// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client/readiness"
	"github.com/steer-dev/steer/steertest/versions"
	"github.com/steer-dev/steer/trace"
)

// mostNodes bounds a tree.
const mostNodes = 2000

// Node is an object in a tree of owners.
type Node struct {
	Object string `json:"object"`
	// Ref is the object for programs.
	Ref trace.Object `json:"-"`
	// Created is when it was; zero if that is not known.
	Created time.Time `json:"-"`
	// Ready is the status of the condition that tells, True, False or Unknown; empty if the
	// object has none. Type, Reason and Message are those of the condition.
	Ready   string `json:"ready,omitempty"`
	Type    string `json:"type,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Why says why the object is not ready by its whole status, such as "0 of 1 ready", or
	// CrashLoopBackOff for a Pod; empty if it is ready, or does not say.
	Why string `json:"why,omitempty"`
	// Last is how the last reconcile of the object ended, by its record.
	Last     string  `json:"last,omitempty"`
	Children []*Node `json:"children,omitempty"`

	blocks int // depth of the deepest node from here that is not ready; -1: none
}

// Tree is that of an object.
type Tree struct {
	// Owners lead from the object to what owns it, the nearest first.
	Owners []*Node `json:"owners,omitempty"`
	Root   *Node   `json:"root"`
	// Blocking is the deepest object that is not ready; nil if all are, as far as they say.
	Blocking *Node `json:"blocking,omitempty"`
	// Missing says what could not be looked at.
	Missing []string `json:"missing,omitempty"`
}

// Blocked reports whether the object, or one below it, is not ready.
func (n *Node) Blocked() bool { return n.blocks >= 0 }

// NotReady reports whether the object itself is not.
func (n *Node) NotReady() bool { return n.Type != "" && n.Ready != "True" || n.Why != "" }

// NewTree returns the tree of an object among others. Those that keep it from being ready
// come first.
func (f *Facts) NewTree(root versions.Object, all []versions.Object) *Tree {
	children, byUID := map[string][]versions.Object{}, map[string]versions.Object{}
	for _, o := range all {
		byUID[uidOf(o.Content)] = o
		for _, owner := range owners(o.Content) {
			children[owner] = append(children[owner], o)
		}
	}
	t := &Tree{}
	left := mostNodes
	t.Root = node(root, children, map[string]bool{}, &left)
	if left <= 0 {
		t.Missing = append(t.Missing, fmt.Sprintf("more than %d objects: ask for the tree of one of them", mostNodes))
	}
	at, seen := root, map[string]bool{}
	for {
		up := owners(at.Content)
		i := slices.IndexFunc(up, func(uid string) bool { return byUID[uid].Content != nil && !seen[uid] })
		if i < 0 {
			break
		}
		seen[up[i]] = true
		at = byUID[up[i]]
		t.Owners = append(t.Owners, NodeOf(at))
	}
	f.reconciled(append(slices.Clone(t.Owners), t.Root))
	for n, depth := t.Root, t.Root.blocks; depth >= 0; depth-- {
		if t.Blocking = n; depth > 0 {
			n = n.Children[0] // those that block deepest are first
		}
	}
	return t
}

// node returns an object with what it owns.
func node(o versions.Object, children map[string][]versions.Object, seen map[string]bool, left *int) *Node {
	n := NodeOf(o)
	uid := uidOf(o.Content)
	if seen[uid] {
		return n
	}
	seen[uid] = true
	for _, child := range children[uid] {
		if *left--; *left <= 0 {
			break
		}
		n.Children = append(n.Children, node(child, children, seen, left))
	}
	slices.SortStableFunc(n.Children, func(a, b *Node) int {
		return cmp.Or(cmp.Compare(b.blocks, a.blocks), cmp.Compare(a.Object, b.Object))
	})
	if len(n.Children) > 0 && n.Children[0].blocks >= 0 {
		n.blocks = n.Children[0].blocks + 1
	}
	return n
}

// NodeOf returns an object without what it owns, and without its last reconcile.
func NodeOf(o versions.Object) *Node {
	n := &Node{Object: o.Object.String(), Ref: o.Object, blocks: -1}
	metadata, _ := o.Content["metadata"].(map[string]any)
	created, _ := metadata["creationTimestamp"].(string)
	n.Created, _ = time.Parse(time.RFC3339, created) // without one it is zero
	status, _ := o.Content["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, want := range []string{"Ready", "Available", "Complete", "PodScheduled"} {
		for _, c := range conditions {
			c, ok := c.(map[string]any)
			if want == "PodScheduled" && c["status"] == "True" {
				continue // it has yet to become ready
			}
			if ok && c["type"] == want && n.Type == "" {
				n.Type = want
				n.Ready, _ = c["status"].(string)
				n.Reason, _ = c["reason"].(string)
				n.Message, _ = c["message"].(string)
			}
		}
	}
	if why := readiness.Of(schema.GroupKind{Group: o.Object.Group, Kind: o.Object.Kind}, o.Content); why != "" || n.NotReady() {
		n.blocks, n.Why = 0, why
	}
	return n
}

// reconciled says of nodes, and of those below them, how the last reconcile ended.
func (f *Facts) reconciled(nodes []*Node) {
	var objects []trace.Object
	for i := 0; i < len(nodes); i++ {
		objects = append(objects, nodes[i].Ref)
		nodes = append(nodes, nodes[i].Children...)
	}
	if f.Ahead != nil {
		f.Ahead(objects)
	}
	for _, n := range nodes {
		var last *trace.Record
		for _, r := range f.Records(n.Ref) {
			if r.Object == n.Ref && (last == nil || r.Began.After(last.Began)) {
				last = &r
			}
		}
		if last == nil {
			continue
		}
		n.Last = last.ID.String() + " of " + last.Controller + ": " + last.Outcome.String()
		if last.Error != "" {
			n.Last += ": " + last.Error
		}
	}
}

func uidOf(object map[string]any) string {
	metadata, _ := object["metadata"].(map[string]any)
	uid, _ := metadata["uid"].(string)
	return uid
}

// owners are the uids of those of an object, the controlling one first.
func owners(object map[string]any) (uids []string) {
	metadata, _ := object["metadata"].(map[string]any)
	references, _ := metadata["ownerReferences"].([]any)
	for _, r := range references {
		r, _ := r.(map[string]any)
		uid, ok := r["uid"].(string)
		switch {
		case !ok || uid == "":
		case r["controller"] == true:
			uids = slices.Insert(uids, 0, uid)
		default:
			uids = append(uids, uid)
		}
	}
	return uids
}

// String is Text without what is wide.
func (t *Tree) String() string { return t.Text(false) }

// Text draws the tree. The message of what blocks is whole. Wide it has the message of each
// condition, and the last reconcile of each object.
func (t *Tree) Text(wide bool) string {
	var b strings.Builder
	if n := t.Blocking; n != nil {
		fmt.Fprintf(&b, "%s is not ready: %s\n", Plain(n.Object), cmp.Or(PlainWhole(n.reason()), "it does not say why"))
		if n.Last != "" {
			fmt.Fprintf(&b, "  last reconcile %s\n", PlainWhole(n.Last))
		}
		b.WriteByte('\n')
	}
	for _, owner := range slices.Backward(t.Owners) {
		fmt.Fprintf(&b, "owned by %s%s\n", Plain(owner.Object), owner.state(wide))
	}
	t.Root.draw(&b, "", "", wide)
	for _, missing := range t.Missing {
		fmt.Fprintf(&b, "not known: %s\n", Plain(missing))
	}
	return b.String()
}

// reason is why the object is not ready: with what its condition says, and what that does not.
func (n *Node) reason() string {
	said := strings.TrimPrefix(n.Reason+": "+n.Message, ": ")
	if said == ": " || strings.HasPrefix(n.Why, n.Reason) && n.Reason != "" {
		return cmp.Or(said, n.Why)
	}
	return strings.TrimSuffix(strings.TrimPrefix(n.Why+"; "+said, "; "), "; ")
}

func (n *Node) state(wide bool) string {
	state := ""
	switch {
	case n.Type != "":
		state = fmt.Sprintf("  %s=%s %s", Plain(n.Type), Plain(n.Ready), Plain(n.Reason))
	case n.Why != "":
		state = "  " + Plain(n.Why)
	}
	if wide && n.Message != "" {
		state += ": " + Plain(n.Message)
	}
	if wide && n.Last != "" {
		state += "  last reconcile " + Plain(n.Last)
	}
	return state
}

func (n *Node) draw(b *strings.Builder, first, rest string, wide bool) {
	fmt.Fprintf(b, "%s%s%s\n", first, Plain(n.Object), n.state(wide))
	for i, child := range n.Children {
		if i == len(n.Children)-1 {
			child.draw(b, rest+"└─ ", rest+"   ", wide)
		} else {
			child.draw(b, rest+"├─ ", rest+"│  ", wide)
		}
	}
}
