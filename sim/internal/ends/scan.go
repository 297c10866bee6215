// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// text is a string with what stands for other objects taken out.
type text []part

// part is a literal, or a value of an object.
type part struct {
	literal string
	ref     *node
	as      role
}

// role is which of its values stands for an object.
type role byte

const (
	ownName role = iota + 1 // the generated end of its own name
	byName
	byUID
	byHash
	byAddress
)

// label returns what stands for a part that refers to an object.
type label func(part) string

func (t text) render(of label) string {
	if len(t) == 1 && t[0].ref == nil {
		return t[0].literal
	}
	var b strings.Builder
	for _, p := range t {
		if p.ref == nil {
			b.WriteString(p.literal)
		} else {
			b.WriteString(of(p))
		}
	}
	return b.String()
}

// patterns labels objects by their class, so that those that may stand for one another
// are the same.
func patterns(p part) string {
	switch p.as {
	case ownName, byHash:
		return "~"
	case byName:
		return p.ref.name.render(patterns)
	}
	return p.describe(p.ref.name.render(patterns))
}

// describe returns a uid or an address of the object that has this name, and is said to
// be deleted if it is.
func (p part) describe(name string) string {
	what := "uid"
	if p.as == byAddress {
		what = "address"
	}
	deleted := ""
	if p.ref.Deleted != 0 {
		deleted = "deleted "
	}
	return fmt.Sprintf("(%s of %s%s %s)", what, deleted, p.ref.kind, name)
}

// scanner finds the values of the objects of one state in strings.
type scanner struct {
	words     map[string]part // generated names, hashes, addresses
	uids      map[string]*node
	revisions map[string]*node
}

func newScanner(s *State) *scanner {
	c := &scanner{words: map[string]part{}, uids: s.byUID, revisions: map[string]*node{}}
	add := func(word string, p part) {
		if _, ok := c.words[word]; !ok && word != "" {
			c.words[word] = p
		}
	}
	for n := range s.all {
		name := n.Object.GetName()
		if n.prefix = s.generatedPrefix(n); n.prefix != "" {
			add(name, part{ref: n, as: byName})
			if suffix := name[len(n.prefix):]; len(suffix) >= 6 {
				add(suffix, part{ref: n, as: byHash})
			}
		}
		for _, volume := range tokenVolumes(n) {
			add(volume, part{literal: tokenVolume + "~"})
		}
		for _, address := range addresses(n) {
			add(address, part{ref: n, as: byAddress})
		}
		if n.Deleted == 0 {
			c.revisions[n.Object.GetResourceVersion()] = n
		}
	}
	return c
}

// tokenVolume begins the name of the volume that admission gives to Pods, with the token of
// their service account.
const tokenVolume = "kube-api-access-"

func tokenVolumes(n *node) (out []string) {
	if n.kind != "Pod" {
		return nil
	}
	volumes, _, _ := unstructured.NestedSlice(n.Object.Object, "spec", "volumes")
	for _, volume := range volumes {
		volume, _ := volume.(map[string]any)
		if name, _ := volume["name"].(string); strings.HasPrefix(name, tokenVolume) && hash(name[len(tokenVolume):]) {
			out = append(out, name)
		}
	}
	return out
}

// addresses are those that a server has given to a Service or a Pod.
func addresses(n *node) (out []string) {
	var found []any
	switch n.kind {
	case "Service":
		found, _, _ = unstructured.NestedSlice(n.Object.Object, "spec", "clusterIPs")
		ip, _, _ := unstructured.NestedString(n.Object.Object, "spec", "clusterIP")
		found = append(found, ip)
	case "Pod":
		list, _, _ := unstructured.NestedSlice(n.Object.Object, "status", "podIPs")
		for _, entry := range list {
			if entry, ok := entry.(map[string]any); ok {
				found = append(found, entry["ip"])
			}
		}
		ip, _, _ := unstructured.NestedString(n.Object.Object, "status", "podIP")
		found = append(found, ip)
	}
	for _, ip := range found {
		if ip, ok := ip.(string); ok {
			if _, err := netip.ParseAddr(ip); err == nil {
				out = append(out, ip)
			}
		}
	}
	return out
}

var (
	uidOrTime = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|` +
		`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z| ?[+-]\d\d:?\d\d)?(?: UTC)?(?: m=[+-]?[0-9.]+)?`)
)

const aTime = "(time)"

// unixTime reports whether a number is a time in the first year of a bubble's clock, which
// begins at midnight UTC of 1 January 2000: in seconds, milli-, micro- or nanoseconds.
func unixTime(n int64) bool {
	const begin, year = 946_684_800, 366 * 24 * 60 * 60
	for unit := int64(1); unit <= 1_000_000_000; unit *= 1000 {
		if n >= begin*unit && n < (begin+year)*unit {
			return true
		}
	}
	return false
}

// text reads a string outside of an object.
func (c *scanner) text(s string) text { return c.in(s, map[string]int{}) }

// in reads a string of an object; others numbers the UUIDs of that object that are no
// object's.
func (c *scanner) in(s string, others map[string]int) text {
	if p, ok := c.words[s]; ok {
		return text{p}
	}
	var t text
	at := 0
	if len(s) >= len(time.DateTime) {
		for _, m := range uidOrTime.FindAllStringIndex(s, -1) {
			t = c.literal(t, s[at:m[0]])
			found := s[m[0]:m[1]]
			at = m[1]
			switch n := c.uids[found]; {
			case strings.Contains(found, ":"):
				t = append(t, part{literal: aTime})
			case n != nil:
				t = append(t, part{ref: n, as: byUID})
			default:
				if others[found] == 0 {
					others[found] = len(others) + 1
				}
				t = append(t, part{literal: fmt.Sprintf("(uid %d)", others[found])})
			}
		}
	}
	return c.literal(t, s[at:])
}

// literal appends a string without uids and times. Words in it begin and end where letters
// and digits do.
func (c *scanner) literal(t text, s string) text {
	if len(c.words) == 0 {
		return append(t, part{literal: s})
	}
	at := 0 // what is before it is in t
	for i := 0; i < len(s); {
		if !alphanumeric(s[i]) || i > 0 && alphanumeric(s[i-1]) {
			i++
			continue
		}
		p, end := c.longest(s, i)
		if end == 0 {
			i++
			continue
		}
		if i > at {
			t = append(t, part{literal: s[at:i]})
		}
		t = append(t, p)
		at, i = end, end
	}
	if at < len(s) || len(t) == 0 {
		t = append(t, part{literal: s[at:]})
	}
	return t
}

// longest returns the longest word at s[i:], and where it ends; 0 without any.
func (c *scanner) longest(s string, i int) (found part, end int) {
	for j := i + 1; j <= len(s); j++ {
		if j < len(s) && alphanumeric(s[j]) {
			continue // not the end of a word
		}
		if p, ok := c.words[s[i:j]]; ok {
			found, end = p, j
		}
		if j < len(s) && s[j] != '-' && s[j] != '.' && s[j] != ':' {
			break
		}
	}
	return found, end
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z'
}
