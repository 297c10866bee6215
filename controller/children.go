// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/controller/internal/children"
)

// OwnerAnnotation names the UID of the owner on children that cannot have an
// owner reference, because they live in another namespace or in none.
const OwnerAnnotation = children.OwnerAnnotation

// AppliedAnnotation is on every child: of which set it is, and a hash of what was
// last applied to it. By it a restarted operator knows that nothing is to be sent,
// and finds the children of an owner whose inventory got lost.
const AppliedAnnotation = children.AppliedAnnotation

// InventoryAnnotation is the prefix of the annotations that list the children of
// an object; the names of the controller and the set follow.
const InventoryAnnotation = children.InventoryAnnotation

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
// desired any more are deleted. Which ones there are is written in an annotation of
// the owner, for all sets in one patch at the end of the attempt, and only what is
// listed is ever deleted. Watch them with [Owns]: then children that are not in the
// annotation, because the operator was killed before the patch or kubectl replace
// removed it, are found by their owner reference. Children that cannot be found so,
// of kinds that are not owned or of another namespace, are written there before they
// are created.
type Children[T client.Object] struct {
	// Name distinguishes the sets of one controller. Empty means the name of T's
	// Go type; two sets of one type need names. A set that is renamed, or whose
	// controller is, leaves its former children behind unless Formerly has the
	// former name.
	Name string
	// Formerly are the names that the set had before: "pages", or "web.pages" when
	// the controller had another name, which is web here. The children of those
	// sets become children of this one. Take a name out only when no object has its
	// inventory any more.
	Formerly []string
	// Legacy names the field managers under which former versions of the operator
	// wrote the children by Create, Update or Patch. What those own is taken over
	// before the first apply, so that fields which are not desired any more go
	// away. Nil takes nothing over.
	Legacy []string
	// Policy says what becomes of a child that exists and is not as desired; the zero
	// value is [UpdateChildren].
	Policy ChildPolicy
	// TakeExisting lets the set take objects that exist already, were made by others
	// (a user, another operator) and have no controlling owner: they become children,
	// and are deleted as such. Without it Apply refuses them, with an error that names
	// the object and who wrote it. It is not needed for what a former version of the
	// operator made: objects in the inventories of Formerly, and those that a field
	// manager of Legacy has written, count as the operator's own. Objects that another
	// owner controls are always refused.
	TakeExisting bool
}

// ChildPolicy says what [Children.Apply] does with a child that exists and is not as
// desired. What does not exist is created whatever the policy is, and what is not
// desired any more is deleted.
type ChildPolicy uint8

const (
	// UpdateChildren applies the child again. What the server refuses is an error.
	UpdateChildren = ChildPolicy(children.Update)
	// CreateOnly leaves the child as it is, for what is made once, such as a Secret
	// with a generated password. After Apply the desired object is the one that
	// exists, so that the password can be read from it.
	CreateOnly = ChildPolicy(children.CreateOnly)
	// RecreateChildren deletes the child and creates it anew when the server refuses
	// the change although it would create the object as it is desired, which it is
	// asked by a dry run: a field cannot be changed, such as the template of a Job.
	// The dependents of the former child, such as Pods, go with it.
	RecreateChildren = ChildPolicy(children.Recreate)
	// RecreateChildrenOrphan is RecreateChildren with propagation policy Orphan: the
	// dependents of the former child stay, and those whose labels fit become the new
	// one's, such as the Pods of a StatefulSet whose volumeClaimTemplates change.
	RecreateChildrenOrphan = ChildPolicy(children.RecreateOrphan)
)

// Apply makes the desired objects exist as they are given, and deletes what was
// in the set before and is not desired any more. Afterwards the desired objects
// are what the server has. Objects without a namespace get that of the owner.
//
// It changes nothing on the server for children that are already as desired. It
// deletes only after everything was applied. It refuses children of other owners,
// and objects that others made (see TakeExisting). A child that is still being deleted
// is waited for, by a quiet retry.
func (c Children[T]) Apply(ctx context.Context, owner client.Object, desired []T) error {
	set, err := c.open(ctx, owner)
	if err != nil {
		return err
	}
	all := make([]client.Object, len(desired))
	for i, child := range desired {
		all[i] = child
	}
	return set.Apply(all)
}

