// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package namespace empties the namespaces that are being deleted, and guards
// what may be created in which.
//
// The [Emptier] is a [step.Controller]. For every namespace that terminates it
// asks for the deletion of what is in it, pods first; while something stays it
// keeps the conditions of the namespace up to date; when nothing is left it
// takes the finalizer kubernetes from the namespace's spec, and with it the
// namespace.
//
// The [Lifecycle] is the admission that refuses to create anything in a
// namespace that does not exist or terminates, and to delete those that a
// cluster cannot be without.
package namespace

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Bucket holds the namespaces in the store.
const Bucket = "namespaces"

// podsBucket is emptied before all others, so that what pods need outlives them.
const podsBucket = "pods"

// Emptier is the namespace controller.
type Emptier struct {
	catalog step.Catalog
	decode  step.Decoder
	// terminating namespaces by name.
	terminating map[string]*termination
}

// termination is what is known about one namespace that is being deleted.
type termination struct {
	// due reports that it has to be looked at in the next step.
	due bool
	// failures holds the last error per resource whose objects could not be
	// deleted.
	failures map[string]string
}

var _ step.Controller = (*Emptier)(nil)

// New returns an emptier for the resources of a catalog.
func New(catalog step.Catalog, decode step.Decoder) *Emptier {
	return &Emptier{catalog: catalog, decode: decode, terminating: map[string]*termination{}}
}

// Name implements [step.Controller].
func (n *Emptier) Name() string { return "namespace-controller" }

// Reset implements [step.Controller].
func (n *Emptier) Reset(view storage.View) {
	clear(n.terminating)
	for rec := range view.Ascend(Bucket, "", "") {
		n.note(rec, false)
	}
}

// Concerns implements [step.Controller].
func (n *Emptier) Concerns(e storage.Event) bool {
	if e.Record.Key.Bucket == Bucket {
		return true
	}
	if len(n.terminating) == 0 {
		return false
	}
	namespace, _ := step.SplitName(e.Record.Key.Name)
	return n.terminating[namespace] != nil
}

// Observe implements [step.Controller].
func (n *Emptier) Observe(e storage.Event) {
	key := e.Record.Key
	if key.Bucket == Bucket {
		n.note(e.Record, e.Deleted)
		return
	}
	namespace, _ := step.SplitName(key.Name)
	if t := n.terminating[namespace]; t != nil {
		t.due = true
	}
}

// note follows one namespace.
func (n *Emptier) note(rec *storage.Record, deleted bool) {
	name := rec.Key.Name
	if deleted {
		delete(n.terminating, name)
		return
	}
	obj := n.decode(rec)
	if obj == nil || !obj.Deleting {
		return // nothing brings a terminating namespace back
	}
	t := n.terminating[name]
	if t == nil {
		t = &termination{failures: map[string]string{}}
		n.terminating[name] = t
	}
	t.due = true
}

// Step implements [step.Controller].
func (n *Emptier) Step(view storage.View, now time.Time) []step.Request {
	var out []step.Request
	for _, name := range slices.Sorted(maps.Keys(n.terminating)) {
		t := n.terminating[name]
		if !t.due {
			continue
		}
		t.due = false
		out = append(out, n.look(view, name, t, now)...)
	}
	return out
}

// Report implements [step.Controller].
func (n *Emptier) Report(r step.Request, err error) {
	t := n.terminating[r.Subject.Key.Name]
	if t == nil {
		return
	}
	if r.Method != http.MethodDelete {
		t.due = t.due || err != nil
		return
	}
	if err == nil {
		delete(t.failures, r.Subject.Detail)
		return
	}
	t.failures[r.Subject.Detail] = err.Error()
	t.due = true
}

// look returns what one terminating namespace calls for.
func (n *Emptier) look(view storage.View, name string, t *termination, now time.Time) []step.Request {
	rec := view.Get(storage.Key{Bucket: Bucket, Name: name})
	if rec == nil {
		return nil
	}
	ns := &corev1.Namespace{}
	if err := json.Unmarshal(rec.Value, ns); err != nil || !slices.Contains(ns.Spec.Finalizers, corev1.FinalizerKubernetes) {
		return nil // finalized by us; others hold it
	}
	about := step.Subject{Key: rec.Key}
	left := n.contents(view, name)
	requests := deletions(left, name, about)
	changed := settle(ns, left, t.failures, now)
	switch {
	case len(requests) > 0 && len(t.failures) == 0:
		return requests
	case changed:
		// The conditions come first: they say what is kept waiting, and why.
		body, _ := json.Marshal(ns) // was decoded from JSON: cannot fail
		return append([]step.Request{step.Put(step.NamespaceController, "/api/v1/namespaces/"+name+"/status", body, about)}, requests...)
	case len(requests) > 0:
		return requests
	case len(left) > 0:
		return nil // waits for finalizers
	}
	ns.Spec.Finalizers = slices.DeleteFunc(ns.Spec.Finalizers, func(f corev1.FinalizerName) bool { return f == corev1.FinalizerKubernetes })
	body, _ := json.Marshal(ns)
	return []step.Request{step.Put(step.NamespaceController, "/api/v1/namespaces/"+name+"/finalize", body, about)}
}

// content is what a namespace holds of one resource.
type content struct {
	resource step.Resource
	// total objects, and how many of those have no deletionTimestamp yet.
	total, untouched int
	// finalizers, with the number of objects that carry them.
	finalizers map[string]int
}

// contents returns what is in a namespace. While there are pods, it looks no
// further.
func (n *Emptier) contents(view storage.View, namespace string) []content {
	if pods, ok := n.catalog.Bucket(podsBucket); ok {
		if c := n.count(view, pods, namespace); c.total > 0 {
			return []content{c}
		}
	}
	var out []content
	for r := range n.catalog.Resources() {
		if !r.Namespaced {
			continue
		}
		if c := n.count(view, r, namespace); c.total > 0 {
			out = append(out, c)
		}
	}
	return out
}

func (n *Emptier) count(view storage.View, r step.Resource, namespace string) content {
	c := content{resource: r, total: view.Count(r.Bucket, namespace+"/", "")}
	if c.total == 0 {
		return c
	}
	c.finalizers = map[string]int{}
	for rec := range view.Ascend(r.Bucket, namespace+"/", "") {
		obj := n.decode(rec)
		if obj == nil || !obj.Deleting {
			c.untouched++
		}
		if obj != nil {
			for _, f := range obj.Finalizers {
				c.finalizers[f]++
			}
		}
	}
	return c
}

// deletions returns the requests that delete the objects without a deletionTimestamp.
func deletions(left []content, namespace string, about step.Subject) []step.Request {
	background := metav1.DeletePropagationBackground
	body, _ := json.Marshal(&metav1.DeleteOptions{ // plain data: cannot fail
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: &background,
	})
	var out []step.Request
	for _, c := range left {
		if c.untouched > 0 {
			about.Detail = c.resource.GroupResource()
			out = append(out, step.Delete(step.NamespaceController, c.resource.Collection(namespace), body, about))
		}
	}
	return out
}
