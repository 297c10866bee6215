// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster indexes the objects that the controllers of workloads read, and
// collects the requests and Events of their steps. A [Memory] lasts, a [Turn] is one step.
package cluster

import (
	"encoding/json"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// Turn is the state of the cluster in one step of the controllers, and the requests of the
// step.
type Turn struct {
	*Memory
	View     storage.View
	Now      time.Time
	Requests []step.Request
	// Written holds the objects that the requests change.
	Written step.KeySet
	// futile is set if the last request was left out because it would be refused.
	futile bool
}

// Memory is what controllers keep between their steps.
type Memory struct {
	*UnderWay
	Index *Index
	// Due holds the objects that the next step looks at, Timers those that a step looks at
	// once their time has come.
	Due    step.KeySet
	Timers step.Alarms
	// Failures holds the errors of creations by the owners of the objects.
	Failures map[storage.Key]string
	eventLog eventLog
}

// NewMemory returns a memory without objects.
func NewMemory() *Memory {
	m := &Memory{UnderWay: newUnderWay()}
	m.Forget()
	return m
}

// Forget makes it a memory without objects again. Requests remain under way.
func (m *Memory) Forget() {
	*m = Memory{
		UnderWay: m.UnderWay,
		Index:    newIndex(), Due: step.KeySet{}, Timers: step.Alarms{}, Failures: map[storage.Key]string{},
		eventLog: eventLog{told: map[entryKey]*told{}},
	}
}

// Begin begins a step.
func (m *Memory) Begin(view storage.View, now time.Time) *Turn {
	return &Turn{Memory: m, View: view, Now: now, Written: step.KeySet{}}
}

// End ends a step, and returns its requests.
func (t *Turn) End() []step.Request {
	t.send(t.Requests)
	return t.Requests
}

// patience is the least time between two looks at an unchanged object.
const patience = 100 * time.Millisecond

// Later makes an object due at a time.
func (t *Turn) Later(key storage.Key, at time.Time) {
	if at.IsZero() {
		return
	}
	if !at.After(t.Now) {
		at = t.Now.Add(patience) // this step looks at the object already
	}
	if set, ok := t.Timers[key]; !ok || at.Before(set) {
		t.Timers[key] = at
	}
}

// Stored reads an object; nil when it is gone.
func Stored[T any](t *Turn, key storage.Key) *T {
	rec := t.View.Get(key)
	if rec == nil {
		return nil
	}
	obj := new(T)
	if step.Decode(rec, obj) != nil {
		return nil
	}
	return obj
}

// ResourceOf returns the resource of a bucket.
func ResourceOf(bucket string) step.Resource {
	r := step.Resource{Bucket: bucket, Version: "v1", Plural: bucket, Namespaced: true}
	switch bucket {
	case Nodes, Volumes:
		r.Namespaced = false
	case ReplicaSets, Deployments, StatefulSets, DaemonSets, Revisions:
		r.Group, r.Plural = "apps", bucket[len("apps/"):]
	case EndpointSlices:
		r.Group, r.Plural = "discovery.k8s.io", "endpointslices"
	case Leases:
		r.Group, r.Plural = "coordination.k8s.io", "leases"
	case Jobs, CronJobs:
		r.Group, r.Plural = "batch", bucket[len("batch/"):]
	}
	return r
}

// Creation is the detail of requests that create something for their subject.
const Creation = "create"

// Send adds a request.
func (t *Turn) Send(r step.Request) {
	t.begin(&r)
	t.Requests, t.futile = append(t.Requests, r), false
}

// Write adds a request that changes an object.
func (t *Turn) Write(key storage.Key, r step.Request) {
	t.Send(r)
	t.Written.Add(key)
	t.requests[t.number].writes = key
}

// Create creates an object in a bucket on behalf of an owner.
func (t *Turn) Create(user string, owner storage.Key, bucket string, obj step.Typed) {
	namespace := ""
	r := ResourceOf(bucket)
	if r.Namespaced {
		if namespace, _ = step.SplitName(owner.Name); t.terminating(namespace) {
			t.futile = true
			return // no object can be created in it any more
		}
	}
	t.Send(step.Request{
		User: user, Method: http.MethodPost, Path: r.Collection(namespace), ContentType: step.Protobuf, Body: step.Encode(obj),
		Subject: step.Subject{Key: owner, Detail: Creation},
	})
}

// terminating reports whether a namespace is being deleted.
func (t *Turn) terminating(namespace string) bool {
	rec := t.View.Get(storage.Key{Bucket: "namespaces", Name: namespace})
	if rec == nil {
		return false
	}
	o := read(rec)
	return o != nil && o.Deleting
}

// Update replaces an object, or a subresource of it.
func (t *Turn) Update(user string, key storage.Key, subresource string, obj step.Typed) {
	path := ResourceOf(key.Bucket).Object(key)
	if subresource != "" {
		path += "/" + subresource
	}
	t.Write(key, step.Request{
		User: user, Method: http.MethodPut, Path: path, ContentType: step.Protobuf, Body: step.Encode(obj), Subject: step.Subject{Key: key},
	})
}

// Patch merges a document into an object on behalf of another.
func (t *Turn) Patch(user string, about, key storage.Key, document any) {
	body, _ := json.Marshal(document)
	t.Write(key, step.Patch(user, ResourceOf(key.Bucket).Object(key), body, step.Subject{Key: about}))
}

// Delete deletes an object as it was seen, on behalf of another.
func (t *Turn) Delete(user string, about storage.Key, o *Object, options metav1.DeleteOptions) {
	options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	options.Preconditions = &metav1.Preconditions{UID: &o.UID}
	body, _ := json.Marshal(&options)
	t.Write(o.Key, step.Delete(user, ResourceOf(o.Key.Bucket).Object(o.Key), body, step.Subject{Key: about}))
}

// Claim returns the objects of a bucket that an owner controls. It requests the adoption of
// those that it selects, and the release of those that it no longer does.
func (t *Turn) Claim(user string, self *Object, gvk schema.GroupVersionKind, bucket string, selector labels.Selector) []*Object {
	var out []*Object
	for _, o := range t.Index.ChildrenOf(self.UID, bucket) {
		if selector.Matches(labels.Set(o.Labels)) {
			out = append(out, o)
			continue
		}
		if !self.Deleting && !o.Deleting {
			t.Patch(user, self.Key, o.Key, map[string]any{"metadata": map[string]any{
				"uid": o.UID, "ownerReferences": []any{map[string]any{"$patch": "delete", "uid": self.UID}},
			}})
			t.Requests[len(t.Requests)-1].ContentType = string(types.StrategicMergePatchType)
		}
	}
	if self.Deleting || selector.Empty() {
		return out
	}
	namespace, name := step.SplitName(self.Key.Name)
	for _, key := range t.Index.orphans[namespace].Sorted() {
		o := t.Index.Objects[key]
		if key.Bucket != bucket || o.Deleting || !selector.Matches(labels.Set(o.Labels)) {
			continue
		}
		t.Patch(user, self.Key, key, map[string]any{"metadata": map[string]any{
			"uid": o.UID, "ownerReferences": []metav1.OwnerReference{Reference(gvk, name, self.UID)},
		}})
		t.Requests[len(t.Requests)-1].ContentType = string(types.StrategicMergePatchType)
	}
	return out
}

// Reference returns the owner reference of a controller.
func Reference(gvk schema.GroupVersionKind, name string, uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// Stamp is the time of the step in the precision of objects.
func (t *Turn) Stamp() metav1.Time { return metav1.NewTime(t.Now).Rfc3339Copy() }
