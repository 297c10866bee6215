// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/internal/objectmeta"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// PrepareUpdate does what precedes the storing of an updated object: managedFields and
// admission. old is nil if the object is about to be created.
func (op *Operation) PrepareUpdate(ctx context.Context, obj, old resource.Object) (resource.Object, error) {
	if old == nil {
		return op.PrepareCreate(ctx, obj)
	}
	obj, err := op.UpdateManagedFields(ctx, old, obj)
	if err != nil {
		return nil, err
	}
	return op.AdmitRevision(ctx, obj, old)
}

// AdmitRevision runs mutating admission on an update whose managedFields are set already.
func (op *Operation) AdmitRevision(ctx context.Context, obj, old resource.Object) (resource.Object, error) {
	obj, err := op.Admit(ctx, obj, old)
	if err != nil {
		return nil, err
	}
	objectmeta.DedupAdmitted(op.Request, obj)
	return obj, nil
}

// Replace calls change with the current object and stores the result; after a
// conflicting write it does so again with the newer state. change gets nil if there is
// no object, and must return an object that it does not keep.
func (op *Operation) Replace(ctx context.Context, change func(ctx context.Context, old resource.Object, rec *storage.Record) (resource.Object, error)) (rec *storage.Record, created bool, err error) {
	g, in := op.g, op.Served
	key := in.Key(op.Request.Namespace, op.Request.Name)
	for {
		current := g.store.Get(key)
		if current == nil {
			rec, err = op.attempt(func() (*storage.Record, error) { return op.upsert(ctx, change) })
			if !errors.Is(err, errKeyTaken) {
				return rec, err == nil, err
			}
		} else {
			rec, err = op.attempt(func() (*storage.Record, error) { return op.replaceAt(ctx, current, change) })
			if !errors.Is(err, storage.ErrConflict) {
				return rec, false, err
			}
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
	}
}

// upsert creates the object that a write did not find.
func (op *Operation) upsert(ctx context.Context, change func(context.Context, resource.Object, *storage.Record) (resource.Object, error)) (*storage.Record, error) {
	if !op.Creates {
		return nil, apierrors.NewNotFound(op.Served.GroupResource(), op.Request.Name)
	}
	obj, err := change(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := op.AuthorizeCreate(ctx); err != nil {
		return nil, err
	}
	return op.insert(ctx, obj)
}

// replaceAt is one attempt to replace one version of an object.
func (op *Operation) replaceAt(ctx context.Context, current *storage.Record, change func(context.Context, resource.Object, *storage.Record) (resource.Object, error)) (*storage.Record, error) {
	in := op.Served
	old, err := op.g.Object(ctx, in, op.Version, current)
	if err != nil {
		return nil, undecodable(ctx, current, err)
	}
	obj, err := change(ctx, old, current)
	if err != nil {
		return nil, err
	}
	if err := op.CompleteUpdate(ctx, obj, old); err != nil {
		return nil, err
	}
	if in.finished(obj, old) {
		return op.deleteFinished(ctx, current, obj, old)
	}
	if op.Request.DryRun {
		return op.dryRunRecord(ctx, obj)
	}
	rec, shown, err := op.put(ctx, current.Key, current, obj)
	if err != nil || rec == current {
		return rec, err
	}
	return rec, op.committed(ctx, resource.Change{Object: shown, Old: old}, rec)
}

// CompleteUpdate checks that an object may take the place of another one: its uid and its
// resourceVersion, what an update cannot change, its metadata, and the rules of its kind.
func (op *Operation) CompleteUpdate(ctx context.Context, obj, old resource.Object) error {
	in := op.Served
	if err := op.checkRevision(obj, old); err != nil {
		return err
	}
	if err := objectmeta.EnsureNamespace(op.Request, in.Resource, obj); err != nil {
		return err
	}
	obj.SetGeneration(old.GetGeneration())
	op.Strategy.Prepare(ctx, obj, old)
	objectmeta.Keep(obj, old)
	errs := append(objectmeta.ValidateChanged(in.Resource, op.MetadataErrors, obj, old, op.FieldManager != nil), op.Strategy.Validate(ctx, obj, old)...)
	if op.Version.Typed() {
		errs = objectmeta.Distinct(errs) // of custom resources, kube-apiserver lists some twice
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(in.GroupKind(obj), obj.GetName(), errs)
	}
	for _, text := range op.Strategy.Warnings(ctx, obj, old) {
		op.Request.Warn(text)
	}
	if op.FieldManager != nil {
		apply.KeepTimes(old, obj)
	}
	return op.Validate(ctx, obj, old)
}

// checkRevision checks that an update has the uid and the resourceVersion of the
// current object.
func (op *Operation) checkRevision(obj, old resource.Object) error {
	gr := op.Served.GroupResource()
	// The uid of a patched object is validated with the rest of its metadata.
	if op.Request.Verb == "update" {
		if err := op.CheckPreconditions(obj.GetUID(), "", old); err != nil {
			return err
		}
	}
	switch obj.GetResourceVersion() {
	case old.GetResourceVersion():
	case "", "0":
		if !op.Served.Update.Unconditional {
			return apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: gr.Resource}, op.Request.Name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
			})
		}
		obj.SetResourceVersion(old.GetResourceVersion())
	default:
		if _, err := ParseRevision(obj.GetResourceVersion()); err != nil {
			return errors.Unwrap(err)
		}
		return apierrors.NewConflict(gr, op.Request.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// CheckPreconditions checks that the current object has a uid and a resourceVersion; empty
// ones are not checked.
func (op *Operation) CheckPreconditions(uid types.UID, version string, old resource.Object) error {
	var p metav1.Preconditions
	if uid != "" {
		p.UID = &uid
	}
	if version != "" {
		p.ResourceVersion = &version
	}
	if err := preconditionFailed(&p, old); err != nil {
		return apierrors.NewConflict(op.Served.GroupResource(), op.Request.Name, fmt.Errorf(
			"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: %w", op.registryKey(old), err))
	}
	return nil
}

// preconditionFailed returns which precondition an object does not meet, in the words of
// kube-apiserver; nil: it meets them.
func preconditionFailed(p *metav1.Preconditions, obj resource.Object) error {
	var failed string
	switch {
	case p.UID != nil && *p.UID != obj.GetUID():
		failed = fmt.Sprintf("UID in precondition: %s, UID in object meta: %s", *p.UID, obj.GetUID())
	case p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion():
		failed = fmt.Sprintf("ResourceVersion in precondition: %s, ResourceVersion in object meta: %s", *p.ResourceVersion, obj.GetResourceVersion())
	default:
		return nil
	}
	return errors.New("Precondition failed: " + failed)
}

// registryKey is the etcd key of an object in kube-apiserver, which its messages
// contain. Dry runs report it without the prefix of the storage.
func (op *Operation) registryKey(obj resource.Object) string {
	in, key := op.Served, "/registry/"
	if op.Request.DryRun {
		key = "/"
	}
	if group := in.StoredKind().Group; group != "" {
		key += group + "/"
	}
	return key + in.Plural + "/" + in.Key(obj.GetNamespace(), obj.GetName()).Name
}

// finished reports whether an update removes the last finalizer of an object that is
// marked as deleted.
func (in *Served) finished(obj, old resource.Object) bool {
	if old.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 {
		return false
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && *grace != 0 {
		return false
	}
	return in.Deletion.Holds == nil || !in.Deletion.Holds(obj)
}

// deleteFinished deletes an object whose last finalizer an update has removed. The
// answer is the updated object.
func (op *Operation) deleteFinished(ctx context.Context, current *storage.Record, obj, old resource.Object) (*storage.Record, error) {
	if !op.Request.DryRun {
		rec, err := op.commit(ctx, storage.Write{Key: current.Key, Expect: current.Modified})
		if err != nil {
			return nil, err
		}
		if err := op.committed(ctx, resource.Change{Object: old, Old: old, Deleted: true}, rec); err != nil {
			return nil, err
		}
	}
	return op.g.TransientRecord(op.Served, op.Version, obj)
}
