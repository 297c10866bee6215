// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package ends

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
)

// rounds is how far the neighbourhood of an object reaches that pairs it.
const rounds = 3

// pairing pairs the live objects of two states. Objects of other classes are never paired;
// within a class, those are that are most alike, by content and by what they refer to and
// what refers to them.
//
// It refines colours, as graph isomorphism does: the colour of an object is made of its
// content and the colours around it. Objects that are paired have a colour of their own,
// so that a difference in them makes none in others. Of objects that are entirely alike
// any two are paired, and what refers to them follows.
type pairing struct {
	sides [2]*side
	// partner of a node of either side.
	partner map[*node]*node
	number  map[*node]int // of a node and its partner, within their class
	last    map[string]int
}

type side struct {
	nodes []*node
	base  map[*node]uint64
	in    map[*node][]edge // reversed edges
}

func newSide(s *State) *side {
	out := &side{nodes: s.live, base: map[*node]uint64{}, in: map[*node][]edge{}}
	for _, n := range s.live {
		for _, e := range n.edges {
			out.in[e.to] = append(out.in[e.to], edge{^e.code, n})
		}
	}
	return out
}

func pair(a, b *State, masks Masks) *pairing {
	p := &pairing{
		sides: [2]*side{newSide(a), newSide(b)}, partner: map[*node]*node{}, number: map[*node]int{},
		last: map[string]int{},
	}
	for _, members := range p.unpaired(func(n *node) string { return n.class }) {
		if len(members[0]) == 1 && len(members[1]) == 1 {
			p.join(members[0][0], members[1][0])
			continue
		}
		for i, side := range p.sides {
			for _, n := range members[i] {
				side.base[n] = content(n, masks)
			}
		}
	}
	for p.next() {
	}
	for _, side := range p.sides { // those without a partner come last
		for _, n := range side.nodes {
			if p.number[n] == 0 {
				p.join(n, nil)
			}
		}
	}
	return p
}

// content is the first colour of a node.
func content(n *node, masks Masks) uint64 {
	return digest(encode(masks.without(n, render(n.tree, patterns))))
}

// join pairs two nodes, or notes that a has no partner.
func (p *pairing) join(a, b *node) {
	p.last[a.class]++
	number := p.last[a.class]
	p.number[a] = number
	if b != nil {
		p.number[b] = number
		p.partner[a], p.partner[b] = b, a
	}
}

// next pairs what can be paired at once, and reports whether there was any.
func (p *pairing) next() bool {
	colours := p.colours()
	for depth := rounds; depth >= -1; depth-- {
		groups := p.unpaired(func(n *node) string {
			if depth < 0 {
				return n.class // nothing is alike: in order
			}
			return fmt.Sprintf("%s %016x", n.class, colours[depth][n])
		})
		keys := sortedKeys(groups)
		joined := false
		for _, key := range keys {
			if m := groups[key]; depth >= 0 && len(m[0]) == 1 && len(m[1]) == 1 {
				p.join(m[0][0], m[1][0])
				joined = true
			}
		}
		if joined {
			return true
		}
		for _, key := range keys {
			if m := groups[key]; len(m[0]) > 0 && len(m[1]) > 0 {
				p.join(m[0][0], m[1][0])
				return true
			}
		}
	}
	return false
}

// unpaired groups the nodes of both sides that have no partner.
func (p *pairing) unpaired(key func(*node) string) map[string][2][]*node {
	out := map[string][2][]*node{}
	for i, side := range p.sides {
		for _, n := range side.nodes {
			if p.number[n] == 0 {
				group := out[key(n)]
				group[i] = append(group[i], n)
				out[key(n)] = group
			}
		}
	}
	return out
}

// colours returns those of each round.
func (p *pairing) colours() []map[*node]uint64 {
	out := make([]map[*node]uint64, 0, rounds+1)
	first := map[*node]uint64{}
	for _, side := range p.sides {
		for _, n := range side.nodes {
			if first[n] = side.base[n]; p.number[n] > 0 {
				first[n] = digest(n.class + " " + strconv.Itoa(p.number[n]))
			}
		}
	}
	out = append(out, first)
	for range rounds {
		last, next := out[len(out)-1], make(map[*node]uint64, len(first))
		for _, side := range p.sides {
			for _, n := range side.nodes {
				if next[n] = last[n]; p.number[n] == 0 {
					next[n] = refine(n, last, side.in[n])
				}
			}
		}
		out = append(out, next)
	}
	return out
}

// refine returns the colour of a node and those around it, in any order.
func refine(n *node, colours map[*node]uint64, in []edge) uint64 {
	var around uint64
	for _, edges := range [][]edge{n.edges, in} {
		for _, e := range edges {
			around += mixed(e.code ^ mixed(colours[e.to]))
		}
	}
	return mixed(colours[n] ^ mixed(around))
}

// digest is the same in every process, as the order of what is paired has to be.
func digest(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // it does not fail
	return mixed(h.Sum64())
}

// mixed spreads the bits of a number over all of it: the finalizer of SplitMix64.
func mixed(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// label names objects so that those which are paired have one name.
func (p *pairing) label(part part) string {
	n := part.ref
	number := "~"
	if n.Deleted != 0 {
		number = "~deleted"
	} else if i := p.number[n]; i > 0 {
		number += strconv.Itoa(i)
	}
	switch part.as {
	case ownName, byHash:
		return number
	case byName:
		return n.name.render(p.label)
	}
	return part.describe(n.name.render(p.label))
}

// Hash returns the same for states that are equal but for what [Compare] does not compare.
// It is for telling whether a run has been there before.
func (s *State) Hash() string {
	p := &pairing{sides: [2]*side{newSide(s), {}}, number: map[*node]int{}}
	for _, n := range s.live {
		p.sides[0].base[n] = content(n, nil)
	}
	last := p.colours()[rounds]
	var all []string
	for _, n := range s.live {
		all = append(all, fmt.Sprintf("%s %016x", n.class, last[n]))
	}
	slices.Sort(all)
	return fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(all, "\n"))))
}
