// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package gc

import (
	"encoding/json"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/internal/step"
	"github.com/steer-dev/steer/storage"
)

// look returns the requests that the state of one object calls for.
func (c *Collector) look(view storage.View, key storage.Key) []step.Request {
	resource, ok := c.catalog.Bucket(key.Bucket)
	if !ok {
		c.stuck.Add(key)
		return nil
	}
	rec, obj := c.get(view, key)
	if obj == nil {
		return nil
	}
	item := item{resource: resource, key: key, record: rec, object: obj}
	switch {
	case obj.Deleting && obj.Has(metav1.FinalizerOrphanDependents):
		return c.orphan(view, item)
	case obj.Deleting && obj.Has(metav1.FinalizerDeleteDependents):
		return c.awaitDependents(view, item)
	case obj.Deleting || len(obj.Owners) == 0:
		return nil
	}
	return c.collect(view, item)
}

// item is the object that is being looked at.
type item struct {
	resource step.Resource
	key      storage.Key
	record   *storage.Record
	object   *step.Object
}

// orphan removes the references to a deleted object from its dependents, then its
// finalizer.
func (c *Collector) orphan(view storage.View, owner item) []step.Request {
	dependents := c.dependents(view, owner.key, owner.object.UID)
	if len(dependents) == 0 {
		return []step.Request{owner.removeFinalizer(metav1.FinalizerOrphanDependents)}
	}
	var out []step.Request
	for _, d := range dependents {
		if resource, ok := c.catalog.Bucket(d.key.Bucket); ok {
			child := item{resource: resource, key: d.key, record: d.record, object: d.object}
			request := child.dropOwners(owner.object.UID)
			request.Subject.Key = owner.key // the owner waits for the outcome
			out = append(out, request)
		}
	}
	return out
}

// awaitDependents removes the finalizer of an owner that no
// dependent blocks any more. Dependents that block it are due themselves.
func (c *Collector) awaitDependents(view storage.View, owner item) []step.Request {
	blocked := false
	var out []step.Request
	for _, d := range c.dependents(view, owner.key, owner.object.UID) {
		blocked = blocked || d.blocks
	}
	if !blocked {
		out = append(out, owner.removeFinalizer(metav1.FinalizerDeleteDependents))
	}
	return out
}

// collect deletes an object whose owners are all gone, or removes its references to absent ones.
func (c *Collector) collect(view storage.View, it item) []step.Request {
	var solid, absent, waiting []types.UID
	for _, ref := range it.object.Owners {
		key, ok := c.ownerKey(it.key, ref)
		if !ok {
			c.stuck.Add(it.key)
			return nil
		}
		_, owner := c.get(view, key)
		switch {
		case owner == nil || owner.UID != ref.UID:
			absent = append(absent, ref.UID)
		case owner.Deleting && owner.Has(metav1.FinalizerDeleteDependents):
			waiting = append(waiting, ref.UID)
		default:
			solid = append(solid, ref.UID)
		}
	}
	switch {
	case len(solid) > 0 && len(absent)+len(waiting) == 0:
		return nil
	case len(solid) > 0:
		return []step.Request{it.dropOwners(slices.Concat(absent, waiting)...)}
	case len(waiting) > 0:
		return c.deleteForWaitingOwner(view, it)
	case it.object.Has(metav1.FinalizerOrphanDependents):
		return []step.Request{it.delete(metav1.DeletePropagationOrphan)}
	case it.object.Has(metav1.FinalizerDeleteDependents):
		return []step.Request{it.delete(metav1.DeletePropagationForeground)}
	}
	return []step.Request{it.delete(metav1.DeletePropagationBackground)}
}

// deleteForWaitingOwner deletes an object whose owner waits for it: in the
// foreground when it has dependents of its own. If one of those is itself being deleted in the
// foreground, owner and dependents may form a cycle, which is broken by no longer
// blocking the owner.
func (c *Collector) deleteForWaitingOwner(view storage.View, it item) []step.Request {
	dependents := c.dependents(view, it.key, it.object.UID)
	if len(dependents) == 0 {
		return []step.Request{it.delete(metav1.DeletePropagationBackground)}
	}
	blocking := slices.ContainsFunc(it.object.Owners, func(r metav1.OwnerReference) bool {
		return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	})
	if blocking && slices.ContainsFunc(dependents, func(d dependent) bool {
		return d.object.Deleting && d.object.Has(metav1.FinalizerDeleteDependents)
	}) {
		return []step.Request{it.unblockOwners()}
	}
	return []step.Request{it.delete(metav1.DeletePropagationForeground)}
}

func (it item) subject(detail string) step.Subject { return step.Subject{Key: it.key, Detail: detail} }

func (it item) revision() string { return strconv.FormatInt(int64(it.record.Modified), 10) }

// delete deletes the object as it was seen.
func (it item) delete(policy metav1.DeletionPropagation) step.Request {
	uid, revision := it.object.UID, it.revision()
	body, _ := json.Marshal(&metav1.DeleteOptions{ // plain data: cannot fail
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &revision},
		PropagationPolicy: &policy,
	})
	return step.Delete(step.GarbageCollector, it.resource.Object(it.key), body, it.subject("delete "+string(policy)))
}

// removeFinalizer removes one finalizer from the object as it was seen.
func (it item) removeFinalizer(name string) step.Request {
	return it.patch("remove finalizer "+name, "finalizers", it.object.Without(name))
}

// dropOwners removes references from the object as it was seen.
func (it item) dropOwners(uids ...types.UID) step.Request {
	var rest []metav1.OwnerReference
	for _, ref := range it.object.Owners {
		if !slices.Contains(uids, ref.UID) {
			rest = append(rest, ref)
		}
	}
	return it.patch("drop owners", "ownerReferences", rest)
}

// unblockOwners sets blockOwnerDeletion of all references of the object to false.
func (it item) unblockOwners() step.Request {
	refs := slices.Clone(it.object.Owners)
	for i := range refs {
		no := false
		refs[i].BlockOwnerDeletion = &no
	}
	return it.patch("unblock owners", "ownerReferences", refs)
}

// patch replaces one field of the metadata of the object as it was seen.
func (it item) patch(why, name string, value any) step.Request {
	body, _ := json.Marshal(map[string]any{"metadata": map[string]any{ // plain data: cannot fail
		"resourceVersion": it.revision(), "uid": it.object.UID, name: value,
	}})
	return step.Patch(step.GarbageCollector, it.resource.Object(it.key), body, it.subject(why))
}
