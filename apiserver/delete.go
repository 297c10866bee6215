// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
	"github.com/steer-dev/steer/apiserver/internal/negotiate"
	"github.com/steer-dev/steer/apiserver/internal/wire"
	"github.com/steer-dev/steer/apiserver/resource"
	"github.com/steer-dev/steer/storage"
)

// deleteOptions reads the options of a deletion, from the body or the query.
func (s *Server) deleteOptions(req *request) (*metav1.DeleteOptions, error) {
	o := &metav1.DeleteOptions{}
	data, err := s.readBody(req)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 {
		if err := parameters(req, o); err != nil {
			return nil, err
		}
	} else if err := decodeDeleteOptions(req, data, o); err != nil {
		return nil, err
	}
	o.IgnoreStoreReadErrorWithClusterBreakingPotential = nil
	if err := invalidOptions("DeleteOptions", metavalidation.ValidateDeleteOptions(o)); err != nil {
		return nil, err
	}
	o.TypeMeta = metav1.TypeMeta{Kind: "DeleteOptions", APIVersion: "meta.k8s.io/v1"}
	return o, nil
}

func decodeDeleteOptions(req *request, data []byte, o *metav1.DeleteOptions) error {
	media, err := negotiate.Input(req.http.Header.Get("Content-Type"), negotiate.Offer{Protobuf: true})
	if err != nil {
		return err
	}
	switch media {
	case negotiate.Protobuf:
		rest, ok := wire.Enveloped(data)
		if !ok {
			return apierrors.NewBadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
		}
		envelope := &runtime.Unknown{}
		if err := envelope.Unmarshal(rest); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		if err := o.Unmarshal(envelope.Raw); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	case negotiate.YAML:
		if data, err = yaml.YAMLToJSON(data); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	var meta metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &meta); err != nil {
		return apierrors.NewBadRequest(fmt.Sprintf("couldn't get version/kind; json parse error: %v", err))
	}
	if meta.Kind != "" && meta.Kind != "DeleteOptions" {
		return apierrors.NewBadRequest(runtime.NewNotRegisteredErrForKind(schemeName, meta.GroupVersionKind()).Error())
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, o); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

// delete answers a DELETE of one object.
func (s *Server) delete(ctx context.Context, w *exchange.Writer, req *request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	options, err := s.deleteOptions(req)
	if err != nil {
		return err
	}
	advise(req, options)
	d := &deletion{wr: s.newWrite(req, options.DryRun, "", ""), options: options}
	rec, gone, err := d.run(ctx, req.Name)
	if err != nil {
		return err
	}
	code := http.StatusOK
	if !gone && options.OrphanDependents != nil && !*options.OrphanDependents {
		code = http.StatusAccepted
	}
	if gone && !req.in.Deletion.ReturnsObject {
		exchange.SendStatus(w, req.http, code, req.in.deleted(rec))
		return nil
	}
	return s.answerRecord(ctx, w, req, choice, code, req.in, req.Version, rec)
}

// advise warns of a default that surprises.
func advise(req *request, o *metav1.DeleteOptions) {
	if advice := req.in.Deletion.Advice; advice != "" && o.PropagationPolicy == nil && o.OrphanDependents == nil {
		req.Warn(advice)
	}
}

// deleted is the Status of a finished deletion.
func (in *installed) deleted(rec *storage.Record) *metav1.Status {
	return &metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
		Name:  wire.String(rec.Value, "metadata", "name"),
		Group: in.Group,
		Kind:  in.Plural, // clients have always found the resource here
		UID:   types.UID(wire.String(rec.Value, "metadata", "uid")),
	}}
}

// deletion is one deletion under way.
type deletion struct {
	wr      *write
	options *metav1.DeleteOptions
}

// run deletes an object, or marks it as deleted. gone is false when it stays for
// now; rec is its last state.
func (d *deletion) run(ctx context.Context, name string) (rec *storage.Record, gone bool, err error) {
	wr := d.wr
	key := wr.in.Key(wr.req.Namespace, name)
	for {
		view, err := wr.s.store.View(ctx, 0)
		if err != nil {
			return nil, false, err
		}
		current := view.Get(key)
		if current == nil {
			return nil, false, apierrors.NewNotFound(wr.in.GroupResource(), name)
		}
		rec, gone, err = d.attempt(ctx, current)
		if !errors.Is(err, storage.ErrConflict) {
			return rec, gone, err
		}
		if ctx.Err() != nil {
			return nil, false, ctx.Err()
		}
	}
}

