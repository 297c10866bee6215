// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/steer-dev/steer/apiserver/openapi"
	"github.com/steer-dev/steer/apiserver/resource"
)

// descriptions returns the OpenAPI documents of the served resources; the first call
// builds them.
func (t *served) descriptions() func() *openapi.Documents {
	return sync.OnceValue(func() *openapi.Documents {
		var out []openapi.Resource
		for _, in := range t.ordered() {
			for i := range in.Versions {
				if v := &in.Versions[i]; !v.NotServed {
					out = append(out, in.described(v))
				}
			}
		}
		return openapi.New(out, openapi.Options{Version: KubernetesVersion, Paths: func(path string) bool { return t.handlers[path] != nil }, Elsewhere: t.describedElsewhere()})
	})
}

// described returns the OpenAPI description of a resource.
func (in *installed) described(v *resource.Version) openapi.Resource {
	seen := in.discovered(v)
	r := openapi.Resource{
		Group: in.Group, Version: v.Name, Plural: in.Plural, Kind: in.Kind, ListKind: in.ListKind, Namespaced: in.Namespaced,
		Verbs: seen.Verbs, Schema: v.Schema,
	}
	if v.Typed() {
		r.Type = reflect.TypeOf(v.New()).Elem()
	} else {
		r.Protobuf = v.Protobuf()
		for _, f := range v.Selectable {
			r.Selectable = append(r.Selectable, f.Path)
		}
	}
	for _, d := range seen.Subresources { // in another order
		s := openapi.Subresource{Name: d.Name, Verbs: d.Verbs}
		switch sub := v.Subresource(d.Name); {
		case sub.Scale != nil:
			s.Kind, s.Type = d.Kind, openapi.ScaleType()
		case sub.New != nil:
			s.Kind, s.Type = d.Kind, reflect.TypeOf(sub.New()).Elem()
			if sub.NewAnswer != nil {
				s.Answer, s.AnswerKind = reflect.TypeOf(sub.NewAnswer()).Elem(), sub.Answer
			}
		}
		r.Subresources = append(r.Subresources, s)
	}
	return r
}

// describedElsewhere returns what other servers say about their versions, those of groups with a high
// priority first.
func (t *served) describedElsewhere() []openapi.Elsewhere {
	priorities := map[string]int32{}
	for _, d := range t.delegated {
		priorities[d.Group] = max(priorities[d.Group], d.GroupPriority)
	}
	paths := slices.SortedFunc(maps.Keys(t.delegated), func(a, b string) int {
		x, y := t.delegated[a], t.delegated[b]
		return cmp.Or(cmp.Compare(priorities[y.Group], priorities[x.Group]), cmp.Compare(x.Version+"."+x.Group, y.Version+"."+y.Group))
	})
	var out []openapi.Elsewhere
	for _, path := range paths {
		d := t.delegated[path]
		out = append(out, openapi.Elsewhere{Path: strings.TrimPrefix(path, "/"), Documents: d.OpenAPI, Handler: d.Handler, Swagger: d.Swagger, Convert: d.Convert})
	}
	return out
}
