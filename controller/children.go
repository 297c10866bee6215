// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"reflect"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/steer-dev/steer/client"
)

// OwnerAnnotation names the UID of the owner on children that cannot have an
// owner reference, because they live in another namespace or in none.
const OwnerAnnotation = "steer.dev/owner-uid"

// goneCheck is how often it is checked whether children are gone.
const goneCheck = 2 * time.Second

// Children is a declared set of children: a reconciler says which objects there
// are to be, and Apply makes it so. T is the type of the children, or
// client.Object for a mixed set. The zero value is ready:
//
//	type Reconciler struct{ jobs controller.Children[*batchv1.Job] }
//
//	err := r.jobs.Apply(ctx, owner, r.desired(owner))
//
// Children belong to the object that is being reconciled: they are applied
// server-side under the name of the controller, without the zero values of their
// Go types; they carry a controlling owner reference; and those that are not
// desired any more are deleted. Which ones there are is written in an annotation
// of the owner before they are created, and only what is written there is ever
// deleted. Watch them with [Owns].
type Children[T client.Object] struct {
	// Name distinguishes the sets of one controller. Empty means the name of T's
	// Go type; two sets of one type need names. Renaming a set, or its controller,
	// leaves its former children behind.
	Name string
	// Legacy names the field managers under which former versions of the operator
	// wrote the children by Create, Update or Patch. What those own is taken over
	// before the first apply, so that fields which are not desired any more go
	// away. Nil takes nothing over.
	Legacy []string
}

