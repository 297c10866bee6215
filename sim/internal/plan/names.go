// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"regexp"
	"strconv"
	"strings"
)

// Names gives objects names that are the same in every run: what a server generated is
// replaced by "~" and a number, in the order in which it was first seen. "db-x7k2f", made
// of the generateName "db-", becomes "db-~1", and a uid in a name "~uid1". Real names have
// no "~". It is for one run and one goroutine; the zero value is ready.
type Names struct {
	generated map[string]string // name to canonical name
	perPrefix map[string]int
	uids      map[string]string
}

// Generated notes the name that a server made of a generateName, and returns what stands
// for it.
func (n *Names) Generated(generateName, name string) string {
	if canonical, ok := n.generated[name]; ok {
		return canonical
	}
	if n.generated == nil {
		n.generated, n.perPrefix = map[string]string{}, map[string]int{}
	}
	n.perPrefix[generateName]++
	canonical := n.uid(generateName) + "~" + strconv.Itoa(n.perPrefix[generateName])
	n.generated[name] = canonical
	return canonical
}

// Canonical returns a name without what a server generated: also where it is followed by
// more, as in the names of what belongs to an object.
func (n *Names) Canonical(name string) string {
	if canonical, ok := n.generated[name]; ok {
		return canonical
	}
	best := ""
	for known := range n.generated {
		if len(known) > len(best) && strings.HasPrefix(name, known) && strings.ContainsRune("-.:", rune(name[len(known)])) {
			best = known
		}
	}
	if best != "" {
		return n.generated[best] + n.uid(name[len(best):])
	}
	return n.uid(name)
}

var uidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func (n *Names) uid(s string) string {
	return uidPattern.ReplaceAllStringFunc(s, func(uid string) string {
		canonical, ok := n.uids[uid]
		if !ok {
			if n.uids == nil {
				n.uids = map[string]string{}
			}
			canonical = "~uid" + strconv.Itoa(len(n.uids)+1)
			n.uids[uid] = canonical
		}
		return canonical
	})
}
