// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Type says how an object differs.
type Type string

// The types of differences.
const (
	Missing Type = "missing" // the reference has it
	Extra   Type = "extra"   // the reference does not have it
	Changed Type = "changed" // both have it, with another value at a path
)

// maxChanges is how many changes of one object are listed.
const maxChanges = 10

// Difference is one of the end of a run from that of the reference.
type Difference struct {
	Type Type
	// Object is its kind and key, "Secret default/db", with "~1" for what is generated.
	Object string
	// Path is the field that has changed, "spec.ports[0].port".
	Path string
	// Want is the value in the reference, Got that of the run: as JSON, cut where it is
	// long; "nothing" where the field is not there. Values of Secrets are hidden.
	Want, Got string

	class string
}

// String returns the difference in one line.
func (d Difference) String() string {
	switch d.Type {
	case Missing:
		return d.Object + " is missing: the reference has it"
	case Extra:
		return d.Object + " is there: the reference does not have it"
	}
	return fmt.Sprintf("%s: %s is %s: in the reference it is %s", d.Object, d.Path, d.Got, d.Want)
}

// Compare returns how the end of a run differs from the reference's: first what is
// missing, then what is extra, then what has changed, each by object.
func Compare(reference, run *State, masks Masks) []Difference {
	p := pair(reference, run, masks)
	var missing, extra, changed []Difference
	for _, n := range reference.live {
		other := p.partner[n]
		if other == nil {
			missing = append(missing, Difference{Type: Missing, Object: p.object(n), class: n.class})
			continue
		}
		c := comparison{pairing: p, of: n, masked: masks[n.class]}
		c.compare("", render(n.tree, p.label), render(other.tree, p.label))
		changed = append(changed, c.list()...)
	}
	for _, n := range run.live {
		if p.partner[n] == nil {
			extra = append(extra, Difference{Type: Extra, Object: p.object(n), class: n.class})
		}
	}
	return slices.Concat(missing, extra, changed)
}

func (p *pairing) object(n *node) string {
	return n.kind + " " + slashed(n.namespace.render(p.label), n.name.render(p.label))
}

// Masks are fields that are not compared: paths by class of object. The zero value has
// none.
type Masks map[string][]string

// Learn returns masks for the fields that differ between two runs without faults: what an
// operator draws at random. What is missing or extra cannot be masked and is returned.
func Learn(a, b *State) (Masks, []Difference) {
	masks := Masks{}
	for { // members of a class that are paired anew may differ elsewhere
		var rest []Difference
		more := false
		for _, d := range Compare(a, b, masks) {
			path := anyIndex.ReplaceAllString(d.Path, "[*]")
			switch {
			case d.Type != Changed:
				rest = append(rest, d)
			case !slices.Contains(masks[d.class], path):
				masks[d.class] = append(masks[d.class], path)
				more = true
			}
		}
		if !more {
			return masks, rest
		}
	}
}

// Paths lists the masks as "class: path", sorted, for a report.
func (m Masks) Paths() []string {
	var out []string
	for _, class := range slices.Sorted(maps.Keys(m)) {
		for _, path := range slices.Sorted(slices.Values(m[class])) {
			out = append(out, class+": "+path)
		}
	}
	return out
}

var anyIndex = regexp.MustCompile(`\[[0-9]+\]`)

// masked reports whether a path is at or below one of the masks.
func masked(masks []string, path string) bool {
	if len(masks) == 0 {
		return false
	}
	path = anyIndex.ReplaceAllString(path, "[*]")
	return slices.ContainsFunc(masks, func(mask string) bool {
		rest, ok := strings.CutPrefix(path, mask)
		return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// without takes the masked fields out of a rendered object.
func (m Masks) without(n *node, v any) any {
	if masks := m[n.class]; len(masks) > 0 {
		return prune(masks, "", v)
	}
	return v
}

func prune(masks []string, path string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, k := range sortedKeys(v) {
			if below := join(path, k); masked(masks, below) {
				delete(v, k)
			} else {
				v[k] = prune(masks, below, v[k])
			}
		}
	case []any:
		for i := range v {
			if below := path + index(path, v, i); masked(masks, below) {
				v[i] = nil
			} else {
				v[i] = prune(masks, below, v[i])
			}
		}
	}
	return v
}

// comparison is that of two objects that are paired.
type comparison struct {
	*pairing
	of     *node
	masked []string
	found  []Difference
}

// list returns what was found, and how much more there is.
func (c *comparison) list() []Difference {
	if more := len(c.found) - maxChanges; more > 1 {
		last := &c.found[maxChanges-1]
		last.Got += fmt.Sprintf(" (and %d more fields differ)", more)
		return c.found[:maxChanges]
	}
	return c.found
}

func (c *comparison) compare(path string, want, got any) {
	if masked(c.masked, path) {
		return
	}
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			c.maps(path, want, got)
			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			c.lists(path, want, got)
			return
		}
	case version:
		if got, ok := got.(version); ok && c.sameVersion(want, got) {
			return
		}
	default:
		if encode(want) == encode(got) {
			return
		}
	}
	c.differ(path, want, got)
}

