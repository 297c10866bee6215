// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package children keeps the children of one object as they were declared: applied,
// owned, listed in an annotation of their owner before they are made, and deleted
// once they are not wanted any more.
package children

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
)

// OwnerAnnotation names the UID of the owner on children that cannot have an
// owner reference, because they live in another namespace or in none.
const OwnerAnnotation = "steer.dev/owner-uid"

// Error is the error of one child.
type Error struct {
	// Set is the name of the set.
	Set string
	// Kind and Key name the child.
	Kind schema.GroupVersionKind
	Key  types.NamespacedName
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("children %s: %s: %v", e.Set, Ref{e.Kind, e.Key}, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// WaitingError is a state that passes by itself.
type WaitingError struct{ What string }

func (e *WaitingError) Error() string { return e.What }

// Applied remembers, for one owner, how its children deviated from their bodies
// after they were applied: so that a webhook which decides otherwise each time
// does not make every reconcile apply again. It also remembers which inventories
// are complete. The zero value is empty; it is safe for concurrent use.
type Applied struct {
	mu       sync.Mutex
	byRef    map[Ref]answer
	complete []inventoryText
}

// inventoryText is the annotation of a set, by its hash.
type inventoryText struct {
	set  string
	hash uint64
}

// isComplete reports whether an inventory is known to list all children of its set.
func (a *Applied) isComplete(t inventoryText) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Contains(a.complete, t)
}

// completed notes the inventory of a set that lists all of its children.
func (a *Applied) completed(t inventoryText) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.IndexFunc(a.complete, func(other inventoryText) bool { return other.set == t.set }); i >= 0 {
		a.complete[i] = t
		return
	}
	a.complete = append(a.complete, t)
}

type answer struct {
	uid  types.UID
	mark mark
}

func (a *Applied) knows(ref Ref, known answer) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	was, ok := a.byRef[ref]
	return ok && was == known
}

func (a *Applied) learn(ref Ref, known answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byRef == nil {
		a.byRef = map[Ref]answer{}
	}
	a.byRef[ref] = known
}

func (a *Applied) forget(ref Ref) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.byRef, ref)
}

// Set is one use of a set of children, in one attempt.
type Set struct {
	Context context.Context // of the attempt
	Client  client.Client
	// Controller is the field manager that owns what is applied.
	Controller string
	// Name of the set, and with the controller's in front.
	Name, FullName string
	// Owner is the object that is reconciled.
	Owner    client.Object
	OwnerGVK schema.GroupVersionKind
	// Inventory lists the children that there may be.
	Inventory Inventory
	// Memory of what was applied for the owner before.
	Memory *Applied
	// Legacy are the field managers to take fields over from.
	Legacy []string
	// Formerly are the full names that the set had before.
	Formerly []string
	// Whole is set when no other set of the controller has children of these kinds.
	Whole bool
	// Revised is told what a write of the inventory has changed in the owner.
	Revised func(take func(client.Object))
	// Write makes a write of the owner: a merge patch on top of the revision from;
	// write returns the revision of the answer.
	Write func(from string, patch []byte, write func() (to string, err error)) error
}

// blankLike is a new object of the same type.
func blankLike(obj client.Object) client.Object {
	return reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
}

// Adopt completes a desired child: its namespace and its owner.
func (s *Set) Adopt(child client.Object) (Ref, error) {
	gvk, err := client.KindOf(s.Client.Scheme(), child)
	if err != nil {
		return Ref{}, fmt.Errorf("children %s: %w", s.Name, err)
	}
	if child.GetName() == "" {
		return Ref{}, fmt.Errorf("children %s: a %s has no name: children need fixed names, so that they are found again", s.Name, gvk.Kind)
	}
	resource, err := s.Client.Mapper().ForKind(s.Context, gvk)
	if err != nil {
		return Ref{}, fmt.Errorf("children %s: %w", s.Name, err)
	}
	if resource.Namespaced && child.GetNamespace() == "" {
		child.SetNamespace(s.Owner.GetNamespace())
	}
	if s.Owner.GetNamespace() == "" || s.Owner.GetNamespace() == child.GetNamespace() {
		if err := SetOwner(s.Owner, s.OwnerGVK, child); err != nil {
			return Ref{}, fmt.Errorf("children %s: %w", s.Name, err)
		}
	} else {
		annotations := map[string]string{}
		for k, v := range child.GetAnnotations() {
			annotations[k] = v
		}
		annotations[OwnerAnnotation] = string(s.Owner.GetUID())
		child.SetAnnotations(annotations)
	}
	return Ref{GVK: gvk, Key: client.ObjectKeyFromObject(child)}, nil
}

