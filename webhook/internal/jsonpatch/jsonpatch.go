// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsonpatch makes the JSON patch (RFC 6902) of a mutating webhook: of the
// object as it was received, and of its Go type before and after the change.
package jsonpatch

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Operation is one operation of a JSON patch. Value is left out for "remove".
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitzero"`
}

// kept is a value as part of an operation: without it a null would be left out.
func kept(value any) any {
	if value == nil {
		return json.RawMessage("null")
	}
	return value
}

// Diff returns the operations that turn one JSON value into another. The values are
// those of encoding/json: maps, slices, strings, numbers, booleans and nil. Lists are
// compared from both ends; what differs between is replaced item by item.
func Diff(from, to any) []Operation {
	d := differ{}
	d.value("", from, to)
	return d.ops
}

type differ struct{ ops []Operation }

func (d *differ) add(op, path string, value any) {
	d.ops = append(d.ops, Operation{op, path, value})
}

func (d *differ) value(path string, from, to any) {
	switch from := from.(type) {
	case map[string]any:
		if to, ok := to.(map[string]any); ok {
			d.object(path, from, to)
			return
		}
	case []any:
		if to, ok := to.([]any); ok {
			d.list(path, from, to)
			return
		}
	}
	if !equal(from, to) {
		d.add("replace", path, kept(to))
	}
}

func (d *differ) object(path string, from, to map[string]any) {
	for _, name := range names(from, to) {
		at := path + "/" + escape(name)
		was, had := from[name]
		is, has := to[name]
		switch {
		case !has:
			d.add("remove", at, nil)
		case !had:
			d.add("add", at, kept(is))
		default:
			d.value(at, was, is)
		}
	}
}

func (d *differ) list(path string, from, to []any) {
	head := 0
	for head < len(from) && head < len(to) && equal(from[head], to[head]) {
		head++
	}
	tail := 0
	for tail < len(from)-head && tail < len(to)-head && equal(from[len(from)-1-tail], to[len(to)-1-tail]) {
		tail++
	}
	olds, news := from[head:len(from)-tail], to[head:len(to)-tail]
	both := min(len(olds), len(news))
	index := func(i int) string { return path + "/" + strconv.Itoa(head+i) }
	for i := range both {
		d.value(index(i), olds[i], news[i])
	}
	for i := len(olds) - 1; i >= both; i-- {
		d.add("remove", index(i), nil)
	}
	for i := both; i < len(news); i++ {
		d.add("add", index(i), kept(news[i]))
	}
}

// Rebase makes the change between before and after in received, and returns the
// result; the arguments stay as they are. before is what a Go type keeps of received:
// what the type does not know stays as it was received, and so does the form of what
// did not change, such as a zero value that the type leaves out. An item of a list
// that has changed keeps what the type does not know if it is at its former place in a
// list of the same length, or has the name of a former item.
func Rebase(received, before, after any) any {
	if equal(before, after) {
		return received
	}
	switch after := after.(type) {
	case map[string]any:
		b, wasObject := before.(map[string]any)
		r, isObject := received.(map[string]any)
		if wasObject && (isObject || received == nil) {
			return rebaseObject(r, b, after)
		}
	case []any:
		b, wasList := before.([]any)
		r, isList := received.([]any)
		if wasList && isList && len(b) == len(r) {
			return rebaseList(r, b, after)
		}
	}
	return after
}

func rebaseObject(received, before, after map[string]any) map[string]any {
	out := make(map[string]any, len(received)+1)
	for name, value := range received {
		if _, goes := before[name]; goes {
			if _, stays := after[name]; !stays {
				continue
			}
		}
		out[name] = value
	}
	for name, value := range after {
		was, had := before[name]
		if had && equal(was, value) {
			continue // whatever its form in received, it is the same
		}
		out[name] = Rebase(received[name], was, value)
	}
	return out
}

func rebaseList(received, before, after []any) []any {
	same, named := places{}, places{} // of the items of before
	for i, item := range before {
		same.add(text(item), i)
		if name, ok := nameOf(item); ok {
			named.add(name, i)
		}
	}
	used := make([]bool, len(before))
	former := make([]int, len(after)) // the place of the same item before; -1 where there was none
	for i, item := range after {
		former[i] = same.take(text(item), used)
	}
	out := make([]any, len(after))
	for i, item := range after {
		j := former[i]
		if j < 0 {
			if name, ok := nameOf(item); ok {
				j = named.take(name, used)
			} else if len(after) == len(before) && !used[i] {
				j, used[i] = i, true
			}
		}
		if j < 0 {
			out[i] = item
			continue
		}
		out[i] = Rebase(received[j], before[j], item)
	}
	return out
}

// places are the places of items in a list, by what is equal in them.
type places map[string][]int

func (p places) add(key string, i int) { p[key] = append(p[key], i) }

// take returns the first place that is not used, and uses it; -1 where there is none.
func (p places) take(key string, used []bool) int {
	for len(p[key]) > 0 {
		i := p[key][0]
		p[key] = p[key][1:]
		if !used[i] {
			used[i] = true
			return i
		}
	}
	return -1
}

// text is the same for equal values: the keys of objects are sorted.
func text(value any) string {
	out, err := json.Marshal(value)
	if err != nil {
		return "" // no JSON value: there is none such
	}
	return string(out)
}

func nameOf(item any) (string, bool) {
	object, ok := item.(map[string]any)
	if !ok {
		return "", false
	}
	name, ok := object["name"].(string)
	return name, ok
}

// Fields returns the paths of the fields that operations change, in the form of
// trace.Cause.Changed, at most the given number of them.
func Fields(ops []Operation, most int) string {
	var paths []string
	for _, op := range ops {
		path := strings.ReplaceAll(strings.TrimPrefix(op.Path, "/"), "/", ".")
		path = strings.ReplaceAll(strings.ReplaceAll(path, "~1", "/"), "~0", "~")
		if len(paths) == most {
			paths = append(paths, "...")
			break
		}
		paths = append(paths, path)
	}
	return strings.Join(paths, ",")
}

func names(a, b map[string]any) []string {
	out := make([]string, 0, len(a))
	for name := range a {
		out = append(out, name)
	}
	for name := range b {
		if _, both := a[name]; !both {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

func escape(name string) string {
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

func equal(a, b any) bool { return reflect.DeepEqual(a, b) }
