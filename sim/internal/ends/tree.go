// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// value is a part of an object: a text, a record, a list, a version, an embedded value, or
// a number, a bool or nil.
type value any

type (
	record []entry
	entry  struct {
		key   text
		value value
	}
	list struct {
		elements []value
		// sorted lists have no order of their own.
		sorted bool
	}
	// version is a resourceVersion, or may be one.
	version struct {
		raw string
		of  *node // whose present version it is, or nil
		// sure says that its field holds resourceVersions and nothing else.
		sure bool
	}
	embedded struct{ value value }
)

// edge is a reference from one live object to another.
type edge struct {
	code uint64 // of the path, and of what stands there for the object
	to   *node
}

// parser reads one object.
type parser struct {
	*scanner
	node   *node
	others map[string]int
}

func (n *node) parse(c *scanner) {
	p := &parser{c, n, map[string]int{}}
	var out record
	content := n.Object.Object
	for _, key := range sortedKeys(content) {
		switch key {
		case "apiVersion", "kind":
			continue
		case "metadata":
			out = append(out, entry{text{{literal: key}}, p.metadata(content[key])})
		default:
			if !n.counter(key, key) {
				out = append(out, entry{text{{literal: key}}, p.value(content[key], key, key)})
			}
		}
	}
	n.tree = out
}

// metadata reads what two runs may share: names are compared by pairing, the rest is the
// server's.
func (p *parser) metadata(v any) value {
	meta, ok := v.(map[string]any)
	if !ok {
		return p.value(v, "metadata", "metadata")
	}
	var out record
	for _, key := range sortedKeys(meta) {
		switch key {
		case "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "namespace":
			continue
		case "name":
			out = append(out, entry{text{{literal: key}}, p.node.name})
			p.refer(key, p.node.name)
			continue
		}
		out = append(out, entry{text{{literal: key}}, p.value(meta[key], "metadata."+key, key)})
	}
	return out
}

// value reads what is at a path, under a key of the record around it.
func (p *parser) value(v any, path, key string) value {
	switch v := v.(type) {
	case map[string]any:
		out := make(record, 0, len(v))
		for _, k := range sortedKeys(v) {
			if p.node.counter(path+"."+k, k) {
				continue
			}
			below := p.in(k, p.others)
			p.refer(path, below)
			out = append(out, entry{below, p.value(v[k], path+"."+k, k)})
		}
		return out
	case []any:
		out := list{sorted: p.unordered(path, key)}
		for _, element := range v {
			out.elements = append(out.elements, p.value(element, path, key))
		}
		if len(v) > 1 && !slices.ContainsFunc(out.elements, func(e value) bool { return !generated(e) }) {
			out.sorted = true // its order is that of generated names
		}
		return out
	case string:
		return p.string(v, path, key)
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return p.number(int64(v), path, key)
		}
		return v
	case int64:
		return p.number(v, path, key)
	}
	return v
}

func (p *parser) unordered(path, key string) bool {
	switch path {
	case "metadata.finalizers", "metadata.ownerReferences":
		return true
	}
	return key == "conditions" || p.node.kind == "EndpointSlice.discovery.k8s.io" && key == "endpoints" ||
		p.node.kind == "Endpoints" && (key == "subsets" || key == "addresses" || key == "notReadyAddresses")
}

// generated reports whether a value refers to an object by a generated name.
func generated(v value) bool {
	switch v := v.(type) {
	case text:
		return slices.ContainsFunc(v, func(p part) bool { return p.ref != nil && p.as != byUID })
	case record:
		return slices.ContainsFunc(v, func(e entry) bool { return generated(e.value) })
	}
	return false
}

func (p *parser) number(v int64, path, key string) value {
	generation := p.node.Object.GetGeneration()
	switch {
	case key == "observedGeneration" && generation > 0:
		if behind := generation - v; behind != 0 {
			return fmt.Sprintf("(%d behind)", behind)
		}
		return "(current)"
	case p.node.kind == "Service" && (key == "nodePort" || key == "healthCheckNodePort") && strings.HasPrefix(path, "spec."):
		return "(allocated)"
	case unixTime(v):
		return aTime
	}
	return v
}

// appliedAnnotation is what controller.Children notes on a child: the set that it belongs to, and
// hashes of what was applied, which are of the owner's uid as well.
const appliedAnnotation = "steer.dev/applied"

func (p *parser) string(s, path, key string) value {
	if path == "metadata.annotations."+appliedAnnotation {
		s, _, _ = strings.Cut(s, "/")
	}
	annotation := strings.Contains(path, "annotations.")
	if p.node.kind == "Pod" && key == "containerID" && s != "" && strings.HasPrefix(path, "status.") {
		return "(container)"
	}
	if s != "" && strings.Trim(s, "0123456789") == "" {
		if n, err := strconv.ParseInt(s, 10, 64); err == nil && unixTime(n) {
			return text{{literal: aTime}}
		}
		if sure := holdsVersions(key); sure || annotation {
			return version{s, p.revisions[s], sure}
		}
	}
	if p.node.secret() && strings.HasPrefix(path, "data.") {
		if decoded, err := base64.StdEncoding.DecodeString(s); err == nil && utf8.Valid(decoded) {
			s = string(decoded)
		}
	}
	if annotation && (strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")) {
		var v any
		if json.Unmarshal([]byte(s), &v) == nil {
			return embedded{p.value(v, path, key)}
		}
	}
	t := p.in(s, p.others)
	p.refer(path, t)
	return t
}

// holdsVersions reports whether a field is named as one of resourceVersions.
func holdsVersions(key string) bool {
	bare := strings.ReplaceAll(strings.ReplaceAll(strings.ToLower(key), "-", ""), "_", "")
	return strings.HasSuffix(bare, "resourceversion")
}

func (p *parser) refer(path string, t text) {
	for _, part := range t {
		if part.ref != nil && part.ref != p.node && part.ref.Deleted == 0 {
			p.node.edges = append(p.node.edges, edge{digest(path) + uint64(part.as), part.ref})
		}
	}
}

// render returns a value as plain maps, lists and strings; a version stays one.
func render(v value, of label) any {
	switch v := v.(type) {
	case text:
		return v.render(of)
	case record:
		return v.render(of)
	case list:
		out := make([]any, len(v.elements))
		for i, e := range v.elements {
			out[i] = render(e, of)
		}
		if v.sorted {
			slices.SortStableFunc(out, func(a, b any) int { return strings.Compare(encode(a), encode(b)) })
		}
		return out
	case embedded:
		return render(v.value, of)
	}
	return v
}

// render returns a record as a map. Keys that have become the same have all their values.
func (r record) render(of label) map[string]any {
	out := make(map[string]any, len(r))
	var more map[string][]any
	for _, e := range r {
		key, v := e.key.render(of), render(e.value, of)
		if first, ok := out[key]; ok {
			if more == nil {
				more = map[string][]any{}
			}
			if more[key] == nil {
				more[key] = []any{first}
			}
			more[key] = append(more[key], v)
		}
		out[key] = v
	}
	for key, values := range more {
		slices.SortStableFunc(values, func(a, b any) int { return strings.Compare(encode(a), encode(b)) })
		out[key] = values
	}
	return out
}

// MarshalJSON makes versions equal where objects are sorted and paired.
func (v version) MarshalJSON() ([]byte, error) { return []byte(`"(version)"`), nil }

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // a number that JSON does not have
	}
	return string(b)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
