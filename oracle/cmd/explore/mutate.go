// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// mutator changes objects.
type mutator struct {
	random *rand.Rand
	pool   map[string][]any
	shapes *shapes
}

// place is somewhere in an object.
type place struct {
	path   string
	name   string
	holder any // map[string]any or []any
	key    string
	index  int
	shape  shape
	set    func(any)
}

// change returns a creation of the seed's object with one to three changes or, where it
// exists, an update of it or of its status.
func (m *mutator) change(from seed) *request {
	body := clone(from.body).(map[string]any)
	r := &request{method: "POST", target: from.creation(), body: body}
	if path := from.target + "/" + from.name(); from.exists {
		status, has := m.shapes.of(from.gvk).Properties["status"]
		switch choice := m.random.IntN(4); {
		case choice == 0 && has:
			r.method, r.target = "PUT", path+"/status?"+dryRun
			body["status"] = m.shapes.make(m.random, status, "status", m.pool, 4)
			r.how = append(r.how, "status")
		case choice < 3:
			r.method, r.target = "PUT", path+"?"+dryRun
		}
	}
	times := 1
	for times < 3 && m.random.IntN(4) == 0 {
		times++
	}
	for range times {
		places := m.places(from, body)
		r.how = append(r.how, m.once(places[m.random.IntN(len(places))]))
	}
	return r
}

// places lists every value of the object that may change.
func (m *mutator) places(from seed, body map[string]any) []place {
	found := []place{{path: "", holder: nil, shape: m.shapes.of(from.gvk), set: func(any) {}, key: "", name: ""}}
	var walk func(path, name string, value any, x shape)
	walk = func(path, name string, value any, x shape) {
		switch value := value.(type) {
		case map[string]any:
			for _, key := range slices.Sorted(maps.Keys(value)) {
				if slices.Contains(pathless, key) || path == ".metadata" && (key == "namespace" || key == "name") {
					continue
				}
				inner := m.shapes.field(x, key)
				found = append(found, place{path: path + "." + key, name: key, holder: value, key: key, shape: inner, set: func(v any) { value[key] = v }})
				walk(path+"."+key, key, value[key], inner)
			}
		case []any:
			inner := shape{}
			if x.Items != nil {
				inner = m.shapes.resolve(*x.Items)
			}
			for i := range value {
				at := fmt.Sprintf("%s[%d]", path, i)
				found = append(found, place{path: at, name: name, holder: value, index: i, shape: inner, set: func(v any) { value[i] = v }})
				walk(at, name, value[i], inner)
			}
		}
	}
	walk("", "", body, m.shapes.of(from.gvk))
	found[0].holder = body
	return found
}

// once makes one change at a place and says which.
func (m *mutator) once(at place) string {
	value := at.value()
	if object, ok := value.(map[string]any); ok && m.random.IntN(4) > 0 {
		return m.add(at, object)
	}
	if at.path == "" {
		return "nothing"
	}
	switch m.random.IntN(8) {
	case 0:
		if object, ok := at.holder.(map[string]any); ok {
			delete(object, at.key)
			return "without " + at.path
		}
		at.set(nil)
		return "null " + at.path
	case 1:
		at.set(nil)
		return "null " + at.path
	case 2:
		if list, ok := value.([]any); ok {
			if len(list) > 0 {
				list = append(slices.Clone(list), clone(list[m.random.IntN(len(list))]))
			}
			at.set(list)
			return "twice in " + at.path
		}
	case 3:
		switch value.(type) {
		case map[string]any:
			at.set(map[string]any{})
		case []any:
			at.set([]any{})
		default:
			at.set("")
		}
		return "empty " + at.path
	case 4:
		if list, ok := value.([]any); ok && at.shape.Items != nil {
			at.set(append(slices.Clone(list), m.shapes.make(m.random, *at.shape.Items, at.name, m.pool, 3)))
			return "one more in " + at.path
		}
	}
	made := m.shapes.make(m.random, at.shape, at.name, m.pool, 3)
	at.set(made)
	return fmt.Sprintf("%s = %v", at.path, made)
}

// add sets a field that the object does not have, or has otherwise.
func (m *mutator) add(at place, object map[string]any) string {
	names := at.shape.names
	names = slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.Contains(pathless, n) || n == "status" && at.path == "" || at.path == ".metadata" && (n == "name" || n == "namespace")
	})
	if len(names) == 0 {
		key := words[m.random.IntN(len(words))]
		var made any = words[m.random.IntN(len(words))]
		if at.shape.Values != nil {
			made = m.shapes.make(m.random, *at.shape.Values, "", m.pool, 2)
		}
		object[key] = made
		return fmt.Sprintf("%s[%s] = %v", at.path, key, made)
	}
	key := names[m.random.IntN(len(names))]
	made := m.shapes.make(m.random, at.shape.Properties[key], key, m.pool, 3)
	object[key] = made
	return strings.TrimSpace(fmt.Sprintf("%s.%s = %v", at.path, key, made))
}

func (p place) value() any {
	switch holder := p.holder.(type) {
	case map[string]any:
		if p.path == "" {
			return holder
		}
		return holder[p.key]
	case []any:
		return holder[p.index]
	}
	return nil
}