// Apply makes the desired objects exist as they are given, and deletes what was
// in the set before and is not desired any more. Afterwards the desired objects
// are what the server has. Objects without a namespace get that of the owner.
//
// It changes nothing on the server for children that are already as desired. It
// deletes only after everything was applied. It refuses children of other
// owners. A child that is still being deleted is waited for, by a quiet retry.
func (c Children[T]) Apply(ctx context.Context, owner client.Object, desired []T) error {
	set, err := c.open(ctx, owner)
	if err != nil {
		return err
	}
	refs := make([]childRef, len(desired))
	seen := map[childRef]bool{}
	for i, child := range desired {
		if refs[i], err = set.adopt(child); err != nil {
			return err
		}
		if seen[refs[i]] {
			return fmt.Errorf("children %s: %s is desired twice", set.name, refs[i])
		}
		seen[refs[i]] = true
	}
	if err := set.inventory.include(refs); err != nil {
		return err
	}
	if err := set.store(); err != nil {
		return err
	}
	var errs []error
	for i, child := range desired {
		if err := set.apply(refs[i], child); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, ref := range set.inventory.beyond(seen) {
		if _, err := set.delete(ref); err != nil {
			errs = append(errs, err)
			continue
		}
		set.inventory.remove(ref)
	}
	return errors.Join(append(errs, set.store())...)
}

// Delete deletes all children of the set and returns [Done] once none is left,
// so that a finalizer can end with it; until then it comes back every two
// seconds, since children without an owner reference do not tell of their end.
// Children with one need it only when their order or their end matters.
func (c Children[T]) Delete(ctx context.Context, owner client.Object) (Result, error) {
	set, err := c.open(ctx, owner)
	if err != nil {
		return Result{}, err
	}
	var errs []error
	for _, ref := range set.inventory.beyond(nil) {
		gone, err := set.delete(ref)
		if err != nil {
			errs = append(errs, err)
		}
		if gone {
			set.inventory.remove(ref)
		}
	}
	if err := errors.Join(append(errs, set.store())...); err != nil {
		return Result{}, err
	}
	if len(set.inventory.refs) > 0 {
		return After(goneCheck), nil
	}
	return Done(), nil
}

// applied remembers what was last applied for one owner, so that what has not
// changed is not sent again.
type applied struct {
	mu    sync.Mutex
	byRef map[childRef]appliedChild
}

type appliedChild struct {
	uid  types.UID
	hash uint64
}

// childSet is one use of a set.
type childSet struct {
	ctx       context.Context
	attempt   *attempt
	memory    *applied
	client    client.Client
	name      string
	owner     client.Object
	ownerGVK  schema.GroupVersionKind
	inventory inventory
	legacy    []string
}

func (c Children[T]) open(ctx context.Context, owner client.Object) (*childSet, error) {
	a := attemptOf(ctx)
	if a == nil || a.children == nil {
		return nil, fmt.Errorf("children: %w", errNoAttempt)
	}
	name := c.Name
	if name == "" {
		t := strings.TrimPrefix(reflect.TypeFor[T]().String(), "*")
		name = strings.ToLower(t[strings.LastIndexByte(t, '.')+1:])
	}
	s := &childSet{
		ctx: ctx, attempt: a, client: a.shared.base.Client, name: name, owner: owner, legacy: c.Legacy,
		memory: a.children.of(Request{types.NamespacedName{Namespace: a.object.Namespace, Name: a.object.Name}}),
	}
	var err error
	if s.ownerGVK, err = client.KindOf(s.client.Scheme(), owner); err != nil {
		return nil, fmt.Errorf("children %s: %w", name, err)
	}
	if s.ownerGVK != a.shared.gvk || owner.GetNamespace() != a.object.Namespace || owner.GetName() != a.object.Name {
		return nil, fmt.Errorf("children %s: the owner must be the object that is being reconciled, not %s %s/%s", name, s.ownerGVK.Kind, owner.GetNamespace(), owner.GetName())
	}
	s.inventory, err = readInventory(owner, a.shared.name+"."+name)
	return s, err
}

// adopt completes a desired child: its namespace and its owner.
func (s *childSet) adopt(child client.Object) (childRef, error) {
	gvk, err := client.KindOf(s.client.Scheme(), child)
	if err != nil {
		return childRef{}, fmt.Errorf("children %s: %w", s.name, err)
	}
	if child.GetName() == "" {
		return childRef{}, fmt.Errorf("children %s: a %s has no name: children need fixed names, so that they are found again", s.name, gvk.Kind)
	}
	resource, err := s.client.Mapper().ForKind(s.ctx, gvk)
	if err != nil {
		return childRef{}, fmt.Errorf("children %s: %w", s.name, err)
	}
	if resource.Namespaced && child.GetNamespace() == "" {
		child.SetNamespace(s.owner.GetNamespace())
	}
	if s.owner.GetNamespace() == "" || s.owner.GetNamespace() == child.GetNamespace() {
		if err := SetOwner(s.owner, s.ownerGVK, child); err != nil {
			return childRef{}, fmt.Errorf("children %s: %w", s.name, err)
		}
	} else {
		annotations := map[string]string{}
		for k, v := range child.GetAnnotations() {
			annotations[k] = v
		}
		annotations[OwnerAnnotation] = string(s.owner.GetUID())
		child.SetAnnotations(annotations)
	}
	return childRef{GVK: gvk, Key: client.ObjectKeyFromObject(child)}, nil
}

// read returns what there is of a child. What the cache shows of another owner
// may be the past, when an owner of the same name has gone with its children: the
// server decides.
func (s *childSet) read(ref childRef, child client.Object) (client.Object, error) {
	found := emptyLike(child)
	found.GetObjectKind().SetGroupVersionKind(ref.GVK)
	err := s.client.Get(s.ctx, ref.Key, found)
	if err != nil || !s.foreign(found) {
		return found, err
	}
	found = emptyLike(child)
	found.GetObjectKind().SetGroupVersionKind(ref.GVK)
	return found, s.client.Get(s.ctx, ref.Key, found, client.Live)
}

// apply sends one child, unless it is known to be as desired.
func (s *childSet) apply(ref childRef, child client.Object) error {
	body, err := client.ApplyBody(s.client.Scheme(), child)
	if err != nil {
		return fmt.Errorf("children %s: %w", s.name, err)
	}
	hash, err := hashOf(body)
	if err != nil {
		return fmt.Errorf("children %s: %w", s.name, err)
	}
	live, err := s.read(ref, child)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case live.GetDeletionTimestamp() != nil:
		return &waitingError{fmt.Sprintf("children %s: %s is still being deleted", s.name, ref)}
	case s.foreign(live):
		return fmt.Errorf("children %s: %s exists and has another controlling owner: choose another name, or delete it", s.name, ref)
	case s.settled(ref, live, body, hash):
		reflect.ValueOf(child).Elem().Set(reflect.ValueOf(live).Elem())
		return nil
	default:
		if err := s.migrate(ref); err != nil {
			return err
		}
	}
	if err := s.client.Apply(s.ctx, child, client.FieldOwner(s.attempt.shared.name), client.ForceOwnership); err != nil {
		return err
	}
	s.memory.mu.Lock()
	defer s.memory.mu.Unlock()
	if s.memory.byRef == nil {
		s.memory.byRef = map[childRef]appliedChild{}
	}
	s.memory.byRef[ref] = appliedChild{uid: child.GetUID(), hash: hash}
	return nil
}

// migrate hands the fields of legacy managers over to this one, before the child
// is applied for the first time in this process.
func (s *childSet) migrate(ref childRef) error {
	s.memory.mu.Lock()
	_, known := s.memory.byRef[ref]
	s.memory.mu.Unlock()
	if known || len(s.legacy) == 0 {
		return nil
	}
	live := client.NewMetadata(ref.GVK) // cached copies have no managed fields
	if err := s.client.Get(s.ctx, ref.Key, live, client.Live); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(s.legacy...), s.attempt.shared.name)
	if err != nil || len(patch) == 0 {
		return err
	}
	if err := s.client.Patch(s.ctx, live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("children %s: take over the fields of %s: %w", s.name, strings.Join(s.legacy, ", "), err)
	}
	return nil
}