// Delete deletes all children of the set and is [Finalized] once none is left,
// so that a finalizer can end with it; until then it comes back every two seconds,
// since children without an owner reference do not tell of their end.
// Children with one need it only when their order or their end matters.
func (c Children[T]) Delete(ctx context.Context, owner client.Object) (FinalizerResult, error) {
	set, err := c.open(ctx, owner)
	if err != nil {
		return FinalizerResult{}, err
	}
	switch gone, err := set.DeleteAll(); {
	case err != nil:
		return FinalizerResult{}, err
	case !gone:
		return FinalizeAfter(goneCheck), nil
	}
	return Finalized(), nil
}

func (c Children[T]) open(ctx context.Context, owner client.Object) (*children.Set, error) {
	a := attemptOf(ctx)
	if a == nil || a.children == nil {
		return nil, fmt.Errorf("children: %w", errNoAttempt)
	}
	name := c.Name
	if name == "" {
		t := strings.TrimPrefix(reflect.TypeFor[T]().String(), "*")
		name = strings.ToLower(t[strings.LastIndexByte(t, '.')+1:])
	}
	s := &children.Set{
		Context: ctx, Client: a.shared.deps.Client, Controller: a.shared.owner, Name: name, FullName: a.shared.name + "." + name, Owner: owner, OwnerGVK: a.shared.gvk, Legacy: c.Legacy,
		Whole:   c.Name == "" && isKind[T](),
		Memory:  a.children.Of(types.NamespacedName{Namespace: a.object.Namespace, Name: a.object.Name}),
		Pending: &a.inventories, Kinds: c.kinds(ctx), Policy: children.Policy(c.Policy), TakeExisting: c.TakeExisting,
		Revised: func(take func(client.Object)) {
			if _, current := a.versions(); current != owner {
				take(owner)
			}
			a.revised(take)
		},
		Write: func(from string, patch []byte, write func() (string, error)) error {
			return a.shared.own.Perform(client.ObjectKeyFromObject(owner), from, patch, write)
		},
	}
	gvk, err := client.KindOf(s.Client.Scheme(), owner)
	if err != nil {
		return nil, fmt.Errorf("children %s: %w", name, err)
	}
	if gvk != a.shared.gvk || owner.GetNamespace() != a.object.Namespace || owner.GetName() != a.object.Name {
		return nil, fmt.Errorf("children %s: the owner must be the object that is being reconciled, not %s", name, children.Ref{GVK: gvk, Key: client.ObjectKeyFromObject(owner)})
	}
	for _, former := range c.Formerly {
		if !strings.Contains(former, ".") {
			former = a.shared.name + "." + former
		}
		s.Formerly = append(s.Formerly, former)
	}
	s.Inventory, err = children.ReadInventory(s.Pending.On(owner), s.FullName, s.Formerly...)
	return s, err
}

// isKind reports whether T is the Go type of a kind.
func isKind[T client.Object]() bool {
	_, err := newObject[T]()
	return err == nil
}

// kinds are the watched kinds that children of the set may be of.
func (c Children[T]) kinds(ctx context.Context) (kinds []client.Object) {
	sh := attemptOf(ctx).shared
	if !isKind[T]() {
		return sh.owned
	}
	example, _ := newObject[T]()
	scheme := sh.deps.Client.Scheme()
	want, err := client.KindOf(scheme, example)
	for _, kind := range sh.owned {
		if got, gotErr := client.KindOf(scheme, kind); err == nil && gotErr == nil && got == want {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// SetOwner makes owner the controlling owner of child: deleted with it, and
// requested by its events. It refuses a child that another object controls.
func SetOwner(owner client.Object, gvk schema.GroupVersionKind, child client.Object) error {
	return children.SetOwner(owner, gvk, child)
}
