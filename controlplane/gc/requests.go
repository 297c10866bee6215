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
	resource, ok := c.resource(key)
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
		return []step.Request{c.sent(owner, owner.removeFinalizer(metav1.FinalizerOrphanDependents))}
	}
	var out []step.Request
	for _, d := range dependents {
		resource, ok := c.resource(d.key)
		if !ok {
			c.stuck.Add(owner.key)
			continue
		}
		child := item{resource: resource, key: d.key, record: d.record, object: d.object}
		request := child.dropOwners(owner.object.UID)
		request.Subject.Key = owner.key // the owner waits for the outcome
		out = append(out, c.sent(child, request))
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
		out = append(out, c.sent(owner, owner.removeFinalizer(metav1.FinalizerDeleteDependents)))
	}
	return out
}

// sent returns a request that changes an object: as it is to this server, with a function to
// another one.
func (c *Collector) sent(it item, r step.Request) step.Request {
	if step.IsElsewhere(it.key) {
		return c.changing(r)
	}
	return r
}

// owners are the owners of an object by their state.
type owners struct{ solid, absent, waiting []types.UID }

// ownersOf returns the owners of an object, or the requests by which other servers are asked
// for those whose state is not known.
func (c *Collector) ownersOf(view storage.View, it item) (o owners, ask []step.Request, ok bool) {
	for _, ref := range it.object.Owners {
		key, known := c.ownerKey(it.key, ref)
		if !known {
			return o, nil, false
		}
		_, owner := c.get(view, key)
		seen := owner != nil && owner.UID == ref.UID
		absent, answered := c.absent[ref.UID]
		switch {
		case !seen && step.IsElsewhere(key) && !answered:
			r, _ := c.resource(key) // its kind is served: see ownerKey
			ask = append(ask, c.ask(it.key, r, key, ref.UID))
		case !seen && (!step.IsElsewhere(key) || absent):
			o.absent = append(o.absent, ref.UID)
		case seen && owner.Deleting && owner.Has(metav1.FinalizerDeleteDependents):
			o.waiting = append(o.waiting, ref.UID)
		default:
			o.solid = append(o.solid, ref.UID)
		}
	}
	return o, ask, true
}

// collect deletes an object whose owners are all gone, or removes its references to absent ones.
func (c *Collector) collect(view storage.View, it item) []step.Request {
	o, ask, ok := c.ownersOf(view, it)
	switch {
	case !ok:
		c.stuck.Add(it.key)
		return nil
	case len(ask) > 0:
		return ask
	case len(o.solid) > 0 && len(o.absent)+len(o.waiting) == 0:
		return nil
	case len(o.solid) > 0:
		return []step.Request{c.sent(it, it.dropOwners(slices.Concat(o.absent, o.waiting)...))}
	case len(o.waiting) > 0:
		return []step.Request{c.sent(it, c.forWaitingOwner(view, it))}
	case it.object.Has(metav1.FinalizerOrphanDependents):
		return []step.Request{c.sent(it, it.delete(metav1.DeletePropagationOrphan))}
	case it.object.Has(metav1.FinalizerDeleteDependents):
		return []step.Request{c.sent(it, it.delete(metav1.DeletePropagationForeground))}
	}
	return []step.Request{c.sent(it, it.delete(metav1.DeletePropagationBackground))}
}

// forWaitingOwner deletes an object whose owner waits for it: in the
// foreground when it has dependents of its own. If one of those is itself being deleted in the
// foreground, owner and dependents may form a cycle, which is broken by no longer
// blocking the owner.
func (c *Collector) forWaitingOwner(view storage.View, it item) step.Request {
	dependents := c.dependents(view, it.key, it.object.UID)
	if len(dependents) == 0 {
		return it.delete(metav1.DeletePropagationBackground)
	}
	blocking := slices.ContainsFunc(it.object.Owners, func(r metav1.OwnerReference) bool {
		return r.BlockOwnerDeletion != nil && *r.BlockOwnerDeletion
	})
	if blocking && slices.ContainsFunc(dependents, func(d dependent) bool {
		return d.object.Deleting && d.object.Has(metav1.FinalizerDeleteDependents)
	}) {
		return it.unblockOwners()
	}
	return it.delete(metav1.DeletePropagationForeground)
}

func (it item) subject(detail string) step.Subject { return step.Subject{Key: it.key, Detail: detail} }

// revision is the resourceVersion of the object as it was seen.
func (it item) revision() string {
	if it.record == nil {
		return it.object.Revision
	}
	return strconv.FormatInt(int64(it.record.Modified), 10)
}

// delete deletes the object as it was seen.
func (it item) delete(policy metav1.DeletionPropagation) step.Request {
	uid, revision := it.object.UID, it.revision()
	options := &metav1.DeleteOptions{
		TypeMeta:          metav1.TypeMeta{APIVersion: "v1", Kind: "DeleteOptions"},
		Preconditions:     &metav1.Preconditions{UID: &uid, ResourceVersion: &revision},
		PropagationPolicy: &policy,
	}
	if revision == "" { // of another server that has none
		options.Preconditions.ResourceVersion = nil
	}
	body, _ := json.Marshal(options) // plain data: cannot fail
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
	metadata := map[string]any{"uid": it.object.UID, name: value}
	if revision := it.revision(); revision != "" {
		metadata["resourceVersion"] = revision
	}
	body, _ := json.Marshal(map[string]any{"metadata": metadata}) // plain data: cannot fail
	return step.Patch(step.GarbageCollector, it.resource.Object(it.key), body, it.subject(why))
}
