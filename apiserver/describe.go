// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"reflect"
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
		others := map[string]string{}
		for path, d := range t.delegated {
			if d.OpenAPI != "" {
				others[strings.TrimPrefix(path, "/")] = d.OpenAPI
			}
		}
		return openapi.New(out, openapi.Options{Version: kubernetesVersion, Elsewhere: others})
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
		for _, f := range v.Selectable {
			r.Selectable = append(r.Selectable, f.Path)
		}
	}
	for i, d := range seen.Subresources {
		s := openapi.Subresource{Name: d.Name, Verbs: d.Verbs}
		switch sub := &v.Subresources[i]; {
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
