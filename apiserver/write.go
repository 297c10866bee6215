// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// write is one create, update or patch under way.
type write struct {
	s   *Server
	req *request
	in  *installed
	v   *resource.Version
	// strategy and ownership of the object, or of the subresource written to.
	strategy  resource.Strategy
	ownership resource.Ownership
	manager   string
	dryRun    bool
	// creates admits that the object does not exist yet.
	creates bool
	// options as admission sees them, for either outcome.
	createOptions *metav1.CreateOptions
	updateOptions *metav1.UpdateOptions
}

// newWrite prepares a write; the options are those that all writes share.
func (s *Server) newWrite(req *request, dryRun []string, fieldManager, fieldValidation string) *write {
	wr := &write{
		s: s, req: req, in: req.in, v: req.Version,
		strategy: req.Version.Strategy, ownership: req.Version.Ownership,
		manager: apply.ManagerName(fieldManager, req.UserAgent),
		dryRun:  resource.IsDryRun(dryRun),
		createOptions: &metav1.CreateOptions{
			TypeMeta: metav1.TypeMeta{Kind: "CreateOptions", APIVersion: "meta.k8s.io/v1"},
			DryRun:   dryRun, FieldManager: fieldManager, FieldValidation: fieldValidation,
		},
		updateOptions: &metav1.UpdateOptions{
			TypeMeta: metav1.TypeMeta{Kind: "UpdateOptions", APIVersion: "meta.k8s.io/v1"},
			DryRun:   dryRun, FieldManager: fieldManager, FieldValidation: fieldValidation,
		},
	}
	if sub := req.sub; sub != nil && sub.Strategy != nil {
		wr.strategy, wr.ownership = sub.Strategy, sub.Ownership
	}
	return wr
}

// own records who set which field.
func (wr *write) own(live, obj resource.Object) (resource.Object, error) {
	if wr.ownership == nil {
		return obj, nil
	}
	return wr.ownership.Update(live, obj, wr.manager)
}

// admit runs mutating admission and brings the result back into shape.
func (wr *write) admit(ctx context.Context, obj, old resource.Object) (resource.Object, error) {
	if wr.s.options.Admission == nil {
		return obj, nil
	}
	a := wr.admission(obj, old)
	if !resource.Mutates(wr.s.options.Admission, a) { // then it is in shape already
		return obj, wr.s.options.Admission.Admit(ctx, a)
	}
	if old != nil { // with which a patched object shares what it has in common
		obj = obj.DeepCopyObject().(resource.Object)
		a.Object = obj
	}
	before := obj.GetManagedFields()
	if err := wr.s.options.Admission.Admit(ctx, a); err != nil {
		return nil, err
	}
	obj = a.Object
	if wr.ownership != nil {
		if warning := apply.Restore(obj, before); warning != "" {
			wr.req.Warn(warning)
		}
	}
	if _, err := wr.strategy.Normalize(obj); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("after admission: %w", err))
	}
	return obj, nil
}

func (wr *write) admission(obj, old resource.Object) *resource.AdmissionRequest {
	a := &resource.AdmissionRequest{Request: &wr.req.Request, Operation: resource.Create, Object: obj, Old: old, Options: wr.createOptions, DryRun: wr.dryRun}
	if old != nil {
		a.Operation, a.Options = resource.Update, wr.updateOptions
	}
	if a.Name == "" && obj.GetName() != "" { // by now it is generated
		named := wr.req.Request
		named.Name = obj.GetName()
		a.Request = &named
	}
	return a
}

// validated runs validating admission.
func (wr *write) validated(ctx context.Context, obj, old resource.Object) error {
	if wr.s.options.Admission == nil {
		return nil
	}
	if sub := wr.req.sub; sub != nil && sub.Scale != nil {
		scale, err := wr.req.scaleOf(obj)
		if err != nil {
			return err
		}
		was, err := wr.req.scaleOf(old)
		if err != nil {
			was = wr.req.scaleMeta(old) // it had no count before
		}
		obj, old = scale, was
	}
	return wr.s.options.Admission.Validate(ctx, wr.admission(obj, old))
}

// errKeyTaken tells that a create found its key in use.
var errKeyTaken = errors.New("apiserver: the key is in use")