// read returns what there is of a child. What the cache shows of another owner
// may be the past, when an owner of the same name has gone with its children: the
// server decides.
func (s *Set) read(ref Ref, child client.Object) (client.Object, error) {
	found := blankLike(child)
	found.GetObjectKind().SetGroupVersionKind(ref.GVK)
	err := s.Client.Get(s.Context, ref.Key, found)
	if err != nil || !s.foreign(found) {
		return found, err
	}
	found = blankLike(child)
	found.GetObjectKind().SetGroupVersionKind(ref.GVK)
	return found, s.Client.Get(s.Context, ref.Key, found, client.Live)
}

// Apply sends one child, unless it is known to be as desired.
func (s *Set) Apply(ref Ref, child client.Object) error {
	if err := s.apply(ref, child); err != nil {
		return &Error{Set: s.Name, Kind: ref.GVK, Key: ref.Key, Err: err}
	}
	return nil
}

func (s *Set) apply(ref Ref, child client.Object) error {
	body, m, err := s.desire(ref, child)
	if err != nil {
		return err
	}
	live, err := s.read(ref, child)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case live.GetDeletionTimestamp() != nil:
		return &WaitingError{"it is still being deleted"}
	case s.foreign(live):
		return errors.New("it exists and has another controlling owner: choose another name, or delete it")
	default:
		settled, err := s.settled(ref, live, body, m)
		switch {
		case err != nil:
			return err
		case settled:
			reflect.ValueOf(child).Elem().Set(reflect.ValueOf(live).Elem())
			return nil
		}
		m.deviation = markOf(live).deviation // it rarely changes
		if err := s.migrate(ref); err != nil {
			return err
		}
	}
	return s.send(ref, child, body, m)
}

// send applies a child. When the server keeps it otherwise than was known, it is
// applied once more, with that in its mark.
func (s *Set) send(ref Ref, child client.Object, body map[string]any, m mark) error {
	desired := child.DeepCopyObject().(client.Object)
	for again := false; ; again = true {
		m.put(child)
		if err := s.Client.Apply(s.Context, child, client.FieldOwner(s.Controller), client.ForceOwnership); err != nil {
			return err
		}
		known := m.deviation
		var err error
		if m.deviation, err = deviationOf(child, body); err != nil {
			return err
		}
		if m.deviation == 0 {
			s.Memory.forget(ref)
			return nil
		}
		s.Memory.learn(ref, answer{child.GetUID(), m})
		if again || m.deviation == known {
			return nil
		}
		reflect.ValueOf(child).Elem().Set(reflect.ValueOf(desired).Elem())
	}
}

// migrate hands the fields of legacy managers over to this one, before the child
// is applied.
func (s *Set) migrate(ref Ref) error {
	if len(s.Legacy) == 0 {
		return nil
	}
	live := client.NewMetadata(ref.GVK) // cached copies have no managed fields
	if err := s.Client.Get(s.Context, ref.Key, live, client.Live); err != nil {
		return client.IgnoreNotFound(err)
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, sets.New(s.Legacy...), s.Controller)
	if err != nil || len(patch) == 0 {
		return err
	}
	if err := s.Client.Patch(s.Context, live, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		return fmt.Errorf("take over the fields of %s: %w", strings.Join(s.Legacy, ", "), err)
	}
	return nil
}

// settled reports whether the child was last applied in this form, and the server
// still has what it made of it.
func (s *Set) settled(ref Ref, live client.Object, body map[string]any, m mark) (bool, error) {
	last := markOf(live)
	if last.set != m.set || last.body != m.body {
		return false, nil
	}
	var err error
	if m.deviation, err = deviationOf(live, body); err != nil {
		return false, err
	}
	return m.deviation == 0 || m.deviation == last.deviation || s.Memory.knows(ref, answer{live.GetUID(), m}), nil
}

// foreign reports that another object controls the child.
func (s *Set) foreign(live client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	return ref != nil && ref.UID != s.Owner.GetUID()
}

// Delete deletes a former child and reports whether it is gone, or not ours any
// more.
func (s *Set) Delete(ref Ref) (gone bool, err error) {
	if gone, err = s.delete(ref); err != nil {
		return false, &Error{Set: s.Name, Kind: ref.GVK, Key: ref.Key, Err: err}
	}
	return gone, nil
}

