// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package rbac

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// object has the fields of all four kinds; those of other kinds stay empty.
type object struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rules             []rbacv1.PolicyRule     `json:"rules,omitempty"`
	AggregationRule   *rbacv1.AggregationRule `json:"aggregationRule,omitempty"`
	Subjects          []rbacv1.Subject        `json:"subjects,omitempty"`
	RoleRef           *rbacv1.RoleRef         `json:"roleRef,omitempty"`
}

// restore returns the requests that give an object back what it has at the
// beginning, and leave what was added.
func (t *template) restore(rec *storage.Record) []step.Request {
	var is, should object
	if json.Unmarshal(rec.Value, &is) != nil || json.Unmarshal(t.Write("", "2000-01-01T00:00:00Z").Value, &should) != nil {
		return nil
	}
	if is.Annotations[rbacv1.AutoUpdateAnnotationKey] == "false" {
		return nil
	}
	path := resourceOf(t.Key.Bucket).Object(t.Key)
	about := step.Subject{Key: t.Key}
	if should.RoleRef != nil && (is.RoleRef == nil || *is.RoleRef != *should.RoleRef) {
		// What a binding refers to cannot change.
		should.ObjectMeta = metav1.ObjectMeta{
			Name: should.Name, Namespace: should.Namespace,
			Labels: merged(should.Labels, is.Labels), Annotations: merged(should.Annotations, is.Annotations),
		}
		should.Subjects = union(is.Subjects, should.Subjects)
		again := step.Put(step.APIServer, path, encoded(&should), about) // a PUT creates what is not there
		return []step.Request{step.Delete(step.APIServer, path, nil, about), again}
	}
	restored := is
	restored.Labels = merged(should.Labels, is.Labels)
	restored.Annotations = merged(should.Annotations, is.Annotations)
	restored.Subjects = union(is.Subjects, should.Subjects)
	if should.AggregationRule == nil { // others have their rules from elsewhere
		restored.Rules = append(slices.Clip(is.Rules), missing(is.Rules, should.Rules)...)
	} else {
		restored.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: should.AggregationRule.ClusterRoleSelectors}
		if is.AggregationRule != nil {
			restored.AggregationRule.ClusterRoleSelectors = union(is.AggregationRule.ClusterRoleSelectors, should.AggregationRule.ClusterRoleSelectors)
		}
	}
	if equality.Semantic.DeepEqual(is, restored) {
		return nil
	}
	return []step.Request{step.Put(step.APIServer, path, encoded(&restored), about)}
}

// splitFrom is the binding that system:public-info-viewer was a part of before Kubernetes 1.14.
func splitFrom(t *template) (storage.Key, bool) {
	info := storage.Key{Bucket: clusterRoleBindings, Name: "system:public-info-viewer"}
	return storage.Key{Bucket: clusterRoleBindings, Name: "system:discovery"}, t.Key == info
}

// inherit gives a new binding that was split off another one the subjects, labels and annotations of
// that: who may not discover what is served is not shown more than before. Unless the other is to
// stay as it is, the usual subjects are added.
func (t *template) inherit(view storage.View, fresh storage.Write) storage.Write {
	source, split := splitFrom(t)
	if !split {
		return fresh
	}
	rec := view.Get(source)
	if rec == nil || pristine(rec) != nil {
		return fresh
	}
	var from, into object
	if json.Unmarshal(rec.Value, &from) != nil || json.Unmarshal(fresh.Value, &into) != nil {
		return fresh
	}
	usual := into
	into.Labels, into.Annotations, into.Subjects = from.Labels, from.Annotations, from.Subjects
	if from.Annotations[rbacv1.AutoUpdateAnnotationKey] != "false" {
		into.Labels, into.Annotations = merged(usual.Labels, from.Labels), merged(usual.Annotations, from.Annotations)
		into.Subjects = union(from.Subjects, usual.Subjects)
	}
	// The store writes the revision into the text, at a place that the text says.
	uid := into.UID
	into.UID, into.ResourceVersion = "$UID", "$RV"
	whole := step.NewTemplate(t.Key, string(encoded(&into)))
	return whole.Write(uid, "")
}

// merged returns the entries of both maps; those of the second prevail.
func merged(a, b map[string]string) map[string]string {
	out := map[string]string{}
	maps.Copy(out, a)
	maps.Copy(out, b)
	return out
}

// union returns a list and what of another it does not have, each once.
func union[T any](a, b []T) []T {
	out := slices.Clip(a)
	for _, v := range b {
		if !slices.ContainsFunc(out, func(other T) bool { return equality.Semantic.DeepEqual(v, other) }) {
			out = append(out, v)
		}
	}
	return out
}

// encoded returns an object as JSON.
func encoded(o *object) []byte {
	data, err := json.Marshal(o)
	if err != nil {
		panic("rbac: " + err.Error()) // there is nothing in it that cannot be encoded
	}
	return data
}

// resourceOf returns the resource whose objects are in a bucket.
func resourceOf(bucket string) step.Resource {
	return step.Resource{
		Bucket: bucket, Group: rbacv1.GroupName, Version: "v1", Plural: bucket[len(rbacv1.GroupName)+1:],
		Namespaced: bucket == roles || bucket == roleBindings,
	}
}

// apply returns the request that applies a configuration of a cluster role.
func apply(user string, about storage.Key, manager string, configuration []byte) step.Request {
	return step.Request{
		User: user, Method: http.MethodPatch, Path: resourceOf(clusterRoles).Object(about), ContentType: "application/apply-patch+yaml",
		Query: map[string][]string{"fieldManager": {manager}, "force": {"true"}},
		Body:  configuration, Subject: step.Subject{Key: about},
	}
}
