// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"fmt"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/rbac"
)

// Finding is where markers and needs differ.
type Finding struct {
	// Place is FILE:LINE; empty where there is none.
	Place string
	// Message says what is wrong and what to do.
	Message string
	// Missing is a right that the operator lacks. Otherwise it has one that nothing needs.
	Missing bool
}

// String returns a line as compilers print it.
func (f Finding) String() string {
	if f.Place == "" {
		return f.Message
	}
	return f.Place + ": " + f.Message
}

// Findings compares the markers with what the code declares and what tests used. Rights
// that nothing needs are reported only where used is not nil: tests ran.
func (s *Sources) Findings(used Used) []Finding {
	return append(s.missing(used), s.unneeded(used)...)
}

// missing are the rights that no marker gives, by place and resource.
func (s *Sources) missing(used Used) []Finding {
	type lack struct {
		place, why string
		of         Right // without verb
	}
	var order []lack
	verbs := map[lack][]string{}
	note := func(place, why string, right Right) {
		at := lack{place, why, Right{Group: right.Group, Resource: right.Resource}}
		if verbs[at] == nil {
			order = append(order, at)
		}
		verbs[at] = append(verbs[at], right.Verb)
	}
	for _, right := range sorted(s.declared) {
		if d := s.declared[right]; d.needed && !s.allows(right) {
			note(d.place, "the code declares to need", right)
		}
	}
	for _, right := range sorted(used) {
		if !s.declared[right].needed && !s.allows(right) && !byElection(right) {
			note(s.Place(""), used[right][0]+" used", right)
		}
	}
	var found []Finding
	for _, at := range order {
		right := at.of
		right.Verb = strings.Join(verbs[at], ";")
		found = append(found, Finding{at.place, fmt.Sprintf("%s %s; add // %s", at.why, right, right.Marker()), true})
	}
	return found
}

// unneeded are the rights of markers that are neither declared nor used, by marker.
func (s *Sources) unneeded(used Used) []Finding {
	var found []Finding
	for _, marker := range s.markers {
		if wild := wildcard(marker); wild != "" {
			found = append(found, Finding{s.place(marker.Pos), wild + " gives rights that nothing needs; name those that the operator needs", false})
			continue
		}
		if used == nil {
			continue
		}
		for _, group := range marker.Groups {
			for _, resource := range marker.Resources {
				var verbs []string
				for _, verb := range marker.Verbs {
					if requested(verb) && !s.needed(Right{group, resource, verb}, used) {
						verbs = append(verbs, verb)
					}
				}
				if len(verbs) > 0 {
					found = append(found, Finding{s.place(marker.Pos), fmt.Sprintf(
						"no test used %s, and the code does not declare it; remove it, or test what needs it", Right{group, resource, strings.Join(verbs, ";")}), false})
				}
			}
		}
	}
	return found
}

// Coverage counts the rights of the markers, and those of them that tests used.
// Wildcards count as one right.
func (s *Sources) Coverage(used Used) (seen, all int) {
	given := map[Right]bool{}
	for _, marker := range s.markers {
		for _, group := range marker.Groups {
			for _, resource := range marker.Resources {
				for _, verb := range marker.Verbs {
					if !requested(verb) && verb != "*" {
						continue
					}
					given[Right{group, resource, verb}] = true
				}
			}
		}
	}
	for right := range given {
		if _, ok := used[right]; ok {
			seen++
		}
	}
	return seen, len(given)
}

// needed reports whether a right is declared or used, or may be. An informer lists and
// watches, and reads beside it get: one of the three stands for all.
func (s *Sources) needed(right Right, used Used) bool {
	verbs := []string{"get", "list", "watch"}
	if !slices.Contains(verbs, right.Verb) {
		verbs = []string{right.Verb}
	}
	for _, verb := range verbs {
		right.Verb = verb
		_, declared := s.declared[right]
		if _, seen := used[right]; seen || declared || s.open[verb] {
			return true
		}
	}
	return byElection(right)
}

// allows reports whether a marker gives a right, on all objects or on some.
func (s *Sources) allows(right Right) bool {
	return slices.ContainsFunc(s.markers, func(m rbac.Located) bool {
		resource, subresource, _ := strings.Cut(right.Resource, "/")
		return either(m.Groups, right.Group) && either(m.Verbs, right.Verb) &&
			(either(m.Resources, right.Resource) || subresource != "" && (slices.Contains(m.Resources, resource+"/*") || slices.Contains(m.Resources, "*/"+subresource)))
	})
}

// requested reports whether a verb is that of requests. Others, such as bind, escalate,
// impersonate and use, are asked for by the API server while it answers a request, so that
// no test shows whether they are needed.
func requested(verb string) bool {
	return slices.Contains([]string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}, verb)
}

// either reports whether a list has a value or the wildcard.
func either(list []string, value string) bool {
	return slices.Contains(list, value) || slices.Contains(list, "*")
}

// byElection reports whether leader election, which has a role of its own, needs a right.
func byElection(right Right) bool {
	return right.Group == "coordination.k8s.io" && right.Resource == "leases"
}

// wildcard is the part of a marker that is one.
func wildcard(m rbac.Located) string {
	for _, part := range []struct {
		name string
		list []string
	}{{"groups", m.Groups}, {"resources", m.Resources}, {"verbs", m.Verbs}} {
		if slices.Contains(part.list, "*") {
			return part.name + "=*"
		}
	}
	return ""
}

func sorted[V any](of map[Right]V) []Right {
	list := make([]Right, 0, len(of))
	for right := range of {
		list = append(list, right)
	}
	slices.SortFunc(list, compare)
	return list
}
