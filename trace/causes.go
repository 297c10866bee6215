// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"cmp"
	"iter"
	"strings"
)

// MaxCauses is how many distinct causes a [Causes] keeps.
const MaxCauses = 8

// maxChanged bounds the joined paths of one cause, in bytes.
const maxChanged = 256

// Causes gathers why a request is queued: the first cause, then the latest
// distinct ones, each with its exact count, and the exact count of all. Causes
// are distinct when type or object differ. The zero value is empty. It is not
// safe for concurrent use.
type Causes struct {
	first Cause
	// more holds the causes after the first; once it is full, oldest is the
	// place of the one that the next new cause replaces.
	more   []Cause
	oldest int
	total  int
}

// Add notes a cause. A cause that is there already is counted, and takes the
// newer revision beside the first one.
func (s *Causes) Add(c Cause) {
	n := max(c.Count, 1)
	c.Count = n
	s.total += n
	if s.total == n {
		s.first = c
		return
	}
	if s.first.merge(&c) {
		return
	}
	for i := range s.more {
		if s.more[i].merge(&c) {
			return
		}
	}
	if len(s.more) < MaxCauses-1 {
		s.more = append(s.more, c)
		return
	}
	s.more[s.oldest] = c
	s.oldest = (s.oldest + 1) % len(s.more)
}

// Total is the exact number of causes added.
func (s *Causes) Total() int { return s.total }

// All yields the kept causes: the first one, then the others in the order of
// their first appearance.
func (s *Causes) All() iter.Seq[Cause] {
	return func(yield func(Cause) bool) {
		if s.total == 0 || !yield(s.first) {
			return
		}
		for i := range s.more {
			if !yield(s.more[(s.oldest+i)%len(s.more)]) {
				return
			}
		}
	}
}

// Reset empties the set and keeps its memory; the first cause stays in it, unseen, until
// another takes its place.
func (s *Causes) Reset() {
	clear(s.more)
	s.more, s.oldest, s.total = s.more[:0], 0, 0
}

// merge counts other into c when both are the same cause.
func (c *Cause) merge(other *Cause) bool {
	if c.Type != other.Type || c.Object != other.Object {
		return false
	}
	c.Count += other.Count
	if other.Revision != "" && other.Revision != c.Revision {
		c.First = cmp.Or(c.First, c.Revision, other.First)
		c.Revision = other.Revision
	}
	c.Changed = mergePaths(c.Changed, other.Changed)
	return true
}

// mergePaths joins two lists of paths without repeating any.
func mergePaths(a, b string) string {
	if a == b || b == "" {
		return a
	}
	if a == "" {
		return b
	}
	for path := range strings.SplitSeq(b, ",") {
		if len(a)+len(path) < maxChanged && !containsPath(a, path) {
			a += "," + path
		}
	}
	return a
}

func containsPath(list, path string) bool {
	for p := range strings.SplitSeq(list, ",") {
		if p == path {
			return true
		}
	}
	return false
}
