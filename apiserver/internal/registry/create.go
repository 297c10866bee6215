// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/internal/genname"
	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/apiserver/internal/recordcache"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Create stores a new object. While a generated name is taken, it tries others.
func (op *Operation) Create(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	return op.attempt(func() (*storage.Record, error) { return op.createNew(ctx, obj) })
}

func (op *Operation) createNew(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	obj, err := op.PrepareCreate(ctx, obj)
	if err != nil {
		return nil, err
	}
	var rec *storage.Record
	err = genname.Try(obj, func(candidate resource.Object) (taken bool, err error) {
		rec, err = op.insert(ctx, candidate)
		return errors.Is(err, errKeyTaken), err
	})
	return rec, err
}

// CompleteNew gives a new object its uid, its time of creation and, if it has none, the name
// that it wants to have generated, and validates it.
func (op *Operation) CompleteNew(ctx context.Context, obj resource.Object) error {
	in := op.Served
	obj.SetCreationTimestamp(now())
	obj.SetUID(op.g.identity.UID())
	genname.Set(obj, op.g.identity.Suffix)
	if err := objectmeta.EnsureNamespace(op.Request, in.Resource, obj); err != nil {
		return err // admission has changed it
	}
	op.Strategy.Prepare(ctx, obj, nil)
	if errs := objectmeta.ValidateNew(ctx, in.Resource, op.Strategy, op.MetadataErrors, obj, op.FieldManager != nil); len(errs) > 0 {
		return apierrors.NewInvalid(in.GroupKind(obj), obj.GetName(), objectmeta.Distinct(errs))
	}
	for _, text := range op.Strategy.Warnings(ctx, obj, nil) {
		op.Request.Warn(text)
	}
	if err := op.Validate(ctx, obj, nil); err != nil {
		return err
	}
	if op.Creates {
		obj.SetResourceVersion("")
	}
	return nil
}

// TakeRevision removes the resourceVersion of a new object, which must not name a revision.
func TakeRevision(obj resource.Object) error {
	if revision, err := ParseRevision(obj.GetResourceVersion()); err == nil && revision != 0 {
		return errors.New("resourceVersion should not be set on objects to be created")
	}
	obj.SetResourceVersion("")
	return nil
}

// PrepareCreate does what precedes the assignment of name and uid: managedFields and
// admission.
func (op *Operation) PrepareCreate(ctx context.Context, obj resource.Object) (resource.Object, error) {
	objectmeta.Wipe(obj)
	if err := objectmeta.EnsureNamespace(op.Request, op.Served.Resource, obj); err != nil {
		return nil, err
	}
	objectmeta.DedupOwnerReferences(op.Request, obj)
	if op.Request.Name == "" {
		op.Request.Name = obj.GetName()
	}
	obj, err := op.UpdateManagedFields(ctx, op.Served.empty(op.Version), obj)
	if err != nil {
		return nil, err
	}
	if obj, err = op.Admit(ctx, obj, nil); err != nil {
		return nil, err
	}
	objectmeta.DedupAdmitted(op.Request, obj)
	return obj, nil
}

// PrepareAnswer is [Operation.PrepareCreate] for an object that is posted to a subresource,
// whose backend validates the metadata.
func (op *Operation) PrepareAnswer(ctx context.Context, obj resource.Object) (resource.Object, error) {
	obj, err := op.UpdateManagedFields(ctx, op.Served.empty(op.Version), obj)
	if err != nil {
		return nil, err
	}
	return op.Admit(ctx, obj, nil)
}

// PrepareApplied does what precedes the creation of an applied object, whose
// managedFields are set already.
func (op *Operation) PrepareApplied(ctx context.Context, obj resource.Object) (resource.Object, error) {
	obj, err := op.Admit(ctx, obj, nil)
	if err != nil {
		return nil, err
	}
	objectmeta.Wipe(obj)
	objectmeta.DedupAdmitted(op.Request, obj)
	return obj, nil
}

// errKeyTaken: the key of a creation exists.
var errKeyTaken = errors.New("apiserver: the key is in use")

// insert stores an object that does not exist yet. It may change obj.
func (op *Operation) insert(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	g, in := op.g, op.Served
	if err := op.CompleteNew(ctx, obj); err != nil {
		return nil, err
	}
	key := in.Key(obj.GetNamespace(), obj.GetName())
	if op.Request.DryRun {
		current := g.store.Get(key)
		if current != nil {
			return nil, fmt.Errorf("%w: %w", errKeyTaken, in.exists(obj, current))
		}
		return op.dryRunRecord(ctx, obj)
	}
	if err := TakeRevision(obj); err != nil {
		return nil, err
	}
	rec, shown, err := op.put(ctx, key, nil, obj)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		return nil, fmt.Errorf("%w: %w", errKeyTaken, in.exists(obj, conflict.Current))
	}
	if err != nil {
		return nil, err
	}
	return rec, op.committed(ctx, resource.Change{Object: shown}, rec)
}

// exists is the 409 AlreadyExists for a name that is taken.
func (in *Served) exists(obj resource.Object, current *storage.Record) error {
	gr := in.GroupResource()
	err := apierrors.NewAlreadyExists(gr, obj.GetName())
	if obj.GetGenerateName() != "" {
		gr.Group = in.StoredKind().Group
		err = apierrors.NewGenerateNameConflict(gr, obj.GetName(), 1)
	}
	if current != nil && recordcache.Meta(current).Terminating {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}
