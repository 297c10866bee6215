// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/apply"
	"github.com/steer-dev/steer/apiserver/notes"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// Operation is one create, update or patch of an object in progress.
type Operation struct {
	g       *Registry
	Request *resource.Request
	Served  *Served
	Version *resource.Version
	sub     *resource.Subresource
	// Strategy and FieldManager of the object, or of the subresource that is written.
	Strategy     resource.Strategy
	FieldManager resource.FieldManager
	// MetadataErrors of what is written, as for Strategy.
	MetadataErrors resource.MetadataErrors
	// Manager is the field manager of the request.
	Manager string
	// Creates allows the write to create an object that does not exist.
	Creates bool
	// Applies: it is a server-side apply, which is nothing without its managedFields.
	Applies bool
	// Protobuf is set if the answer is protobuf.
	Protobuf  bool
	admission resource.Admission
	// ending has what waits for the outcome of the attempt under way; follows reports
	// whether that is going to be told.
	ending  resource.Finish
	follows bool
	outcome resource.Outcome
	// The options, and the options objects that admission gets for either outcome, made
	// on first use.
	options WriteOptions
	create  *metav1.CreateOptions
	update  *metav1.UpdateOptions
}

// WriteOptions are the options that all writes have in common.
type WriteOptions struct {
	DryRun                        []string
	FieldManager, FieldValidation string
}

// OptionsKind returns the type meta of an options kind.
func OptionsKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{Kind: kind, APIVersion: "meta.k8s.io/v1"}
}

// NewOperation prepares a write of an object, or of its subresource sub if that is not nil.
func (g *Registry) NewOperation(r *resource.Request, in *Served, sub *resource.Subresource, o WriteOptions) *Operation {
	r.DryRun = resource.IsDryRun(o.DryRun)
	op := &Operation{
		g: g, Request: r, Served: in, Version: r.Version, sub: sub,
		Strategy: r.Version.Strategy, FieldManager: r.Version.FieldManager, MetadataErrors: r.Version.MetadataErrors,
		Manager:   apply.ManagerName(o.FieldManager, r.UserAgent),
		admission: in.Admission, options: o,
	}
	if sub != nil && sub.Strategy != nil {
		op.Strategy, op.FieldManager, op.MetadataErrors = sub.Strategy, sub.FieldManager, sub.MetadataErrors
	}
	return op
}

// UpdateManagedFields attributes the fields that differ between live and obj to the
// manager of the request.
func (op *Operation) UpdateManagedFields(ctx context.Context, live, obj resource.Object) (resource.Object, error) {
	if op.FieldManager == nil {
		return obj, nil
	}
	return op.FieldManager.Update(ctx, live, obj, op.Manager)
}

// Admit runs mutating admission and sets the defaults of the result.
func (op *Operation) Admit(ctx context.Context, obj, old resource.Object) (resource.Object, error) {
	if op.admission == nil {
		return obj, nil
	}
	a := op.admissionRequest(obj, old)
	mutates := resource.Mutates(op.admission, a)
	var before []metav1.ManagedFieldsEntry
	if mutates {
		if old != nil { // a patched object shares memory with it
			obj = obj.DeepCopyObject().(resource.Object)
			a.Object = obj
		}
		before = obj.GetManagedFields()
	}
	if err := op.admission.Admit(ctx, a); err != nil {
		return nil, err
	}
	switch {
	case mutates:
	case a.Object == obj:
		return obj, nil // it has its defaults already
	default: // another object is in its place, and it is as it was
		before = obj.GetManagedFields()
	}
	obj = a.Object
	if op.FieldManager != nil {
		if warning := apply.Restore(obj, before); warning != "" {
			op.Request.Warn(warning)
		}
	}
	if _, err := op.Strategy.Default(obj); err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("after admission: %w", err))
	}
	return obj, nil
}

// AuthorizeCreate authorizes the creation of an object by a request that may also update one.
func (op *Operation) AuthorizeCreate(ctx context.Context) error {
	return op.g.authorize(ctx, op.Request)
}

