// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// deletion is one deletion in progress.
type deletion struct {
	op      *Operation
	options *metav1.DeleteOptions
}

// Delete deletes an object, or marks it as deleted. gone is false if the object
// remains; rec is its last state.
func (op *Operation) Delete(ctx context.Context, name string, o *metav1.DeleteOptions) (rec *storage.Record, gone bool, err error) {
	d := &deletion{op: op, options: o}
	key := op.Served.Key(op.Request.Namespace, name)
	for {
		current := op.g.store.Get(key)
		if current == nil {
			return nil, false, apierrors.NewNotFound(op.Served.GroupResource(), name)
		}
		rec, err = op.attempt(func() (rec *storage.Record, err error) {
			rec, gone, err = d.attempt(ctx, current)
			return rec, err
		})
		if !errors.Is(err, storage.ErrConflict) {
			return rec, gone, err
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
	}
}

func (d *deletion) attempt(ctx context.Context, current *storage.Record) (rec *storage.Record, gone bool, err error) {
	op, in := d.op, d.op.Served
	obj, err := op.g.Object(ctx, in, op.Version, current)
	if err != nil {
		return nil, false, in.Corrupt(ctx, current, err)
	}
	if err := op.CheckDeletion(obj, d.options); err != nil {
		return nil, false, err
	}
	old := obj.DeepCopyObject().(resource.Object)
	m := d.mark(obj)
	if m.pending {
		return current, false, nil
	}
	if err := op.AdmitDeletion(ctx, old, d.effectiveOptions(m)); err != nil {
		return nil, false, err
	}
	switch {
	case !m.stays && op.Request.DryRun:
		return current, true, nil
	case !m.stays:
		rec, err := op.commit(ctx, storage.Write{Key: current.Key, Expect: current.Modified})
		if err != nil {
			return nil, false, err
		}
		return rec, true, op.committed(ctx, resource.Change{Object: old, Old: old, Deleted: true}, rec)
	case op.Request.DryRun:
		rec, err := op.g.TransientRecord(in, op.Version, obj)
		return rec, m.brief, err
	}
	rec, shown, err := op.put(ctx, current.Key, current, obj)
	if err != nil || rec == current {
		return rec, false, err
	}
	if !m.brief {
		return rec, false, op.committed(ctx, resource.Change{Object: shown, Old: old}, rec)
	}
	// Watchers see the deletionTimestamp first, as for every graceful deletion.
	rec, err = op.commit(ctx, storage.Write{Key: current.Key, Expect: rec.Modified})
	if err != nil {
		return nil, false, err
	}
	return rec, true, op.committed(ctx, resource.Change{Object: old, Old: old, Deleted: true}, rec)
}

// CheckDeletion checks the preconditions of a deletion.
func (op *Operation) CheckDeletion(obj resource.Object, o *metav1.DeleteOptions) error {
	p, in := o.Preconditions, op.Served
	if p == nil {
		return nil
	}
	if in.Deletion.Mark != nil {
		if err := preconditionFailed(p, obj); err != nil {
			return apierrors.NewConflict(in.GroupResource(), obj.GetName(), err)
		}
		return nil
	}
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Group: in.StoredKind().Group, Resource: in.Kind}, obj.GetName(), fmt.Errorf(format, args...))
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, obj.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, obj.GetResourceVersion())
	}
	return nil
}

// now is the current time in whole seconds, as metadata has it.
func now() metav1.Time { return metav1.NewTime(time.Now().Truncate(time.Second)) }

// AdmitDeletion runs both passes of admission of the deletion of old. The items of a
// deletecollection have no name there, as in kube-apiserver: they are old.
func (op *Operation) AdmitDeletion(ctx context.Context, old resource.Object, o *metav1.DeleteOptions) error {
	if op.admission == nil {
		return nil
	}
	a := &resource.AdmissionRequest{Request: op.Request, Operation: resource.Delete, Old: old, Options: o}
	if op.follows && !a.DryRun {
		a.Finish = &op.ending
	}
	if err := op.admission.Admit(ctx, a); err != nil {
		return err
	}
	return op.admission.Validate(ctx, a)
}

// effectiveOptions are the options with the grace period that the object is given.
func (d *deletion) effectiveOptions(m deletionOutcome) *metav1.DeleteOptions {
	if m.grace == nil {
		return d.options
	}
	out := *d.options
	out.GracePeriodSeconds = m.grace
	return &out
}