// insert stores an object that does not exist yet. It takes obj over.
func (wr *write) insert(ctx context.Context, obj resource.Object) (*storage.Record, error) {
	s, in := wr.s, wr.in
	s.fillSystemFields(obj)
	if obj.GetName() == "" && obj.GetGenerateName() != "" {
		obj.SetName(s.generateName(obj.GetGenerateName()))
	}
	obj.SetGeneration(0)
	wr.strategy.Prepare(ctx, obj, nil)
	errs := append(in.validateMetadata(obj, nil, wr.ownership != nil), wr.strategy.Validate(ctx, obj, nil)...)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(in.groupKind(obj), obj.GetName(), errs)
	}
	for _, text := range wr.strategy.Warnings(ctx, obj, nil) {
		wr.req.Warn(text)
	}
	if err := wr.validated(ctx, obj, nil); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" && !wr.creates {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	obj.SetResourceVersion("")
	key := in.Key(obj.GetNamespace(), obj.GetName())
	if wr.dryRun {
		view, err := s.store.View(ctx, 0)
		if err != nil {
			return nil, err
		}
		if current := view.Get(key); current != nil {
			return nil, fmt.Errorf("%w: %w", errKeyTaken, in.exists(obj, current))
		}
		return s.transient(in, wr.v, obj)
	}
	var shown resource.Object
	if in.Committed != nil {
		shown = obj.DeepCopyObject().(resource.Object)
	}
	value, stamp, err := s.seal(ctx, in, wr.v, obj)
	if err != nil {
		return nil, err
	}
	rec, err := s.store.Commit(ctx, storage.Write{Key: key, Value: value, Stamp: stamp, Expect: storage.Absent})
	var conflict *storage.ConflictError
	if errors.As(err, &conflict) {
		return nil, fmt.Errorf("%w: %w", errKeyTaken, in.exists(obj, conflict.Current))
	}
	if err != nil {
		return nil, err
	}
	return rec, wr.committed(ctx, resource.Change{Object: shown}, rec)
}

// committed tells the resource about a change.
func (wr *write) committed(ctx context.Context, c resource.Change, rec *storage.Record) error {
	if wr.in.Committed == nil {
		return nil
	}
	c.Request, c.Revision = &wr.req.Request, rec.Modified
	if c.Object != nil && !c.Deleted {
		c.Object.SetResourceVersion(strconv.FormatInt(int64(rec.Modified), 10))
	}
	return wr.in.Committed(ctx, c)
}

// exists is the 409 for a name that is taken.
func (in *installed) exists(obj resource.Object, current *storage.Record) error {
	gr := in.GroupResource()
	err := apierrors.NewAlreadyExists(gr, obj.GetName())
	if obj.GetGenerateName() != "" {
		err = apierrors.NewGenerateNameConflict(gr, obj.GetName(), 1)
	}
	if current != nil && project(current).meta.Terminating {
		err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
	}
	return err
}

// groupKind names the kind in a refusal: the one that the object claims to be.
func (in *installed) groupKind(obj resource.Object) schema.GroupKind {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = in.Kind
	}
	return schema.GroupKind{Group: in.StoredKind().Group, Kind: kind}
}

