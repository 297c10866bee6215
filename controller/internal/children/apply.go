// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package children

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/steer-dev/steer/client"
)

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

// Todo is a child that is not as desired.
type Todo struct {
	ref    Ref
	child  client.Object
	body   map[string]any
	mark   mark
	exists bool
}

// Check compares a child with what there is. A child that is as desired becomes what
// the server has, and there is nothing to do.
func (s *Set) Check(ref Ref, child client.Object) (*Todo, error) {
	todo, err := s.check(ref, child)
	if err != nil {
		return nil, &Error{Set: s.Name, Kind: ref.GVK, Key: ref.Key, Err: err}
	}
	return todo, nil
}

func (s *Set) check(ref Ref, child client.Object) (*Todo, error) {
	body, m, err := s.desire(ref, child)
	if err != nil {
		return nil, err
	}
	todo := &Todo{ref: ref, child: child, body: body, mark: m}
	live, err := s.read(ref, child)
	switch {
	case apierrors.IsNotFound(err):
		return todo, nil
	case err != nil:
		return nil, err
	case live.GetDeletionTimestamp() != nil:
		return nil, &WaitingError{"it is still being deleted"}
	case s.foreign(live):
		return nil, &RefusedError{"it exists and has another controlling owner: choose another name, or delete it"}
	}
	if !s.owns(live) && !s.Inventory.has(ref) && !s.TakeExisting {
		if err := s.made(ref); err != nil {
			return nil, err
		}
	}
	todo.exists = true
	settled := s.Policy == CreateOnly
	if !settled {
		if settled, err = s.settled(ref, live, body, m); err != nil {
			return nil, err
		}
	}
	if settled {
		reflect.ValueOf(child).Elem().Set(reflect.ValueOf(live).Elem())
		return nil, nil
	}
	todo.mark.deviation = markOf(live).deviation // it rarely changes
	return todo, nil
}

// made refuses a child without an owner, unless this operator has written it: under its
// field manager, or under one of its former ones.
func (s *Set) made(ref Ref) error {
	live := client.NewMetadata(ref.GVK) // cached copies have no managed fields
	if err := s.Client.Get(s.Context, ref.Key, live, client.Live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if s.owns(live) {
		return nil
	}
	var managers []string
	for _, entry := range live.ManagedFields {
		if entry.Manager == s.Controller || slices.Contains(s.Legacy, entry.Manager) {
			return nil
		}
		if !slices.Contains(managers, entry.Manager) {
			managers = append(managers, entry.Manager)
		}
	}
	by := "an unknown client"
	if len(managers) > 0 {
		by = strings.Join(managers, ", ")
	}
	return &RefusedError{fmt.Sprintf("it exists already, written by %s and not by this operator (field manager %s): choose another name, delete it, or set TakeExisting of the set to take it, or Legacy if this operator wrote under that name", by, s.Controller)}
}

// Send makes a child as desired. Check has found what differs.
func (s *Set) Send(t *Todo) error {
	s.Memory.comes(t.ref)
	err := s.write(t)
	if err == nil {
		return nil
	}
	return &Error{Set: s.Name, Kind: t.ref.GVK, Key: t.ref.Key, Err: err}
}

func (s *Set) write(t *Todo) error {
	if s.Policy == CreateOnly {
		t.mark.put(t.child)
		err := s.Client.Create(s.Context, t.child, client.FieldOwner(s.Controller))
		if apierrors.IsAlreadyExists(err) {
			return &WaitingError{"it has just been created by another client"}
		}
		return err
	}
	if t.exists {
		if err := s.migrate(t.ref); err != nil {
			return err
		}
	}
	desired := t.child.DeepCopyObject().(client.Object)
	err := s.send(t)
	if t.exists && s.Policy >= Recreate && apierrors.IsInvalid(err) {
		reflect.ValueOf(t.child).Elem().Set(reflect.ValueOf(desired).Elem())
		return s.recreate(t, err)
	}
	return err
}

// recreate deletes a child that cannot become as desired, and creates it anew. refusal
// is the answer of the server. Only if it would create the child as it is desired, the
// reason is that a field cannot be changed.
func (s *Set) recreate(t *Todo, refusal error) error {
	probe := t.child.DeepCopyObject().(client.Object)
	probe.SetName("")
	probe.SetGenerateName("recreated-")
	if err := s.Client.Create(s.Context, probe, client.DryRunAll, client.FieldOwner(s.Controller)); err != nil {
		return refusal
	}
	live := client.NewMetadata(t.ref.GVK)
	switch err := s.Client.Get(s.Context, t.ref.Key, live, client.Live); {
	case apierrors.IsNotFound(err):
	case err != nil:
		return err
	case s.foreign(live):
		return refusal
	case live.DeletionTimestamp == nil:
		uid, propagation := live.UID, metav1.DeletePropagationBackground
		if s.Policy == RecreateOrphan {
			propagation = metav1.DeletePropagationOrphan
		}
		err := s.Client.Delete(s.Context, live, &client.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &propagation})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete it to create it anew: %w", err)
		}
		if err := s.Client.Get(s.Context, t.ref.Key, live, client.Live); !apierrors.IsNotFound(err) {
			return cmp.Or(err, error(&WaitingError{"it is being deleted, to be created anew"}))
		}
	default:
		return &WaitingError{"it is being deleted, to be created anew"}
	}
	t.mark.deviation = 0
	return s.send(t)
}

// send applies a child. When the server keeps it otherwise than was known, it is
// applied once more, with that in its mark.
func (s *Set) send(t *Todo) error {
	desired := t.child.DeepCopyObject().(client.Object)
	for again := false; ; again = true {
		t.mark.put(t.child)
		if err := s.Client.Apply(s.Context, t.child, client.FieldOwner(s.Controller), client.ForceOwnership); err != nil {
			return err
		}
		known := t.mark.deviation
		var err error
		if t.mark.deviation, err = deviationOf(t.child, t.body); err != nil {
			return err
		}
		if t.mark.deviation == 0 {
			s.Memory.forget(t.ref)
			return nil
		}
		s.Memory.learn(t.ref, answer{t.child.GetUID(), t.mark})
		if again || t.mark.deviation == known {
			return nil
		}
		reflect.ValueOf(t.child).Elem().Set(reflect.ValueOf(desired).Elem())
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
