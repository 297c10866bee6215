// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package children keeps the children of one object as they were declared: applied,
// owned, listed in an annotation of their owner, and deleted once they are not wanted
// any more.
package children

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

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

// RefusedError is the error of a child that exists and that this operator did not make.
type RefusedError struct{ What string }

func (e *RefusedError) Error() string { return e.What }

// Policy says what becomes of children that exist.
type Policy uint8

const (
	// Update applies what differs.
	Update Policy = iota
	// CreateOnly leaves them alone.
	CreateOnly
	// Recreate also deletes those of which a field cannot be changed, and
	// RecreateOrphan does that without their dependents.
	Recreate
	RecreateOrphan
)

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
	Memory *Memory
	// Pending are the inventories that this attempt has not written yet.
	Pending *Pending
	// Kinds are those whose children the cache finds by their owner.
	Kinds []client.Object
	// Policy for children that exist.
	Policy Policy
	// TakeExisting allows children that others made and that have no owner.
	TakeExisting bool
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

	searched uint64 // what the memory knew when children were looked for
	urgent   bool   // the inventory has to be written before children are created
}

// Apply makes the desired children exist, and deletes what was in the set before and
// is not desired any more, once all are applied.
func (s *Set) Apply(desired []client.Object) error {
	refs := make([]Ref, len(desired))
	seen := map[Ref]bool{}
	for i, child := range desired {
		var err error
		if refs[i], err = s.Adopt(child); err != nil {
			return err
		}
		if seen[refs[i]] {
			return fmt.Errorf("children %s: %s is desired twice", s.Name, refs[i])
		}
		seen[refs[i]] = true
	}
	if err := s.Recover(seen); err != nil {
		return err
	}
	var errs []error
	var todo []*Todo
	var listed []Ref
	for i, child := range desired {
		t, err := s.Check(refs[i], child)
		if err != nil {
			errs = append(errs, err)
		}
		if t != nil {
			todo = append(todo, t)
		}
		if refused := (*RefusedError)(nil); !errors.As(err, &refused) {
			listed = append(listed, refs[i])
		}
	}
	if err := s.include(listed); err != nil {
		return err
	}
	for _, t := range todo {
		if err := s.Send(t); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	for _, ref := range s.Inventory.Beyond(seen) {
		if _, err := s.Delete(ref); err != nil {
			errs = append(errs, err)
			continue
		}
		s.Inventory.Remove(ref)
	}
	return errors.Join(append(errs, s.Store())...)
}

// include puts children into the inventory, and writes it when it is all that would
// find one of them again.
func (s *Set) include(refs []Ref) error {
	for _, ref := range refs {
		if !s.Inventory.has(ref) && !s.findable(ref) {
			s.urgent = true
		}
	}
	if err := s.Inventory.Include(refs); err != nil {
		return err
	}
	return s.Store()
}

// DeleteAll deletes all children and reports whether none is left. The inventory of an
// owner that is being deleted stays as it is: it goes with the owner, and nothing may
// keep that from going.
func (s *Set) DeleteAll() (gone bool, err error) {
	if err := s.Recover(nil); err != nil {
		return false, err
	}
	owner, leaving := s.Owner.GetUID(), s.Owner.GetDeletionTimestamp() != nil
	var errs []error
	for _, ref := range s.Inventory.Beyond(nil) {
		if leaving && s.Memory.isGone(ref, owner) {
			s.Inventory.Remove(ref)
			continue
		}
		gone, err := s.Delete(ref)
		if err != nil {
			errs = append(errs, err)
		}
		if gone {
			s.Inventory.Remove(ref)
			s.Memory.went(ref, owner)
		}
	}
	if !leaving {
		errs = append(errs, s.Store())
	}
	if err := errors.Join(errs...); err != nil {
		return false, err
	}
	return s.Inventory.Empty(), nil
}

// Store hands a changed inventory on to be written.
func (s *Set) Store() error {
	if s.Inventory.changed {
		annotations, err := s.Inventory.encode()
		if err != nil {
			return err
		}
		s.Pending.note(s, annotations)
		s.Inventory.changed = false
	}
	if s.Pending.due() {
		return s.Pending.Write(s.Context)
	}
	return nil
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

// foreign reports that another object controls the child.
func (s *Set) foreign(live client.Object) bool {
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return ref.UID != s.Owner.GetUID()
	}
	other := live.GetAnnotations()[OwnerAnnotation]
	return other != "" && other != string(s.Owner.GetUID())
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