func (s *Set) delete(ref Ref) (gone bool, err error) {
	s.Memory.forget(ref)
	live := client.NewMetadata(ref.GVK)
	switch err := s.Client.Get(s.Context, ref.Key, live, client.Live); {
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
	err = s.Client.Delete(s.Context, live, &client.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	return false, client.IgnoreNotFound(err)
}

// owns reports that the owner is written on the child.
func (s *Set) owns(live client.Object) bool {
	uid := s.Owner.GetUID()
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return ref.UID == uid
	}
	return live.GetAnnotations()[OwnerAnnotation] == string(uid)
}

// Recover puts into the inventory what is missing there because the annotation got
// lost, or an older one was written back: the children of the given kinds that name
// the owner and this set. It looks for them unless the inventory is as this process
// has left it. Where there is none, children that are not marked with a set yet,
// because a former version of the operator wrote them, are known by their field
// managers; a set with a name of its own leaves those alone, as they may be of another
// set. wanted are the children that are desired.
func (s *Set) Recover(kinds []client.Object, wanted map[Ref]bool) error {
	read := s.Inventory.textOf(s.Owner)
	if s.Memory.isComplete(read) {
		return nil
	}
	others, err := s.Inventory.others(s.Owner)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		listed, err := s.listOwned(kind)
		if err != nil {
			return fmt.Errorf("children %s: look for children that are in no inventory: %w", s.Name, err)
		}
		for _, ref := range listed {
			if wanted[ref.Ref] || others.find(ref.Ref) >= 0 {
				continue
			}
			mine, err := s.claims(ref)
			if err != nil {
				return &Error{Set: s.Name, Kind: ref.GVK, Key: ref.Key, Err: err}
			}
			if mine {
				s.Inventory.add(ref.Ref)
			}
		}
	}
	if !s.Inventory.changed { // else once it is stored
		s.Memory.completed(read)
	}
	return nil
}

// found is a child that names the owner.
type found struct {
	Ref
	set string
}

func (s *Set) listOwned(kind client.Object) (out []found, err error) {
	gvk, err := client.KindOf(s.Client.Scheme(), kind)
	if err != nil {
		return nil, err
	}
	list, err := listOf(s.Client.Scheme(), kind, gvk)
	if err != nil {
		return nil, err
	}
	options := []client.ListOption{cache.OwnedBy(s.Owner)}
	if ns := s.Owner.GetNamespace(); ns != "" {
		options = append(options, client.InNamespace(ns))
	}
	if err := s.Client.List(s.Context, list, options...); err != nil {
		return nil, err
	}
	err = meta.EachListItem(list, func(item runtime.Object) error {
		child, ok := item.(client.Object)
		if ok && metav1.IsControlledBy(child, s.Owner) {
			out = append(out, found{Ref{gvk, client.ObjectKeyFromObject(child)}, markOf(child).set})
		}
		return nil
	})
	return out, err
}

// listOf is an empty list of objects in the form of kind.
func listOf(scheme *runtime.Scheme, kind client.Object, gvk schema.GroupVersionKind) (client.ObjectList, error) {
	gvk.Kind += "List"
	switch kind.(type) {
	case *metav1.PartialObjectMetadata:
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	case *unstructured.Unstructured:
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(gvk)
		return list, nil
	}
	list, err := scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	out, ok := list.(client.ObjectList)
	if !ok {
		return nil, fmt.Errorf("%T is not a list", list)
	}
	return out, nil
}

// claims reports whether a child that names the owner is of this set.
func (s *Set) claims(child found) (bool, error) {
	if child.set != "" {
		return child.set == s.FullName || slices.Contains(s.Formerly, child.set), nil
	}
	if !s.Whole || s.Inventory.found {
		return false, nil
	}
	live := client.NewMetadata(child.GVK)
	if err := s.Client.Get(s.Context, child.Key, live, client.Live); err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return slices.ContainsFunc(live.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == s.Controller && entry.Operation == metav1.ManagedFieldsOperationApply ||
			slices.Contains(s.Legacy, entry.Manager)
	}), nil
}

// Store writes the inventory into the owner when it has changed.
func (s *Set) Store() error {
	if !s.Inventory.changed {
		return nil
	}
	annotations, err := s.Inventory.encode()
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": annotations, "resourceVersion": s.Owner.GetResourceVersion(),
	}})
	if err != nil {
		return err
	}
	written := client.NewMetadata(s.OwnerGVK)
	written.Namespace, written.Name = s.Owner.GetNamespace(), s.Owner.GetName()
	patch := client.RawPatch(types.MergePatchType, data)
	err = s.Write(s.Owner.GetResourceVersion(), data, func() (string, error) {
		err := s.Client.Patch(s.Context, written, patch, client.FieldOwner(s.Controller))
		return written.ResourceVersion, err
	})
	if err != nil {
		return fmt.Errorf("children %s: write the inventory: %w", s.Name, err)
	}
	s.Inventory.changed = false
	s.Memory.completed(s.Inventory.textOf(written))
	take := func(obj client.Object) {
		obj.SetResourceVersion(written.ResourceVersion)
		obj.SetAnnotations(written.Annotations)
	}
	s.Revised(take)
	return nil
}
