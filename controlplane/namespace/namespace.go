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
//
// What other servers have in a namespace is deleted as well; see [Emptier.sweep].
type Emptier struct {
	catalog step.Catalog
	decode  step.Decoder
	fetch   step.Fetcher
	// terminating namespaces by name.
	terminating map[string]*termination
	// underWay are the numbers of requests that are not reported, by namespace.
	underWay   map[string]int
	generation uint64 // of the catalog, as it was in the last step
}

// termination is what is known about one namespace that is being deleted.
type termination struct {
	// due reports that it has to be looked at in the next step.
	due bool
	// failures holds the last error per resource whose objects could not be
	// deleted.
	failures map[string]string
	elsewhere
}

var (
	_ step.Pipelined = (*Emptier)(nil)
	_ step.Waker     = (*Emptier)(nil)
)

// New returns an emptier for the resources of a catalog. fetch reaches those of other servers.
func New(catalog step.Catalog, decode step.Decoder, fetch step.Fetcher) *Emptier {
	return &Emptier{catalog: catalog, decode: decode, fetch: fetch, terminating: map[string]*termination{}, underWay: map[string]int{}}
}

// Pipelined implements [step.Pipelined]: another server that does not answer delays the
// namespaces alone that it may have objects in.
func (*Emptier) Pipelined() {}

// Name implements [step.Controller].
func (n *Emptier) Name() string { return "namespace-controller" }

// Reset implements [step.Controller].
func (n *Emptier) Reset(view storage.View) {
	clear(n.terminating)
	for rec := range view.Ascend(Bucket, "", "") {
		n.note(rec, false)
	}
}

// Filter implements [step.Controller].
func (n *Emptier) Filter(e storage.Event) bool {
	if e.Record.Key.Bucket == Bucket {
		return true
	}
	if len(n.terminating) == 0 {
		return false
	}
	namespace, _ := step.SplitName(e.Record.Key.Name)
	return n.terminating[namespace] != nil
}

// Handle implements [step.Controller].
func (n *Emptier) Handle(e storage.Event) {
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
		t = &termination{failures: map[string]string{}, elsewhere: elsewhere{swept: map[string]*swept{}}}
		n.terminating[name] = t
	}
	t.due = true
}

// Sync implements [step.Controller].
func (n *Emptier) Sync(view storage.View, now time.Time) []step.Request {
	var out []step.Request
	generation := n.catalog.Generation()
	changed := generation != n.generation
	n.generation = generation
	for _, name := range slices.Sorted(maps.Keys(n.terminating)) {
		t := n.terminating[name]
		if changed {
			t.due, t.anew = true, true
		}
		if t.rings(now) {
			t.due = true
		}
		if !t.due || n.underWay[name] > 0 {
			continue
		}
		t.due = false
		requests := n.look(view, name, t, now)
		if len(requests) > 0 {
			n.underWay[name] = len(requests)
		}
		out = append(out, requests...)
	}
	return out
}

// Wake implements [step.Waker].
func (n *Emptier) Wake() time.Time {
	var first time.Time
	for name, t := range n.terminating {
		if at := t.again; !at.IsZero() && n.underWay[name] == 0 && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Done implements [step.Controller].
func (n *Emptier) Done(r step.Request, err error) {
	name := r.Subject.Key.Name
	if n.underWay[name]--; n.underWay[name] <= 0 {
		delete(n.underWay, name)
	}
	t := n.terminating[name]
	if t == nil {
		return
	}
	if r.Do != nil {
		t.due = true
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
	t.failures[r.Subject.Detail] = said(err)
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
	stale := n.catalog.Elsewhere().Stale
	var sweeps []step.Request
	if len(left) == 0 || left[0].resource.Bucket != podsBucket {
		sweeps = n.sweeps(&t.elsewhere, name, about)
		requests = append(requests, sweeps...)
	}
	others, failures := t.left(t.failures)
	left = append(left, others...)
	changed := settle(ns, left, failures, stale, now)
	if len(sweeps) == 0 { // else once their outcomes are known
		t.schedule(now, len(stale) > 0)
	}
	switch {
	case len(requests) > 0 && len(failures) == 0:
		return requests
	case changed:
		// The conditions come first: they say what is kept waiting, and why.
		body, _ := json.Marshal(ns) // was decoded from JSON: cannot fail
		return append([]step.Request{step.Put(step.NamespaceController, "/api/v1/namespaces/"+name+"/status", body, about)}, requests...)
	case len(requests) > 0:
		return requests
	case len(left)+len(failures)+len(stale) > 0:
		return nil // waits for finalizers, or for other servers
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
	var out []step.Request
	for _, c := range left {
		if c.untouched > 0 {
			about.Detail = c.resource.GroupResource()
			out = append(out, step.Delete(step.NamespaceController, c.resource.Collection(namespace), inBackground(), about))
		}
	}
	return out
}

// inBackground are the options of all deletions.
func inBackground() []byte {
	background := metav1.DeletePropagationBackground
	body, _ := json.Marshal(&metav1.DeleteOptions{ // plain data: cannot fail
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		PropagationPolicy: &background,
	})
	return body
}
