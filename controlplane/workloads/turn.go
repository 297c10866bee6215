// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package workloads

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

// turn is one step of the controller: what is looked at in it, and the requests
// that come of it.
type turn struct {
	*Controller
	view     storage.View
	now      time.Time
	requests []step.Request
	// written holds the objects that the requests change.
	written step.KeySet
}

// look decides over one object.
func (t *turn) look(key storage.Key) {
	switch key.Bucket {
	case nodes:
		t.lookNode(key)
	case pods:
		t.lookPod(key)
	case replicaSets, controllers:
		t.lookReplicaSet(key)
	case deployments:
		t.lookDeployment(key)
	case jobs:
		t.lookJob(key)
	case statefulSets:
		t.lookStatefulSet(key)
	case daemonSets:
		t.lookDaemonSet(key)
	case cronJobs:
		t.lookCronJob(key)
	case claims:
		t.lookClaim(key)
	case volumes:
		t.lookVolume(key)
	}
}

// patience is the least time between looks at an object that nothing changes.
const patience = 100 * time.Millisecond

// later has an object looked at when a time has come.
func (t *turn) later(key storage.Key, at time.Time) {
	if at.IsZero() {
		return
	}
	if !at.After(t.now) {
		at = t.now.Add(patience) // it was looked at just now
	}
	if set, ok := t.timers[key]; !ok || at.Before(set) {
		t.timers[key] = at
	}
}

// stored reads an object; nil when it is gone.
func stored[T any](t *turn, key storage.Key) *T {
	rec := t.view.Get(key)
	if rec == nil {
		return nil
	}
	obj := new(T)
	if step.Decode(rec, obj) != nil {
		return nil
	}
	return obj
}

// resourceOf returns how the objects of a bucket are called.
func resourceOf(bucket string) step.Resource {
	r := step.Resource{Bucket: bucket, Version: "v1", Plural: bucket, Namespaced: true}
	switch bucket {
	case nodes, volumes:
		r.Namespaced = false
	case replicaSets, deployments, statefulSets, daemonSets, revisions:
		r.Group, r.Plural = "apps", bucket[len("apps/"):]
	case jobs, cronJobs:
		r.Group, r.Plural = "batch", bucket[len("batch/"):]
	}
	return r
}

// creation is the detail of requests that create something for their subject.
const creation = "create"

func (t *turn) send(r step.Request) { t.requests = append(t.requests, r) }

// create creates an object in a bucket on behalf of an owner.
func (t *turn) create(user string, owner storage.Key, bucket string, obj step.Typed) {
	namespace := ""
	r := resourceOf(bucket)
	if r.Namespaced {
		if namespace, _ = step.SplitName(owner.Name); t.terminating(namespace) {
			return // nothing can be made in it any more
		}
	}
	t.send(step.Request{
		User: user, Method: http.MethodPost, Path: r.Collection(namespace), ContentType: step.Protobuf, Body: step.Encode(obj),
		Subject: step.Subject{Key: owner, Detail: creation},
	})
}

// terminating tells whether a namespace is being deleted.
func (t *turn) terminating(namespace string) bool {
	rec := t.view.Get(storage.Key{Bucket: "namespaces", Name: namespace})
	if rec == nil {
		return false
	}
	o := read(rec)
	return o != nil && o.deleting
}

// update replaces an object, or a subresource of it.
func (t *turn) update(user string, key storage.Key, subresource string, obj step.Typed) {
	path := resourceOf(key.Bucket).Object(key)
	if subresource != "" {
		path += "/" + subresource
	}
	t.written.Add(key)
	t.send(step.Request{
		User: user, Method: http.MethodPut, Path: path, ContentType: step.Protobuf, Body: step.Encode(obj), Subject: step.Subject{Key: key},
	})
}

// patch merges a document into an object on behalf of another.
func (t *turn) patch(user string, about, key storage.Key, document any) {
	body, _ := json.Marshal(document)
	t.written.Add(key)
	t.send(step.Patch(user, resourceOf(key.Bucket).Object(key), body, step.Subject{Key: about}))
}

// delete deletes an object as it was seen, on behalf of another.
func (t *turn) delete(user string, about storage.Key, o *object, options metav1.DeleteOptions) {
	options.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"}
	options.Preconditions = &metav1.Preconditions{UID: &o.uid}
	body, _ := json.Marshal(&options)
	t.written.Add(o.key)
	t.send(step.Delete(user, resourceOf(o.key.Bucket).Object(o.key), body, step.Subject{Key: about}))
}

// claim returns the objects of a bucket that an owner controls, after it has
// adopted those that it selects and let go of those that it no longer does.
func (t *turn) claim(user string, self *object, gvk schema.GroupVersionKind, bucket string, selector labels.Selector) []*object {
	var out []*object
	for _, o := range t.index.childrenOf(self.uid, bucket) {
		if selector.Matches(labels.Set(o.labels)) {
			out = append(out, o)
			continue
		}
		if !self.deleting && !o.deleting {
			t.patch(user, self.key, o.key, map[string]any{"metadata": map[string]any{
				"uid": o.uid, "ownerReferences": []any{map[string]any{"$patch": "delete", "uid": self.uid}},
			}})
			t.requests[len(t.requests)-1].ContentType = string(types.StrategicMergePatchType)
		}
	}
	if self.deleting || selector.Empty() {
		return out
	}
	namespace, name := step.SplitName(self.key.Name)
	for _, key := range t.index.orphans[namespace].Sorted() {
		o := t.index.objects[key]
		if key.Bucket != bucket || o.deleting || !selector.Matches(labels.Set(o.labels)) {
			continue
		}
		t.patch(user, self.key, key, map[string]any{"metadata": map[string]any{
			"uid": o.uid, "ownerReferences": []metav1.OwnerReference{reference(gvk, name, self.uid)},
		}})
		t.requests[len(t.requests)-1].ContentType = string(types.StrategicMergePatchType)
	}
	return out
}

// reference is what makes an object a controlled one.
func reference(gvk schema.GroupVersionKind, name string, uid types.UID) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: name, UID: uid, Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

// stamp is the time of the turn as objects keep it.
func (t *turn) stamp() metav1.Time { return metav1.NewTime(t.now).Rfc3339Copy() }
