// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

// statusTries is how often the status of one attempt meets a newer revision
// before the attempt counts as a conflict.
const statusTries = 5

// statusWriter writes what a reconciler left in the status of its object.
type statusWriter struct {
	// fallback says once that the kind has no status subresource.
	fallback sync.Once
	differ   trace.Differ
}

// write sends the difference between the status of before and that of obj as
// one patch, provided that the object is still at the revision of before.
// Otherwise it reads the object anew and sends the same difference on top of
// it; conditions are merged by their type. A finished attempt also sets
// observedGeneration, where the status has it, except on kinds of Kubernetes
// itself, whose controllers say what they have observed. An object that is gone,
// or that another one has replaced, needs no status.
func (w *statusWriter) write(ctx context.Context, sh *shared, before, obj client.Object, finished bool) error {
	// Only the groups of Kubernetes have no dot.
	if finished && strings.Contains(sh.gvk.Group, ".") {
		setObservedGeneration(obj, before.GetGeneration())
	}
	if w.sameStatus(before, obj) {
		return nil
	}
	was, ok, err := statusOf(before)
	if !ok || err != nil {
		return err
	}
	want, _, err := statusOf(obj)
	if err != nil {
		return err
	}
	change := diffStatus(was, want)
	if change == nil {
		return nil
	}
	base := before
	for try := 1; ; try++ {
		patch := mergePatchOf(was, change.on(was))
		if len(patch) == 0 {
			return nil
		}
		written := emptyLike(before)
		err := w.patch(ctx, sh, base, written, patch)
		switch {
		case err == nil:
			emitTransition(ctx, obj, was, change.on(was))
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err) || try == statusTries:
			return err
		}
		latest := emptyLike(before)
		if err := sh.base.Client.Get(ctx, client.ObjectKeyFromObject(before), latest, client.Live); err != nil {
			return client.IgnoreNotFound(err)
		}
		if latest.GetUID() != before.GetUID() {
			return nil
		}
		if base, was, err = rebase(latest); err != nil {
			return err
		}
	}
}

func rebase(latest client.Object) (client.Object, map[string]any, error) {
	status, _, err := statusOf(latest)
	return latest, status, err
}

// patch sends a merge patch of the status to the status subresource, or to the
// object itself where the kind has none.
func (w *statusWriter) patch(ctx context.Context, sh *shared, base, into client.Object, status map[string]any) error {
	data, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": base.GetResourceVersion()},
		"status":   status,
	})
	if err != nil {
		return err
	}
	into.SetNamespace(base.GetNamespace())
	into.SetName(base.GetName())
	patch := client.RawPatch(types.MergePatchType, data)
	owner := client.FieldOwner(sh.name)
	resource, err := sh.base.Client.Mapper().ForKind(ctx, sh.gvk)
	if err != nil && !meta.IsNoMatchError(err) {
		return err
	}
	if _, has := resource.Subresources["status"]; !has && err == nil {
		w.fallback.Do(func() {
			sh.log.Warn("The kind has no status subresource, so the status is written with the object and users can write it too; add the subresource to the CustomResourceDefinition (marker +kubebuilder:subresource:status)", "kind", sh.gvk.String())
		})
		return sh.base.Client.Patch(ctx, into, patch, owner)
	}
	return sh.base.Client.Status().Patch(ctx, into, patch, owner)
}

// emptyLike is a new object of the same type and kind.
func emptyLike(obj client.Object) client.Object {
	out := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(client.Object)
	out.GetObjectKind().SetGroupVersionKind(obj.GetObjectKind().GroupVersionKind())
	return out
}

// statusOf returns the status in its JSON form, and false for types without one.
func statusOf(obj client.Object) (map[string]any, bool, error) {
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
		status, ok := u.UnstructuredContent()["status"].(map[string]any)
		if !ok {
			status = map[string]any{}
		}
		return status, true, nil
	}
	field := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !field.IsValid() {
		return nil, false, nil
	}
	data, err := json.Marshal(field.Interface())
	if err != nil {
		return nil, true, fmt.Errorf("encode status of %T: %w", obj, err)
	}
	status := map[string]any{}
	if string(data) != "null" {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &status)
	}
	if err != nil {
		err = fmt.Errorf("encode status of %T: %w", obj, err)
	}
	return status, true, err
}

// sameStatus tells cheaply that nothing has changed. It may miss that two forms
// say the same.
func (w *statusWriter) sameStatus(before, obj client.Object) bool {
	if a, ok := before.(interface{ UnstructuredContent() map[string]any }); ok {
		b, ok := obj.(interface{ UnstructuredContent() map[string]any })
		return ok && reflect.DeepEqual(a.UnstructuredContent()["status"], b.UnstructuredContent()["status"])
	}
	a, b := reflect.ValueOf(before).Elem().FieldByName("Status"), reflect.ValueOf(obj).Elem().FieldByName("Status")
	if !a.IsValid() || !b.IsValid() {
		return false
	}
	return w.differ.Same(a.Addr().Interface(), b.Addr().Interface()) || reflect.DeepEqual(a.Interface(), b.Interface())
}

