// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/cache"
	"github.com/steer-dev/steer/client"
)

// Recover puts into the inventory what is missing there because the annotation got
// lost, an older one was written back, or a process ended before it wrote it: the
// children of the watched kinds that name the owner and this set. It looks for them
// unless the inventory is as this process has left it. Where there is none, children
// that are not marked with a set yet, because a former version of the operator wrote
// them, are known by their field managers; a set with a name of its own leaves those
// alone, as they may be of another set. wanted are the children that are desired.
func (s *Set) Recover(wanted map[Ref]bool) error {
	annotations := s.Pending.On(s.Owner)
	read := textOf(annotations, s.FullName)
	var complete bool
	if s.searched, complete = s.Memory.isComplete(read); complete {
		return nil
	}
	others, err := s.Inventory.others(annotations)
	if err != nil {
		return err
	}
	for _, kind := range s.Kinds {
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
		s.Memory.completed(read, s.searched)
	}
	return nil
}

// findable reports whether Recover would find a child: its kind is watched, and it has
// an owner reference.
func (s *Set) findable(ref Ref) bool {
	if ns := s.Owner.GetNamespace(); ns != "" && ns != ref.Key.Namespace {
		return false
	}
	return slices.ContainsFunc(s.Kinds, func(kind client.Object) bool {
		gvk, err := client.KindOf(s.Client.Scheme(), kind)
		return err == nil && gvk.GroupKind() == ref.GVK.GroupKind()
	})
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