// CreateOptions returns the options for admission if the object does not exist yet.
func (op *Operation) CreateOptions() *metav1.CreateOptions {
	if o := &op.options; op.create == nil {
		op.create = &metav1.CreateOptions{
			TypeMeta: OptionsKind("CreateOptions"),
			DryRun:   o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation,
		}
	}
	return op.create
}

// UpdateOptions returns the options for admission if the object exists.
func (op *Operation) UpdateOptions() *metav1.UpdateOptions {
	if o := &op.options; op.update == nil {
		op.update = &metav1.UpdateOptions{
			TypeMeta: OptionsKind("UpdateOptions"),
			DryRun:   o.DryRun, FieldManager: o.FieldManager, FieldValidation: o.FieldValidation,
		}
	}
	return op.update
}

// admissionRequest returns the write as admission gets it.
func (op *Operation) admissionRequest(obj, old resource.Object) *resource.AdmissionRequest {
	a := &resource.AdmissionRequest{Request: op.Request, Operation: resource.Create, Object: obj, Old: old, Strategy: op.Strategy}
	if old != nil {
		a.Operation, a.Options = resource.Update, op.UpdateOptions()
	} else {
		a.Options = op.CreateOptions()
	}
	if op.follows && !op.Request.DryRun {
		a.Finish = &op.ending
	}
	if a.Name == "" && obj.GetName() != "" { // a generated name
		named := *op.Request
		named.Name = obj.GetName()
		a.Request = &named
	}
	return a
}

// AdmitScale runs mutating admission of a Scale.
func (op *Operation) AdmitScale(ctx context.Context, scale, old resource.Object) (resource.Object, error) {
	if op.admission == nil {
		return scale, nil
	}
	a := op.admissionRequest(scale, old)
	a.Strategy = nil
	err := op.admission.Admit(ctx, a)
	return a.Object, err
}

// Validate runs validating admission.
func (op *Operation) Validate(ctx context.Context, obj, old resource.Object) error {
	if op.admission == nil {
		return nil
	}
	if op.sub != nil && op.sub.Scale != nil {
		scale, err := Scale(op.sub.Scale, obj)
		if err != nil {
			return err
		}
		was, err := Scale(op.sub.Scale, old)
		if err != nil {
			was = BareScale(old) // it had no replica count before
		}
		obj, old = scale, was
	}
	return op.admission.Validate(ctx, op.admissionRequest(obj, old))
}

// committed calls the Committed hook of the resource.
func (op *Operation) committed(ctx context.Context, c resource.Change, rec *storage.Record) error {
	if op.Served.Committed == nil {
		return nil
	}
	c.Request, c.Revision = op.Request, rec.Modified
	if c.Object != nil && !c.Deleted {
		c.Object.SetResourceVersion(strconv.FormatInt(int64(rec.Modified), 10))
	}
	return op.Served.Committed(ctx, c)
}

// ErrRedefined reports that the definition of a resource changed during a write.
// Nothing was stored: the request must be answered again.
var ErrRedefined = errors.New("registry: the definition of the resource has changed")

// put stores an object in place of the current record, nil for none, if the definition
// of the resource is still the one that the write began with. It may change obj; shown
// is a copy for the Committed hook, if there is one. It returns current if nothing
// changes.
func (op *Operation) put(ctx context.Context, key storage.Key, current *storage.Record, obj resource.Object) (rec *storage.Record, shown resource.Object, err error) {
	in := op.Served
	if in.Committed != nil {
		shown = obj.DeepCopyObject().(resource.Object)
	}
	w := storage.Write{Key: key, Expect: storage.Absent}
	s, err := op.g.encodeForStore(ctx, in, op.Version, obj)
	if err != nil {
		return nil, nil, err
	}
	if op.g.tooLarge(s.value) && !op.Applies {
		if s, err = op.g.withoutManagedFields(ctx, in, s); err != nil {
			return nil, nil, err
		}
		if shown != nil {
			shown.SetManagedFields(nil)
		}
	}
	w.Value, w.Stamp = s.value, s.stamp
	if current != nil {
		if sameBytes(current, w.Value, w.Stamp) {
			return current, nil, nil
		}
		w.Expect = current.Modified
	}
	if d := in.Storage.Definition; d != nil {
		w.While = d.Condition()
	}
	rec, err = op.commit(ctx, w)
	if err == nil && s.lossless != nil {
		op.g.marshal(in, rec, s.lossless, op.Protobuf && op.Version.Name == in.Storage.Version)
	}
	if errors.Is(err, storage.ErrUnmet) {
		err = fmt.Errorf("%w: %w", ErrRedefined, err)
	}
	return rec, shown, err
}