// settled tells that the child was last applied in this form by this process,
// and that the server still has all of it.
func (s *childSet) settled(ref childRef, live client.Object, body map[string]any, hash uint64) bool {
	s.memory.mu.Lock()
	last, ok := s.memory.byRef[ref]
	s.memory.mu.Unlock()
	if !ok || last.uid != live.GetUID() || last.hash != hash {
		return false
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	return err == nil && contains(content, body, true)
}

// foreign tells that another object controls the child.
func (s *childSet) foreign(live client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	return ref != nil && ref.UID != s.owner.GetUID()
}

// delete deletes a former child and reports whether it is gone, or not ours any
// more.
func (s *childSet) delete(ref childRef) (gone bool, err error) {
	s.memory.mu.Lock()
	delete(s.memory.byRef, ref)
	s.memory.mu.Unlock()
	live := client.NewMetadata(ref.GVK)
	switch err := s.client.Get(s.ctx, ref.Key, live, client.Live); {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, err
	case !s.owns(live):
		return true, nil
	case live.DeletionTimestamp != nil:
		return false, nil
	}
	uid, background := live.UID, metav1.DeletePropagationBackground
	err = s.client.Delete(s.ctx, live, &client.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	return false, client.IgnoreNotFound(err)
}

// owns tells that the owner is written on the child.
func (s *childSet) owns(live client.Object) bool {
	uid := s.owner.GetUID()
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return ref.UID == uid
	}
	return live.GetAnnotations()[OwnerAnnotation] == string(uid)
}

// store writes the inventory into the owner when it has changed.
func (s *childSet) store() error {
	if !s.inventory.changed {
		return nil
	}
	annotation, value, err := s.inventory.encode()
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{annotation: value}, "resourceVersion": s.owner.GetResourceVersion(),
	}})
	if err != nil {
		return err
	}
	written := client.NewMetadata(s.ownerGVK)
	written.Namespace, written.Name = s.owner.GetNamespace(), s.owner.GetName()
	patch := client.RawPatch(types.MergePatchType, data)
	if err := s.client.Patch(s.ctx, written, patch, client.FieldOwner(s.attempt.shared.name)); err != nil {
		return fmt.Errorf("children %s: write the inventory: %w", s.name, err)
	}
	s.inventory.changed = false
	take := func(obj client.Object) {
		obj.SetResourceVersion(written.ResourceVersion)
		obj.SetAnnotations(written.Annotations)
	}
	if _, current := s.attempt.versions(); current != s.owner {
		take(s.owner)
	}
	s.attempt.revised(take)
	return nil
}

// SetOwner makes owner the controlling owner of child: deleted with it, and
// requested by its events. It refuses a child that another object controls.
func SetOwner(owner client.Object, gvk schema.GroupVersionKind, child client.Object) error {
	controls, blocks := true, true
	refs := child.GetOwnerReferences()
	for i := range refs {
		if refs[i].UID == owner.GetUID() {
			refs[i].Controller, refs[i].BlockOwnerDeletion = &controls, &blocks
			child.SetOwnerReferences(refs)
			return nil
		}
		if refs[i].Controller != nil && *refs[i].Controller {
			return fmt.Errorf("%s is controlled by %s %s already", child.GetName(), refs[i].Kind, refs[i].Name)
		}
	}
	child.SetOwnerReferences(append(refs, metav1.OwnerReference{
		APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind, Name: owner.GetName(), UID: owner.GetUID(),
		Controller: &controls, BlockOwnerDeletion: &blocks,
	}))
	return nil
}

func hashOf(body map[string]any) (uint64, error) {
	data, err := json.Marshal(body) // maps are sorted
	if err != nil {
		return 0, err
	}
	h := fnv.New64a()
	_, _ = h.Write(data)
	return h.Sum64(), nil
}

// contains tells that everything in want is in have. Lists must have the same
// length: what a server adds to the elements does not count, added elements do.
func contains(have, want any, root bool) bool {
	switch w := want.(type) {
	case map[string]any:
		h, ok := have.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if root && (k == "status" || k == "apiVersion" || k == "kind") {
				continue
			}
			if !contains(h[k], v, false) {
				return false
			}
		}
		return true
	case []any:
		h, ok := have.([]any)
		if !ok || len(h) != len(w) {
			return false
		}
		for i := range w {
			if !contains(h[i], w[i], false) {
				return false
			}
		}
		return true
	}
	return equalScalars(have, want)
}

// equalScalars compares values of which one may come from a Go type and the
// other from JSON.
func equalScalars(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := reflect.ValueOf(v); {
	case n.CanInt():
		return float64(n.Int()), true
	case n.CanUint():
		return float64(n.Uint()), true
	case n.CanFloat():
		return n.Float(), true
	}
	return 0, false
}
