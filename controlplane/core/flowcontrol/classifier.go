// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package flowcontrol

import (
	"cmp"
	"context"
	"slices"
	"strings"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/internal/derived"
	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Classifier finds the FlowSchema of a request and its priority level, as
// kube-apiserver does (KEP-1040). Its index is computed for the first request after a
// schema or a level was written. It is safe for concurrent use.
type Classifier struct{ index *derived.Value[*index] }

// NewClassifier returns a classifier over a store. Nothing is read before the first
// request.
func NewClassifier(store storage.Viewer) *Classifier {
	compute := func(view storage.View, _ *index) (*index, error) { return newIndex(view), nil }
	return &Classifier{derived.New(store, compute, schemas, levels)}
}

// index is what the schemas of one state of the store say.
type index struct {
	classes []class // in the order of matching
	rest    class   // of requests that nothing matches
}

// class is a schema whose priority level exists.
type class struct {
	name          string
	spec          *flowcontrolv1.FlowSchemaSpec
	schema, level types.UID
}

// Classify returns the UIDs of the FlowSchema that a request matches first and of its
// priority level.
func (c *Classifier) Classify(ctx context.Context, a *auth.Attributes) (schema, level types.UID) {
	ix, _ := c.index.Get() // an index of flow schemas cannot fail
	for i := range ix.classes {
		if class := &ix.classes[i]; class.matches(a) {
			return class.schema, class.level
		}
	}
	return ix.rest.schema, ix.rest.level
}

func newIndex(view storage.View) *index {
	ix := &index{}
	uids := map[string]types.UID{}
	for rec := range view.Ascend(levels, "", "") {
		uids[rec.Key.Name] = uidOf(rec)
	}
	for rec := range view.Ascend(schemas, "", "") {
		spec := specOf(rec)
		if spec == nil {
			continue
		}
		level, exists := uids[spec.PriorityLevelConfiguration.Name]
		if !exists {
			continue
		}
		found := class{name: rec.Key.Name, spec: spec, schema: uidOf(rec), level: level}
		ix.classes = append(ix.classes, found)
		if found.name == catchAll {
			ix.rest = found
		}
	}
	slices.SortFunc(ix.classes, func(a, b class) int {
		return cmp.Or(cmp.Compare(a.spec.MatchingPrecedence, b.spec.MatchingPrecedence), strings.Compare(a.name, b.name))
	})
	return ix
}

// specOf reads the spec of a stored schema, nil for one that cannot be read.
func specOf(rec *storage.Record) *flowcontrolv1.FlowSchemaSpec {
	if t := fresh().byKey[rec.Key]; t != nil && t.Is(rec) {
		return fresh().specs()[rec.Key.Name]
	}
	var s flowcontrolv1.FlowSchema
	if step.Decode(rec, &s) != nil {
		return nil
	}
	return &s.Spec
}

func uidOf(rec *storage.Record) types.UID {
	if t := fresh().byKey[rec.Key]; t != nil && t.Is(rec) {
		return t.UID(rec)
	}
	var o struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	_ = step.Decode(rec, &o) // what cannot be read has none
	return o.Metadata.UID
}

func (c *class) matches(a *auth.Attributes) bool {
	for i := range c.spec.Rules {
		rule := &c.spec.Rules[i]
		if !slices.ContainsFunc(rule.Subjects, func(s flowcontrolv1.Subject) bool { return is(a.User, &s) }) {
			continue
		}
		if a.ResourceRequest {
			for j := range rule.ResourceRules {
				if covers(&rule.ResourceRules[j], a) {
					return true
				}
			}
			continue
		}
		for j := range rule.NonResourceRules {
			r := &rule.NonResourceRules[j]
			if has(r.Verbs, a.Verb) && slices.ContainsFunc(r.NonResourceURLs, func(url string) bool { return leadsTo(url, a.Path) }) {
				return true
			}
		}
	}
	return false
}

// is reports whether a subject stands for a user.
func is(user *auth.User, s *flowcontrolv1.Subject) bool {
	switch {
	case s.Kind == flowcontrolv1.SubjectKindUser && s.User != nil:
		return s.User.Name == flowcontrolv1.NameAll || s.User.Name == user.Name
	case s.Kind == flowcontrolv1.SubjectKindGroup && s.Group != nil:
		return s.Group.Name == flowcontrolv1.NameAll || user.In(s.Group.Name)
	case s.Kind == flowcontrolv1.SubjectKindServiceAccount && s.ServiceAccount != nil:
		account, ok := strings.CutPrefix(user.Name, "system:serviceaccount:")
		namespace, name, named := strings.Cut(account, ":")
		return ok && named && namespace == s.ServiceAccount.Namespace &&
			(s.ServiceAccount.Name == flowcontrolv1.NameAll || s.ServiceAccount.Name == name)
	}
	return false
}

func covers(r *flowcontrolv1.ResourcePolicyRule, a *auth.Attributes) bool {
	if !has(r.Verbs, a.Verb) || !has(r.APIGroups, a.Group) {
		return false
	}
	if a.Subresource == "" {
		if !has(r.Resources, a.Resource) {
			return false
		}
	} else if !has(r.Resources, a.Resource+"/"+a.Subresource) {
		return false
	}
	if a.Namespace == "" {
		return r.ClusterScope
	}
	return has(r.Namespaces, a.Namespace)
}

// leadsTo reports whether a URL of a rule is a path, or one above it.
func leadsTo(url, path string) bool {
	if url == flowcontrolv1.NonResourceAll || url == path {
		return true
	}
	prefix := strings.TrimSuffix(strings.TrimSuffix(url, "*"), "/")
	below, ok := strings.CutPrefix(path, prefix)
	return ok && strings.HasPrefix(below, "/")
}

// has reports whether a list of a rule has a name, or stands for all names: every kind of list
// has the same word for that.
func has(list []string, name string) bool {
	return len(list) == 1 && list[0] == flowcontrolv1.NameAll || slices.Contains(list, name)
}