// withoutManagedFields encodes a too large object again, without its managedFields, which are
// worth less than the write: kube-apiserver does the same.
func (g *Registry) withoutManagedFields(ctx context.Context, in *Served, s encodedObject) (encodedObject, error) {
	obj, v, err := in.decodeStored(&storage.Record{Value: s.value})
	if err != nil {
		return s, err
	}
	obj.SetManagedFields(nil)
	return g.encodeForStore(ctx, in, v, obj)
}

// tooLarge reports whether an object is beyond [Options.ObjectBytes].
func (g *Registry) tooLarge(stored []byte) bool {
	return g.objectBytes > 0 && len(stored) > g.objectBytes
}

// errTooLarge is what kube-apiserver says of one.
func errTooLarge() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Message: "etcdserver: request is too large",
	}}
}

// commit writes to the store and notes the outcome.
func (op *Operation) commit(ctx context.Context, w storage.Write) (*storage.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if op.g.tooLarge(w.Value) {
		return nil, errTooLarge()
	}
	rec, err := op.g.store.Commit(ctx, w)
	switch {
	case err == nil:
		op.outcome = resource.Stored
		op.note(rec)
	case errors.Is(err, storage.ErrConflict), errors.Is(err, storage.ErrUnmet), errors.Is(err, storage.ErrInvalid), errors.Is(err, storage.ErrFull),
		errors.Is(err, storage.ErrNotLeader):
	default:
		op.outcome = resource.Unknown
	}
	return rec, err
}

// note remembers who made a revision.
func (op *Operation) note(rec *storage.Record) {
	if op.g.notes == nil {
		return
	}
	r := op.Request
	user := ""
	if r.User != nil {
		user = r.User.Name
	}
	namespace, name, ok := strings.Cut(rec.Key.Name, "/")
	if !ok {
		namespace, name = "", rec.Key.Name
	}
	var term storage.Revision
	if several, ok := op.g.store.(storage.Elector); ok {
		leader, _ := several.Leader()
		term = leader.Term
	}
	op.g.notes.Add(notes.Note{
		Revision: rec.Modified, Term: term, Time: time.Now(), Verb: r.Verb,
		Group: op.Served.Group, Resource: op.Served.Plural, Subresource: r.Subresource, Namespace: namespace, Name: name,
		User: user, UserAgent: r.UserAgent, FieldManager: op.Manager, AuditID: r.AuditID,
	})
}

// attempt carries out one attempt at a write, and tells those who wait for its outcome.
func (op *Operation) attempt(do func() (*storage.Record, error)) (*storage.Record, error) {
	op.follows, op.outcome = true, resource.NotStored
	defer func() {
		op.follows = false
		op.ending.Run(op.outcome)
	}()
	return do()
}

// sameBytes reports whether a value differs from a stored one in nothing but the
// revision.
func sameBytes(rec *storage.Record, value []byte, stamp int) bool {
	if stamp != rec.Stamp || len(rec.Value) <= len(value) || !bytes.Equal(rec.Value[:stamp], value[:stamp]) {
		return false
	}
	return bytes.Equal(rec.Value[len(rec.Value)-(len(value)-stamp):], value[stamp:]) &&
		len(rec.Value)-len(value) == len(strconv.FormatInt(int64(rec.Modified), 10))
}

// GroupKind returns the kind for an error message: the one that the object claims to
// be.
func (in *Served) GroupKind(obj resource.Object) schema.GroupKind {
	kind := obj.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = in.Kind
	}
	return schema.GroupKind{Group: in.StoredKind().Group, Kind: kind}
}