// replace makes change of the current object and stores the outcome, again on
// the newer state whenever somebody else wrote in between. change gets nil when
// there is no object, and must return an object that it does not keep.
func (wr *write) replace(ctx context.Context, change func(ctx context.Context, old resource.Object, rec *storage.Record) (resource.Object, error)) (rec *storage.Record, created bool, err error) {
	s, in := wr.s, wr.in
	key := in.Key(wr.req.Namespace, wr.req.Name)
	view, err := s.store.View(ctx, 0)
	if err != nil {
		return nil, false, err
	}
	for current := view.Get(key); ; {
		if current == nil {
			rec, err = wr.upsert(ctx, change)
			if !errors.Is(err, errKeyTaken) {
				return rec, err == nil, err
			}
		} else {
			rec, err = wr.replaceAt(ctx, current, change)
			if !errors.Is(err, storage.ErrConflict) {
				return rec, false, err
			}
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
		if view, err = s.store.View(ctx, 0); err != nil {
			return nil, false, err
		}
		current = view.Get(key)
	}
}

// upsert creates the object that a write found missing.
func (wr *write) upsert(ctx context.Context, change func(context.Context, resource.Object, *storage.Record) (resource.Object, error)) (*storage.Record, error) {
	if !wr.creates {
		return nil, apierrors.NewNotFound(wr.in.GroupResource(), wr.req.Name)
	}
	obj, err := change(ctx, nil, nil)
	if err != nil {
		return nil, err
	}
	if err := wr.s.authorize(ctx, wr.req, "create"); err != nil {
		return nil, err
	}
	return wr.insert(ctx, obj)
}

// replaceAt is one attempt to replace one version of an object.
func (wr *write) replaceAt(ctx context.Context, current *storage.Record, change func(context.Context, resource.Object, *storage.Record) (resource.Object, error)) (*storage.Record, error) {
	s, in := wr.s, wr.in
	old, err := s.object(ctx, in, wr.v, current)
	if err != nil {
		return nil, err
	}
	obj, err := change(ctx, old, current)
	if err != nil {
		return nil, err
	}
	if err := wr.checkRevision(obj, old); err != nil {
		return nil, err
	}
	obj.SetGeneration(old.GetGeneration())
	wr.strategy.Prepare(ctx, obj, old)
	keepSystemFields(obj, old)
	errs := append(in.validateMetadata(obj, old, wr.ownership != nil), wr.strategy.Validate(ctx, obj, old)...)
	if len(errs) > 0 {
		return nil, apierrors.NewInvalid(in.groupKind(obj), obj.GetName(), errs)
	}
	for _, text := range wr.strategy.Warnings(ctx, obj, old) {
		wr.req.Warn(text)
	}
	if wr.ownership != nil {
		apply.KeepTimes(old, obj)
	}
	if err := wr.validated(ctx, obj, old); err != nil {
		return nil, err
	}
	if in.finished(obj, old) {
		return wr.finish(ctx, current, obj, old)
	}
	if wr.dryRun {
		return s.transient(in, wr.v, obj)
	}
	var shown resource.Object
	if in.Committed != nil {
		shown = obj.DeepCopyObject().(resource.Object)
	}
	value, stamp, err := s.seal(ctx, in, wr.v, obj)
	if err != nil {
		return nil, err
	}
	if sameBytes(current, value, stamp) {
		return current, nil
	}
	rec, err := s.store.Commit(ctx, storage.Write{Key: current.Key, Value: value, Stamp: stamp, Expect: current.Modified})
	if err != nil {
		return nil, err
	}
	return rec, wr.committed(ctx, resource.Change{Object: shown, Old: old}, rec)
}

// checkRevision holds an update to the version and the identity it was made
// from.
func (wr *write) checkRevision(obj, old resource.Object) error {
	gr := wr.in.GroupResource()
	// Of a patch the uid is part of the outcome, and validated like the rest.
	if uid := obj.GetUID(); uid != "" && uid != old.GetUID() && wr.req.Verb == "update" {
		return apierrors.NewConflict(gr, wr.req.Name, fmt.Errorf(
			"StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %s, UID in object meta: %s",
			wr.in.registryKey(old), uid, old.GetUID()))
	}
	switch obj.GetResourceVersion() {
	case old.GetResourceVersion():
	case "", "0":
		if !wr.in.Update.Unconditional {
			return apierrors.NewInvalid(schema.GroupKind{Group: gr.Group, Kind: gr.Resource}, wr.req.Name, field.ErrorList{
				field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update"),
			})
		}
		obj.SetResourceVersion(old.GetResourceVersion())
	default:
		if _, err := parseRevision(obj.GetResourceVersion()); err != nil {
			return errors.Unwrap(err)
		}
		return apierrors.NewConflict(gr, wr.req.Name, errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	}
	return nil
}

// registryKey is the name that other servers have for the key of an object;
// it is part of messages.
func (in *installed) registryKey(obj resource.Object) string {
	key := "/registry/"
	if group := in.StoredKind().Group; group != "" {
		key += group + "/"
	}
	return key + in.Plural + "/" + in.Key(obj.GetNamespace(), obj.GetName()).Name
}

// sameBytes tells whether a value differs from a stored one in nothing but the
// revision.
func sameBytes(rec *storage.Record, value []byte, stamp int) bool {
	if stamp != rec.Stamp || len(rec.Value) <= len(value) || !bytes.Equal(rec.Value[:stamp], value[:stamp]) {
		return false
	}
	return bytes.Equal(rec.Value[len(rec.Value)-(len(value)-stamp):], value[stamp:]) &&
		len(rec.Value)-len(value) == len(strconv.FormatInt(int64(rec.Modified), 10))
}

// finished tells whether an update lets go of an object that is marked as
// deleted.
func (in *installed) finished(obj, old resource.Object) bool {
	if old.GetDeletionTimestamp() == nil || len(obj.GetFinalizers()) > 0 {
		return false
	}
	if grace := old.GetDeletionGracePeriodSeconds(); grace != nil && *grace != 0 {
		return false
	}
	return in.Deletion.Holds == nil || !in.Deletion.Holds(obj)
}

// finish removes an object whose last finalizer an update has removed. The
// answer is the object as the update wanted it.
func (wr *write) finish(ctx context.Context, current *storage.Record, obj, old resource.Object) (*storage.Record, error) {
	if !wr.dryRun {
		rec, err := wr.s.store.Commit(ctx, storage.Write{Key: current.Key, Expect: current.Modified})
		if err != nil {
			return nil, err
		}
		if err := wr.committed(ctx, resource.Change{Object: old, Old: old, Deleted: true}, rec); err != nil {
			return nil, err
		}
	}
	return wr.s.transient(wr.in, wr.v, obj)
}
