// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package children keeps the children of one object as they were declared: applied,
// owned, listed in an annotation of their owner before they are made, and deleted
// once they are not wanted any more.
package children

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"

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

// WaitingError is a state that passes by itself.
type WaitingError struct{ What string }

func (e *WaitingError) Error() string { return e.What }

// Applied remembers what was last applied for one owner, so that what has not
// changed is not sent again. The zero value is empty; it is safe for concurrent use.
type Applied struct {
	mu    sync.Mutex
	byRef map[Ref]appliedChild
}

type appliedChild struct {
	uid  types.UID
	hash uint64
}

// Set is one use of a set of children, in one attempt.
type Set struct {
	Context context.Context // of the attempt
	Client  client.Client
	// Controller and Name name the set; Controller owns what is applied.
	Controller, Name string
	// Owner is the object that is reconciled.
	Owner    client.Object
	OwnerGVK schema.GroupVersionKind
	// Inventory lists the children that there may be.
	Inventory Inventory
	// Memory of what was applied for the owner before.
	Memory *Applied
	// Legacy are the field managers to take fields over from.
	Legacy []string
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
	body, err := client.ApplyBody(s.Client.Scheme(), child)
	if err != nil {
		return fmt.Errorf("children %s: %w", s.Name, err)
	}
	hash, err := hashOf(body)
	if err != nil {
		return fmt.Errorf("children %s: %w", s.Name, err)
	}
	live, err := s.read(ref, child)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case live.GetDeletionTimestamp() != nil:
		return &WaitingError{fmt.Sprintf("children %s: %s is still being deleted", s.Name, ref)}
	case s.foreign(live):
		return fmt.Errorf("children %s: %s exists and has another controlling owner: choose another name, or delete it", s.Name, ref)
	case s.settled(ref, live, body, hash):
		reflect.ValueOf(child).Elem().Set(reflect.ValueOf(live).Elem())
		return nil
	default:
		if err := s.migrate(ref); err != nil {
			return err
		}
	}
	if err := s.Client.Apply(s.Context, child, client.FieldOwner(s.Controller), client.ForceOwnership); err != nil {
		return err
	}
	s.Memory.mu.Lock()
	defer s.Memory.mu.Unlock()
	if s.Memory.byRef == nil {
		s.Memory.byRef = map[Ref]appliedChild{}
	}
	s.Memory.byRef[ref] = appliedChild{uid: child.GetUID(), hash: hash}
	return nil
}

// migrate hands the fields of legacy managers over to this one, before the child
// is applied for the first time in this process.
func (s *Set) migrate(ref Ref) error {
	s.Memory.mu.Lock()
	_, known := s.Memory.byRef[ref]
	s.Memory.mu.Unlock()
	if known || len(s.Legacy) == 0 {
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
		return fmt.Errorf("children %s: take over the fields of %s: %w", s.Name, strings.Join(s.Legacy, ", "), err)
	}
	return nil
}

// settled tells that the child was last applied in this form by this process,
// and that the server still has all of it.
func (s *Set) settled(ref Ref, live client.Object, body map[string]any, hash uint64) bool {
	s.Memory.mu.Lock()
	last, ok := s.Memory.byRef[ref]
	s.Memory.mu.Unlock()
	if !ok || last.uid != live.GetUID() || last.hash != hash {
		return false
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	return err == nil && contains(content, body, true)
}

// foreign tells that another object controls the child.
func (s *Set) foreign(live client.Object) bool {
	ref := metav1.GetControllerOfNoCopy(live)
	return ref != nil && ref.UID != s.Owner.GetUID()
}

// Delete deletes a former child and reports whether it is gone, or not ours any
// more.
func (s *Set) Delete(ref Ref) (gone bool, err error) {
	s.Memory.mu.Lock()
	delete(s.Memory.byRef, ref)
	s.Memory.mu.Unlock()
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

// owns tells that the owner is written on the child.
func (s *Set) owns(live client.Object) bool {
	uid := s.Owner.GetUID()
	if ref := metav1.GetControllerOfNoCopy(live); ref != nil {
		return ref.UID == uid
	}
	return live.GetAnnotations()[OwnerAnnotation] == string(uid)
}

// Store writes the inventory into the owner when it has changed.
func (s *Set) Store() error {
	if !s.Inventory.changed {
		return nil
	}
	annotation, value, err := s.Inventory.encode()
	if err != nil {
		return err
	}
	data, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]any{annotation: value}, "resourceVersion": s.Owner.GetResourceVersion(),
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
	take := func(obj client.Object) {
		obj.SetResourceVersion(written.ResourceVersion)
		obj.SetAnnotations(written.Annotations)
	}
	s.Revised(take)
	return nil
}
