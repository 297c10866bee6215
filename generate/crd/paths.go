// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/steer-dev/steer/generate/load"
	"github.com/steer-dev/steer/generate/schema"
)

// location is a path to a field in a marker of a type.
type location struct {
	pos  token.Pos
	of   string // what it is for
	path string
}

// member is one element of the paths that are compared: a name, or an index, a filter or
// another selection in brackets.
var member = regexp.MustCompile(`^(?:\.([A-Za-z_][A-Za-z0-9_-]*)|\[[^\]]*\])`)

// checkPaths reports printer columns and paths of the subresource scale that lead to no
// field: the API server takes them, and the column stays empty, or kubectl scale fails.
func (v *version) checkPaths(p *load.Program, kind string) {
	for _, l := range v.locations {
		if name, known := missing(v.schema, l.path); name != "" {
			has := "has no fields"
			if len(known) > 0 {
				has = "has " + strings.Join(known, ", ")
			}
			p.Problemf(l.pos, "kind %s, %s: there is no field %s: what is at %s %s", kind, l.of, l.path, name, has)
		}
	}
}

// missing returns below what a path leads to no field, and the fields that are there; name
// is empty where it leads to one, or where the schema does not tell.
func missing(s *schema.Schema, path string) (name string, known []string) {
	at := "the top"
	for walked := 0; walked < len(path); {
		m := member.FindStringSubmatch(path[walked:])
		switch {
		case m == nil || len(s.AllOf) > 0 || len(s.AnyOf) > 0 || s.PreserveUnknown || s.EmbeddedResource || s.AnyAdditional:
			return "", nil
		case m[1] == "metadata" && walked == 0:
			return "", nil // its fields are not in the schema
		case m[1] != "" && s.Properties[m[1]] != nil:
			s = s.Properties[m[1]]
		case m[1] != "" && s.Additional != nil:
			s = s.Additional
		case m[1] != "":
			return at, slices.Sorted(maps.Keys(s.Properties))
		case s.Items != nil:
			s = s.Items
		default:
			return "", nil // a name in brackets, or text that is cut
		}
		walked += len(m[0])
		at = path[:walked]
	}
	return "", nil
}