func (d *deletion) attempt(ctx context.Context, current *storage.Record) (rec *storage.Record, gone bool, err error) {
	wr, in := d.wr, d.wr.in
	obj, err := wr.s.object(ctx, in, wr.v, current)
	if err != nil {
		return nil, false, err
	}
	if err := d.preconditions(obj); err != nil {
		return nil, false, err
	}
	old := beforeMark(obj)
	if err := d.admit(ctx, old); err != nil {
		return nil, false, err
	}
	m := d.mark(obj)
	switch {
	case m.pending:
		return current, false, nil
	case !m.stays && wr.dryRun:
		return current, true, nil
	case !m.stays:
		rec, err := wr.s.store.Commit(ctx, storage.Write{Key: current.Key, Expect: current.Modified})
		if err != nil {
			return nil, false, err
		}
		return rec, true, wr.committed(ctx, resource.Change{Object: old, Old: old, Deleted: true}, rec)
	case wr.dryRun:
		rec, err := wr.s.transient(in, wr.v, obj)
		return rec, m.brief, err
	}
	var shown resource.Object
	if in.Committed != nil {
		shown = obj.DeepCopyObject().(resource.Object)
	}
	value, stamp, err := wr.s.seal(ctx, in, wr.v, obj)
	if err != nil {
		return nil, false, err
	}
	if sameBytes(current, value, stamp) {
		return current, false, nil
	}
	rec, err = wr.s.store.Commit(ctx, storage.Write{Key: current.Key, Value: value, Stamp: stamp, Expect: current.Modified})
	if err != nil {
		return nil, false, err
	}
	if !m.brief {
		return rec, false, wr.committed(ctx, resource.Change{Object: shown, Old: old}, rec)
	}
	// Watchers see the mark first, as of every object that is deleted gracefully.
	rec, err = wr.s.store.Commit(ctx, storage.Write{Key: current.Key, Expect: rec.Modified})
	if err != nil {
		return nil, false, err
	}
	return rec, true, wr.committed(ctx, resource.Change{Object: old, Old: old, Deleted: true}, rec)
}

// preconditions holds the deletion to the object that its sender has seen.
func (d *deletion) preconditions(obj resource.Object) error {
	p := d.options.Preconditions
	if p == nil {
		return nil
	}
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Group: d.wr.in.StoredKind().Group, Resource: d.wr.in.Kind}, obj.GetName(), fmt.Errorf(format, args...))
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, obj.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, obj.GetResourceVersion())
	}
	return nil
}

func (d *deletion) admit(ctx context.Context, old resource.Object) error {
	admission := d.wr.s.options.Admission
	if admission == nil {
		return nil
	}
	a := &resource.AdmissionRequest{Request: &d.wr.req.Request, Operation: resource.Delete, Old: old, Options: d.options, DryRun: d.wr.dryRun}
	if d.wr.req.Name != old.GetName() { // one of a collection
		one := d.wr.req.Request
		one.Name = old.GetName()
		a.Request = &one
	}
	if err := admission.Admit(ctx, a); err != nil {
		return err
	}
	return admission.Validate(ctx, a)
}

// beforeMark returns what an object is before it is marked. Of an unstructured
// one marking changes no more than members of the metadata.
func beforeMark(obj resource.Object) resource.Object {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return obj.DeepCopyObject().(resource.Object)
	}
	content := maps.Clone(u.Object)
	if metadata, ok := content["metadata"].(map[string]any); ok {
		content["metadata"] = maps.Clone(metadata)
	}
	return &unstructured.Unstructured{Object: content}
}

// marked tells what a deletion makes of an object.
type marked struct {
	stays   bool // it is to be stored as changed
	brief   bool // and to be deleted right after that
	pending bool // nothing changes: it is already on its way out
}

// mark marks an object as deleted, if it cannot go at once.
func (d *deletion) mark(obj resource.Object) marked {
	rules := &d.wr.in.Deletion
	first := obj.GetDeletionTimestamp() == nil
	seconds, graceful := d.grace(obj)
	if graceful && seconds < 0 {
		return marked{pending: true}
	}
	obj.SetFinalizers(d.finalizers(obj))
	holds := rules.Holds != nil && rules.Holds(obj)
	free := len(obj.GetFinalizers()) == 0 && !holds && seconds == 0
	if free && !graceful {
		return marked{}
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
		return marked{stays: true}
	}
	obj.SetDeletionGracePeriodSeconds(&seconds)
	if generation := obj.GetGeneration(); first && generation > 0 {
		obj.SetGeneration(generation + 1)
	}
	return marked{stays: true, brief: free}
}

// grace returns how long an object is kept, for kinds that are deleted
// gracefully. Once it is marked the time can only become shorter: -1 means that
// it does not.
func (d *deletion) grace(obj resource.Object) (seconds int64, graceful bool) {
	rule := d.wr.in.Deletion.Grace
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

// finalizers returns the finalizers of an object with those that the propagation
// policy asks of the garbage collector.
func (d *deletion) finalizers(obj resource.Object) []string {
	has := obj.GetFinalizers()
	if d.wr.in.Deletion.Uncollectable {
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

// propagation is what becomes of the dependents: what the request says, or the
// object's finalizers, or the resource.
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
	return d.wr.in.Deletion.Propagation
}

// deleteCollection answers a DELETE of all selected objects.
func (s *Server) deleteCollection(ctx context.Context, w *exchange.Writer, req *request) error {
	choice, err := req.negotiate(req.offer())
	if err != nil {
		return err
	}
	list, sel, err := listOptions(req)
	if err != nil {
		return err
	}
	sel.s = s
	options, err := s.deleteOptions(req)
	if err != nil {
		return err
	}
	advise(req, options)
	p, err := s.readPage(ctx, sel, list)
	if err != nil {
		return err
	}
	for _, rec := range p.records {
		if err := ctx.Err(); err != nil {
			return err
		}
		one := *req
		m := project(rec).meta
		if one.in.Namespaced {
			one.Namespace = m.Namespace
		}
		d := &deletion{wr: s.newWrite(&one, options.DryRun, "", ""), options: options.DeepCopy()}
		if _, _, err := d.run(ctx, m.Name); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return s.answerList(ctx, w, req, choice, p)
}