// sameVersion reports whether two values stand for the same version: they are equal, or
// the present ones of objects that are paired, or both of none.
func (c *comparison) sameVersion(a, b version) bool {
	switch {
	case a.of != nil && b.of != nil:
		return a.raw == b.raw && !a.sure || a.of == c.partner[b.of]
	case a.of == nil && b.of == nil:
		return a.sure && b.sure || a.raw == b.raw
	}
	return a.raw == b.raw && !a.sure
}

// absent is a field that is not there.
type absent struct{}

func (c *comparison) maps(path string, want, got map[string]any) {
	keys := map[string]bool{}
	for k := range want {
		keys[k] = true
	}
	for k := range got {
		keys[k] = true
	}
	for _, k := range sortedKeys(keys) {
		c.compare(join(path, k), orAbsent(want, k), orAbsent(got, k))
	}
}

func orAbsent(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return absent{}
}

// lists compares elements by the key that they have, else one by one.
func (c *comparison) lists(path string, want, got []any) {
	key := listKey(path)
	if key == "" || !keyed(want, key) || !keyed(got, key) {
		for i := range max(len(want), len(got)) {
			c.compare(fmt.Sprintf("%s[%d]", path, i), element(want, i), element(got, i))
		}
		return
	}
	a, b := map[string]any{}, map[string]any{}
	for i := range want {
		a[index(path, want, i)] = want[i]
	}
	for i := range got {
		b[index(path, got, i)] = got[i]
	}
	all := maps.Clone(a)
	maps.Copy(all, b)
	for _, k := range sortedKeys(all) {
		c.compare(path+k, orAbsent(a, k), orAbsent(b, k))
	}
}

func element(list []any, i int) any {
	if i < len(list) {
		return list[i]
	}
	return absent{}
}

// listKey is the field that tells the elements of a list apart, where Kubernetes has one.
func listKey(path string) string {
	switch {
	case strings.HasSuffix(path, "conditions"):
		return "type"
	case path == "metadata.ownerReferences":
		return "uid"
	}
	return ""
}

// keyed reports whether all elements have the key, and no two the same.
func keyed(list []any, key string) bool {
	seen := map[string]bool{}
	for _, e := range list {
		e, _ := e.(map[string]any)
		value, ok := e[key].(string)
		if !ok || seen[value] {
			return false
		}
		seen[value] = true
	}
	return true
}

// index is the part of a path that names an element.
func index(path string, list []any, i int) string {
	if key := listKey(path); key != "" && keyed(list, key) {
		return fmt.Sprintf("[%s=%s]", key, list[i].(map[string]any)[key])
	}
	return fmt.Sprintf("[%d]", i)
}

var plainKey = regexp.MustCompile(`^[A-Za-z0-9_~()-]+$`)

func join(path, key string) string {
	switch {
	case !plainKey.MatchString(key):
		return fmt.Sprintf("%s[%q]", path, key)
	case path == "":
		return key
	}
	return path + "." + key
}

func (c *comparison) differ(path string, want, got any) {
	hidden := c.of.secret() && !strings.HasPrefix(path, "metadata.") && path != "type" && path != "immutable" ||
		c.of.secret() && strings.HasPrefix(path, "metadata.annotations")
	c.found = append(c.found, Difference{
		Type: Changed, Object: c.object(c.of), Path: path, Want: c.show(want, hidden), Got: c.show(got, hidden), class: c.of.class,
	})
}

func (c *comparison) show(v any, hidden bool) string {
	const most = 120
	switch value := v.(type) {
	case absent:
		return "nothing"
	case version:
		if hidden {
			return "hidden"
		}
		if value.of != nil {
			return fmt.Sprintf("%q, the version of %s", value.raw, c.object(value.of))
		}
		return fmt.Sprintf("%q", value.raw)
	}
	if hidden {
		return "hidden"
	}
	s := encode(v)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "..."
	}
	return s
}
