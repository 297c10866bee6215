// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bytes"
	"fmt"
	"slices"
	"text/template/parse"
)

// data is an object that templates write about.
type data interface {
	// member returns a string, a bool, verbs that are true, a list, another object
	// or a question, by name; nil if there is none of that name.
	member(name string) any
}

// question is answered by words that stand behind it.
type question func(words ...string) bool

// list makes the elements of a list data.
func list[T data](items []T) []data {
	out := make([]data, len(items))
	for i, item := range items {
		out[i] = item
	}
	return out
}

// filler fills templates in. It knows the part of the language that those of this
// package use.
//
// The text is parsed by Go's library, but not executed by it: that calls methods
// by name, and a program that does so, somewhere, keeps every exported method of
// every type it has, which made the command line 12 MB larger.
type filler struct {
	out   *bytes.Buffer
	trees map[string]*parse.Tree
	vars  map[string]any
}

// fill writes a template about an object; texts has those that it may use too.
func fill(out *bytes.Buffer, name string, texts map[string]string, about data) error {
	f := filler{out: out, trees: map[string]*parse.Tree{}}
	known := map[string]any{"eq": decide, "and": decide, "or": decide, "not": decide}
	for from, text := range texts {
		trees, err := parse.Parse(from, text, "", "", known)
		if err != nil {
			return err
		}
		for defined, tree := range trees {
			f.trees[defined] = tree
		}
	}
	return f.template(name, about)
}

func (f *filler) template(name string, dot any) error {
	tree := f.trees[name]
	if tree == nil {
		return fmt.Errorf("there is no template %q", name)
	}
	inner := filler{out: f.out, trees: f.trees, vars: map[string]any{"$": dot}}
	return inner.nodes(tree.Root, dot)
}

func (f *filler) nodes(l *parse.ListNode, dot any) error {
	if l == nil {
		return nil
	}
	for _, n := range l.Nodes {
		if err := f.node(n, dot); err != nil {
			return err
		}
	}
	return nil
}

func (f *filler) node(n parse.Node, dot any) error {
	switch n := n.(type) {
	case *parse.TextNode:
		f.out.Write(n.Text)
		return nil
	case *parse.ActionNode:
		return f.action(n, dot)
	case *parse.IfNode:
		is, err := f.pipe(n.Pipe, dot)
		if err != nil {
			return err
		}
		if truth(is) {
			return f.nodes(n.List, dot)
		}
		return f.nodes(n.ElseList, dot)
	case *parse.RangeNode:
		value, err := f.pipe(n.Pipe, dot)
		if err != nil {
			return err
		}
		items, ok := value.([]data)
		if !ok {
			return fmt.Errorf("%s: %s is no list", n.Pipe, n)
		}
		for _, item := range items {
			if err := f.nodes(n.List, item); err != nil {
				return err
			}
		}
		return nil
	case *parse.TemplateNode:
		about, err := f.pipe(n.Pipe, dot)
		if err != nil {
			return err
		}
		return f.template(n.Name, about)
	}
	return fmt.Errorf("templates of clients have no %s", n)
}

// action writes a value, or gives it a name.
func (f *filler) action(n *parse.ActionNode, dot any) error {
	value, err := f.pipe(n.Pipe, dot)
	if err != nil {
		return err
	}
	for _, name := range n.Pipe.Decl {
		f.vars[name.Ident[0]] = value
	}
	if len(n.Pipe.Decl) > 0 {
		return nil
	}
	text, ok := value.(string)
	if !ok {
		return fmt.Errorf("%s is no text but %T", n, value)
	}
	f.out.WriteString(text)
	return nil
}

// pipe works out one command; nothing is piped into another.
func (f *filler) pipe(p *parse.PipeNode, dot any) (any, error) {
	if len(p.Cmds) != 1 {
		return nil, fmt.Errorf("%s: templates of clients have no pipes", p)
	}
	values := make([]any, 0, len(p.Cmds[0].Args))
	for _, arg := range p.Cmds[0].Args[1:] {
		value, err := f.value(arg, dot)
		if err != nil {
			return nil, err
		}
		values = append(values, value)
	}
	first := p.Cmds[0].Args[0]
	if name, ok := first.(*parse.IdentifierNode); ok {
		return decide(name.Ident, values), nil
	}
	value, err := f.value(first, dot)
	if ask, ok := value.(question); ok {
		var words []string
		for _, v := range values {
			words = append(words, fmt.Sprint(v))
		}
		return ask(words...), err
	}
	return value, err
}

// decide calls one of the four functions.
func decide(function string, values []any) any {
	switch function {
	case "eq": // one of them
		return slices.Contains(values[1:], values[0])
	case "not":
		return !truth(values[0])
	}
	// The first value that decides, or the last one.
	for _, v := range values[:len(values)-1] {
		if truth(v) == (function == "or") {
			return v
		}
	}
	return values[len(values)-1]
}

func (f *filler) value(n parse.Node, dot any) (any, error) {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.StringNode:
		return n.Text, nil
	case *parse.PipeNode:
		return f.pipe(n, dot)
	case *parse.FieldNode:
		return walk(dot, n.Ident)
	case *parse.VariableNode:
		return walk(f.vars[n.Ident[0]], n.Ident[1:])
	}
	return nil, fmt.Errorf("templates of clients have no %s", n)
}

// walk goes from an object to what is named.
func walk(from any, names []string) (any, error) {
	for _, name := range names {
		var next any
		switch from := from.(type) {
		case map[string]bool:
			next = from[name]
		case data:
			next = from.member(name)
		}
		if next == nil {
			return nil, fmt.Errorf("%T has no %s", from, name)
		}
		from = next
	}
	return from, nil
}

// truth reports whether there is something.
func truth(value any) bool {
	switch v := value.(type) {
	case bool:
		return v
	case string:
		return v != ""
	case map[string]bool:
		return len(v) > 0
	case []data:
		return len(v) > 0
	}
	return value != nil
}
