// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/internal/jsontext"
	"github.com/steer-dev/steer/storage"
)

// target is what an autoscaler scales.
type target struct {
	resource step.Resource
	key      storage.Key
	version  string // the resourceVersion
	replicas int32  // of its specification
	running  int32  // of its status
	// selector of its Pods, as text; empty: it has none.
	selector string
}

// find returns the target of an autoscaler, or else why there is none, and follows it. Of one
// that another server has, only the resource and the key are known: see [look.ask].
func (c *Controller) find(view storage.View, key storage.Key, obj *autoscalingv2.HorizontalPodAutoscaler) (t target, why string) {
	ref := &obj.Spec.ScaleTargetRef
	r, ok := c.kindOf(ref.APIVersion, ref.Kind)
	if !ok {
		c.follow(key, storage.Key{})
		c.lost.Add(key)
		return t, fmt.Sprintf("no matches for kind %q in group %q", ref.Kind, schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group)
	}
	delete(c.lost, key)
	t.resource, t.key = r, r.Key(obj.Namespace, ref.Name)
	c.follow(key, t.key)
	missing := fmt.Sprintf("%s %q not found", named(r), ref.Name)
	if step.IsElsewhere(t.key) {
		if !step.IsPlainName(ref.Name) {
			return t, missing
		}
		return t, ""
	}
	at := pathsOf(view, r)
	if at.replicas == "" {
		return t, "the server could not find the requested resource"
	}
	rec := view.Get(t.key)
	if rec == nil {
		return t, missing
	}
	t.version = strconv.FormatInt(int64(rec.Modified), 10)
	t.replicas, t.running = number(rec, at.replicas), number(rec, at.running)
	t.selector = at.selected(rec)
	return t, ""
}

// kindOf returns the resource of a kind, here or at another server, in its version or else in
// any.
func (c *Controller) kindOf(apiVersion, kind string) (step.Resource, bool) {
	others := c.catalog.Elsewhere()
	if r, ok := c.catalog.Kind(apiVersion, kind); ok {
		return r, true
	}
	if r, ok := others.Kind(apiVersion, kind); ok {
		return r, true
	}
	group := schema.FromAPIVersionAndKind(apiVersion, kind).Group
	is := func(r step.Resource) bool { return r.Group == group && r.Kind == kind }
	for r := range c.catalog.Resources() {
		if is(r) {
			return r, true
		}
	}
	if at := slices.IndexFunc(others.Resources, is); at >= 0 {
		return others.Resources[at], true
	}
	return step.Resource{}, false
}

// asked is the answer of another server for the scale of a target.
type asked struct {
	target storage.Key
	scale  autoscalingv1.Scale
	err    error
}

// ask returns the request that reads the scale of a target of another server. No event reports
// its changes: it is read every period.
func (l *look) ask(t target) step.Request {
	p, fetch := l.scaler.pass, l.controller.fetch
	into := &asked{target: t.key}
	p.stage, p.asked, l.scaler.next = asking, into, l.now.Add(period)
	_, name := step.SplitName(t.key.Name)
	of := schema.GroupResource{Group: t.resource.Group, Resource: t.resource.Plural}
	return step.Request{
		User: user, Method: http.MethodGet, Path: t.path(), Subject: step.Subject{Key: l.key, Detail: "target"},
		Do: func(ctx context.Context) error {
			ctx, cancel := context.WithTimeout(ctx, readTimeout)
			defer cancel()
			into.err = get(ctx, fetch, t.path(), nil, of, name, &into.scale)
			return nil // that a server does not answer is no failure of this controller
		},
	}
}

// path is that of its scale.
func (t target) path() string { return t.resource.Object(t.key) + "/scale" }

func number(rec *storage.Record, path string) int32 {
	n, _ := strconv.ParseInt(string(member(rec.Value, path)), 10, 32) // 0 if nothing is said
	return int32(n)
}

// paths are where objects of a resource say how many replicas there should be and are, and
// which Pods are theirs; empty if they do not.
type paths struct{ replicas, running, selector string }

// selected returns the selector of an object as text: that of a definition's kind is text, those
// of built-in kinds are LabelSelectors, but for ReplicationControllers.
func (p paths) selected(rec *storage.Record) string {
	raw := member(rec.Value, p.selector)
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	if rec.Key.Bucket == "replicationcontrollers" {
		var set labels.Set
		_ = json.Unmarshal(raw, &set) // what is stored is valid
		return set.String()
	}
	var s metav1.LabelSelector
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return ""
	}
	return selector.String()
}

func pathsOf(view storage.View, r step.Resource) paths {
	if r.Group == "apps" && slices.Contains([]string{"deployments", "replicasets", "statefulsets"}, r.Plural) || r.Group == "" && r.Plural == "replicationcontrollers" {
		return paths{".spec.replicas", ".status.replicas", ".spec.selector"}
	}
	rec := view.Get(storage.Key{Bucket: definitions, Name: r.GroupResource()})
	if rec == nil {
		return paths{}
	}
	var d struct {
		Spec struct {
			Versions []struct {
				Name         string `json:"name"`
				Subresources struct {
					Scale *struct {
						Replicas string `json:"specReplicasPath"`
						Running  string `json:"statusReplicasPath"`
						Selector string `json:"labelSelectorPath"`
					} `json:"scale"`
				} `json:"subresources"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if step.Decode(rec, &d) != nil {
		return paths{}
	}
	for _, v := range d.Spec.Versions {
		if s := v.Subresources.Scale; v.Name == r.Version && s != nil {
			return paths{s.Replicas, s.Running, s.Selector}
		}
	}
	return paths{}
}

// member returns what stands at a path such as ".spec.replicas", nil if nothing does.
func member(object []byte, path string) []byte {
	if path == "" {
		return nil
	}
	for name := range strings.SplitSeq(strings.TrimPrefix(path, "."), ".") {
		object = jsontext.Raw(object, name)
	}
	return object
}

// podsOf returns the Pods of a namespace that a selector selects, by name.
func podsOf(view storage.View, namespace string, selector labels.Selector) []*corev1.Pod {
	var out []*corev1.Pod
	for rec := range view.Ascend("pods", namespace+"/", "") {
		p := &corev1.Pod{}
		if step.Decode(rec, p) == nil && selector.Matches(labels.Set(p.Labels)) {
			out = append(out, p)
		}
	}
	return out
}

// resourceOf returns the name of the resource of a kind, in any version.
func (c *Controller) resourceOf(apiVersion, kind string) (string, error) {
	if r, ok := c.kindOf(apiVersion, kind); ok {
		return named(r), nil
	}
	gk := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
	return "", fmt.Errorf("unable to map kind %s to resource: no matches for kind %q in group %q", gk, gk.Kind, gk.Group)
}

// named returns the name of a resource in messages and paths: "plural.group", "plural" of the core group.
func named(r step.Resource) string {
	return schema.GroupResource{Group: r.Group, Resource: r.Plural}.String()
}
