// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/steer-dev/steer/apiserver/internal/encodings"
	"github.com/steer-dev/steer/apiserver/internal/genname"
	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Create stores a new object. While a generated name is taken, it tries others.
func (wr *Write) Create(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	return wr.attempt(func() (*storage.Record, error) { return wr.createNew(ctx, obj) })
}

func (wr *Write) createNew(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	obj, err := wr.PrepareCreate(ctx, obj)
	if err != nil {
		return nil, err
	}
	var rec *storage.Record
	err = genname.Try(obj, func(candidate resource.Object) (taken bool, err error) {
		rec, err = wr.insert(ctx, candidate)
		return errors.Is(err, errKeyTaken), err
	})
	return rec, err
}

// CompleteNew gives a new object its uid, its time of creation and, if it has none, the name
// that it wants to have generated, and validates it.
func (wr *Write) CompleteNew(ctx context.Context, obj resource.Object) error {
	in := wr.Served
	obj.SetCreationTimestamp(now())
	obj.SetUID(wr.g.identity.UID())
	genname.Set(obj, wr.g.identity.Suffix)
	if err := objectmeta.EnsureNamespace(wr.Request, in.Resource, obj); err != nil {
		return err // admission has changed it
	}
	wr.Strategy.Prepare(ctx, obj, nil)
	if errs := objectmeta.ValidateNew(ctx, in.Resource, wr.Strategy, wr.MetadataErrors, obj, wr.FieldManager != nil); len(errs) > 0 {
		return apierrors.NewInvalid(in.GroupKind(obj), obj.GetName(), objectmeta.Distinct(errs))
	}
	for _, text := range wr.Strategy.Warnings(ctx, obj, nil) {
		wr.Request.Warn(text)
	}
	if err := wr.Validate(ctx, obj, nil); err != nil {
		return err
	}
	if wr.Creates {
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
func (wr *Write) PrepareCreate(ctx context.Context, obj resource.Object) (resource.Object, error) {
	objectmeta.Wipe(obj)
	if err := objectmeta.EnsureNamespace(wr.Request, wr.Served.Resource, obj); err != nil {
		return nil, err
	}
	objectmeta.DedupOwnerReferences(wr.Request, obj)
	if wr.Request.Name == "" {
		wr.Request.Name = obj.GetName()
	}
	obj, err := wr.UpdateManagedFields(ctx, wr.Served.empty(wr.Version), obj)
	if err != nil {
		return nil, err
	}
	if obj, err = wr.Admit(ctx, obj, nil); err != nil {
		return nil, err
	}
	objectmeta.DedupAdmitted(wr.Request, obj)
	return obj, nil
}

// PrepareAnswer is [Write.PrepareCreate] for an object that is posted to a subresource,
// whose backend validates the metadata.
func (wr *Write) PrepareAnswer(ctx context.Context, obj resource.Object) (resource.Object, error) {
	obj, err := wr.UpdateManagedFields(ctx, wr.Served.empty(wr.Version), obj)
	if err != nil {
		return nil, err
	}
	return wr.Admit(ctx, obj, nil)
}

// PrepareApplied does what precedes the creation of an applied object, whose
// managedFields are set already.
func (wr *Write) PrepareApplied(ctx context.Context, obj resource.Object) (resource.Object, error) {
	obj, err := wr.Admit(ctx, obj, nil)
	if err != nil {
		return nil, err
	}
	objectmeta.Wipe(obj)
	objectmeta.DedupAdmitted(wr.Request, obj)
	return obj, nil
}

// errKeyTaken: the key of a creation exists.
var errKeyTaken = errors.New("apiserver: the key is in use")

// insert stores an object that does not exist yet. It may change obj.
func (wr *Write) insert(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	g, in := wr.g, wr.Served
	if err := wr.CompleteNew(ctx, obj); err != nil {
		return nil, err
	}
	key := in.Key(obj.GetNamespace(), obj.GetName())
	if wr.Request.DryRun {
		current := g.store.Get(key)
		if current != nil {
			return nil, fmt.Errorf("%w: %w", errKeyTaken, in.exists(obj, current))
		}
		return wr.dryRunRecord(ctx, obj)
	}
	if err := TakeRevision(obj); err != nil {
		return nil, err
	}
	rec, shown, err := wr.put(ctx, key, nil, obj)
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		return nil, fmt.Errorf("%w: %w", errKeyTaken, in.exists(obj, conflict.Current))
	}
	if err != nil {
		return nil, err
	}
	return rec, wr.committed(ctx, resource.Change{Object: shown}, rec)
}

// exists is the 409 AlreadyExists for a name that is taken.
func (in *Served) exists(obj resource.Object, current *storage.Record) error {
	gr := in.GroupResource()
	err := apierrors.NewAlreadyExists(gr, obj.GetName())
	if obj.GetGenerateName() != "" {
		gr.Group = in.StoredKind().Group
		err = apierrors.NewGenerateNameConflict(gr, obj.GetName(), 1)
	}
	if current != nil && encodings.Meta(current).Terminating {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}