// deletionOutcome is how a deletion changes an object.
type deletionOutcome struct {
	stays   bool // it is stored as changed
	brief   bool // and deleted right after that
	pending bool // nothing changes: it was marked before
	// grace is the effective grace period in seconds; nil for kinds without one.
	grace *int64
}

// mark marks an object as deleted if it cannot be removed at once.
func (d *deletion) mark(obj resource.Object) deletionOutcome {
	rules := &d.op.Served.Deletion
	first := obj.GetDeletionTimestamp() == nil
	seconds, graceful := d.grace(obj)
	if graceful && seconds < 0 {
		return deletionOutcome{pending: true}
	}
	holds := rules.Holds != nil && rules.Holds(obj)
	if rules.Mark != nil && !first && holds {
		return deletionOutcome{pending: true}
	}
	obj.SetFinalizers(d.finalizers(obj))
	free := len(obj.GetFinalizers()) == 0 && !holds && seconds == 0
	if free && !graceful {
		return deletionOutcome{}
	}
	var out deletionOutcome
	if graceful {
		out.grace = &seconds
	}
	switch {
	case graceful && !first:
		// grace has moved the timestamp
	case first || obj.GetDeletionTimestamp().After(time.Now()):
		at := metav1.NewTime(now().Add(time.Duration(seconds) * time.Second))
		obj.SetDeletionTimestamp(&at)
	}
	if rules.Mark != nil {
		if first {
			rules.Mark(obj)
		}
		out.stays = true
		return out
	}
	obj.SetDeletionGracePeriodSeconds(&seconds)
	if generation := obj.GetGeneration(); first && generation > 0 {
		obj.SetGeneration(generation + 1)
	}
	out.stays, out.brief = true, free
	return out
}

// grace returns the grace period of an object, for kinds that are deleted gracefully.
// After the first deletion the period can only become shorter: -1 means that it does
// not.
func (d *deletion) grace(obj resource.Object) (seconds int64, graceful bool) {
	rule := d.op.Served.Deletion.Grace
	if rule == nil {
		return 0, false
	}
	asked := d.options.GracePeriodSeconds
	if asked != nil && *asked < 0 {
		one := int64(1)
		asked = &one
	}
	marked := obj.GetDeletionTimestamp()
	if marked == nil {
		return rule(obj, asked), true
	}
	left := obj.GetDeletionGracePeriodSeconds()
	if left == nil || *left == 0 {
		return 0, false
	}
	if asked == nil || *asked >= *left {
		return -1, true
	}
	seconds = *asked
	at := metav1.NewTime(marked.Add(time.Duration(seconds-*left) * time.Second))
	if current := now(); at.Before(&current) {
		at = current
		if seconds != 0 {
			seconds = 1
		}
	}
	obj.SetDeletionTimestamp(&at)
	return seconds, true
}

// finalizers returns the finalizers of an object with those that the propagation policy
// adds for the garbage collector.
func (d *deletion) finalizers(obj resource.Object) []string {
	has := obj.GetFinalizers()
	if d.op.Served.Deletion.NoGarbageCollection {
		return has
	}
	var out []string
	for _, f := range has {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			out = append(out, f)
		}
	}
	switch d.propagation(has) {
	case metav1.DeletePropagationOrphan:
		out = append(out, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	sorted := func(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }
	if slices.Equal(sorted(has), sorted(out)) {
		return has
	}
	return out
}

// propagation returns the effective propagation policy: that of the request, else that
// of the object's finalizers, else that of the resource.
func (d *deletion) propagation(finalizers []string) metav1.DeletionPropagation {
	switch o := d.options; {
	case o.OrphanDependents != nil && *o.OrphanDependents:
		return metav1.DeletePropagationOrphan
	case o.OrphanDependents != nil:
		return metav1.DeletePropagationBackground
	case o.PropagationPolicy != nil:
		return *o.PropagationPolicy
	}
	for _, f := range finalizers {
		switch f {
		case metav1.FinalizerOrphanDependents:
			return metav1.DeletePropagationOrphan
		case metav1.FinalizerDeleteDependents:
			return metav1.DeletePropagationForeground
		}
	}
	return d.op.Served.Deletion.Propagation
}