// setObservedGeneration sets status.observedGeneration where the type has it, or
// where an unstructured object already carries it.
func setObservedGeneration(obj client.Object, generation int64) {
	if u, ok := obj.(interface{ UnstructuredContent() map[string]any }); ok {
		status, _ := u.UnstructuredContent()["status"].(map[string]any)
		if _, ok := status["observedGeneration"]; ok {
			status["observedGeneration"] = generation
		}
		return
	}
	status := reflect.ValueOf(obj).Elem().FieldByName("Status")
	if status.Kind() != reflect.Struct {
		return
	}
	field, ok := fieldByJSONName(status, "observedGeneration")
	switch {
	case !ok:
	case field.Kind() == reflect.Int64:
		field.SetInt(generation)
	case field.Kind() == reflect.Pointer && field.Type().Elem().Kind() == reflect.Int64:
		field.Set(reflect.ValueOf(&generation))
	}
}

// fieldByJSONName finds a field of a struct, or of one that is inlined in it.
func fieldByJSONName(v reflect.Value, name string) (reflect.Value, bool) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name && f.IsExported() {
			return v.Field(i), true
		}
		if f.Anonymous && tag == "" && f.Type.Kind() == reflect.Struct {
			if field, ok := fieldByJSONName(v.Field(i), name); ok {
				return field, true
			}
		}
	}
	return reflect.Value{}, false
}

// statusChange is what an attempt did to a status: a merge patch for everything
// but the conditions, and the conditions it set or removed, by type.
type statusChange struct {
	patch   map[string]any
	set     []map[string]any
	removed map[string]bool
}

const conditionsField = "conditions"

// diffStatus returns what leads from one status to another, nil for nothing.
func diffStatus(was, want map[string]any) *statusChange {
	c := statusChange{removed: map[string]bool{}}
	wasConditions, ok1 := conditionsOf(was)
	wantConditions, ok2 := conditionsOf(want)
	if ok1 && ok2 {
		was, want = without(was, conditionsField), without(want, conditionsField)
		now := map[string]bool{}
		for _, condition := range wantConditions {
			now[typeOf(condition)] = true
			if !reflect.DeepEqual(find(wasConditions, typeOf(condition)), condition) {
				c.set = append(c.set, condition)
			}
		}
		for _, condition := range wasConditions {
			if !now[typeOf(condition)] {
				c.removed[typeOf(condition)] = true
			}
		}
	}
	c.patch = mergePatchOf(was, want)
	if len(c.patch) == 0 && len(c.set) == 0 && len(c.removed) == 0 {
		return nil
	}
	return &c
}

// on returns the status that the change makes of another one.
func (c *statusChange) on(status map[string]any) map[string]any {
	out := applyMergePatch(status, c.patch)
	if len(c.set) == 0 && len(c.removed) == 0 {
		return out
	}
	conditions, _ := conditionsOf(out)
	merged := make([]any, 0, len(conditions)+len(c.set))
	for _, condition := range conditions {
		if c.removed[typeOf(condition)] {
			continue
		}
		if set := find(c.set, typeOf(condition)); set != nil {
			condition = set
		}
		merged = append(merged, condition)
	}
	for _, condition := range c.set {
		if find(conditions, typeOf(condition)) == nil {
			merged = append(merged, condition)
		}
	}
	out[conditionsField] = merged
	return out
}

// conditionsOf returns the conditions of a status; false when the field is
// something else than a list of objects with distinct types.
func conditionsOf(status map[string]any) ([]map[string]any, bool) {
	field, ok := status[conditionsField]
	if !ok || field == nil {
		return nil, true
	}
	list, ok := field.([]any)
	if !ok {
		return nil, false
	}
	var out []map[string]any
	for _, item := range list {
		condition, ok := item.(map[string]any)
		if !ok || typeOf(condition) == "" || find(out, typeOf(condition)) != nil {
			return nil, false
		}
		out = append(out, condition)
	}
	return out, true
}

func typeOf(condition map[string]any) string {
	t, _ := condition["type"].(string)
	return t
}

func find(conditions []map[string]any, conditionType string) map[string]any {
	for _, c := range conditions {
		if typeOf(c) == conditionType {
			return c
		}
	}
	return nil
}

func without(m map[string]any, field string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		if k != field {
			out[k] = v
		}
	}
	return out
}

// mergePatchOf is the JSON merge patch that leads from one object to another.
func mergePatchOf(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for k := range from {
		if _, ok := to[k]; !ok {
			patch[k] = nil
		}
	}
	for k, now := range to {
		was, ok := from[k]
		wasMap, ok1 := was.(map[string]any)
		nowMap, ok2 := now.(map[string]any)
		switch {
		case ok1 && ok2:
			if sub := mergePatchOf(wasMap, nowMap); len(sub) > 0 {
				patch[k] = sub
			}
		case !ok || !reflect.DeepEqual(was, now):
			patch[k] = now
		}
	}
	return patch
}

// applyMergePatch returns what a merge patch makes of an object, which stays as
// it is.
func applyMergePatch(object, patch map[string]any) map[string]any {
	out := without(object, "")
	for k, change := range patch {
		sub, isMap := change.(map[string]any)
		switch {
		case change == nil:
			delete(out, k)
		case isMap:
			was, _ := out[k].(map[string]any)
			out[k] = applyMergePatch(was, sub)
		default:
			out[k] = change
		}
	}
	return out
}

// errNoAttempt is the misuse of what works within a reconcile only.
var errNoAttempt = errors.New("the context does not belong to a reconcile: pass on the context that Reconcile was given")
