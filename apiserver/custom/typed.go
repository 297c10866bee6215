// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package custom

import (
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/steer-dev/steer/apiserver/resource"
)

// typed calls rules on a Go type for the objects of one version.
type typed[T resource.Object] struct {
	rules Rules[T]
	form  form[T]
}

// setDefaults implements [hooks]. An object that has no typed form is left as it is, here and
// in prepare: it is refused when it is validated.
func (h *typed[T]) setDefaults(d *resource.Doc) {
	if h.rules.Default != nil {
		h.edit(d, h.rules.Default)
	}
}

// prepare implements [hooks].
func (h *typed[T]) prepare(ctx context.Context, d, before *resource.Doc, status bool) {
	rule := h.rules.Prepare
	if status {
		rule = h.rules.PrepareStatus
	}
	if rule == nil {
		return
	}
	if old, err := h.loadOld(before); err == nil {
		h.edit(d, func(obj T) { rule(ctx, obj, old) })
	}
}

// validate implements [hooks]. It refuses what the other rules could not be called for.
func (h *typed[T]) validate(ctx context.Context, d, before *resource.Doc, status bool) field.ErrorList {
	obj, err := h.form.load(d.Content())
	if err != nil {
		return field.ErrorList{field.Invalid(nil, nil, fmt.Sprintf("the schema accepts the object, but the Go type %T does not: %v", obj, err))}
	}
	old, err := h.loadOld(before)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, fmt.Errorf("decode the stored object: %w", err))}
	}
	rule := h.rules.Validate
	if status {
		rule = h.rules.ValidateStatus
	}
	if rule == nil {
		return nil
	}
	return rule(ctx, obj, old)
}

// warnings implements [hooks].
func (h *typed[T]) warnings(ctx context.Context, d, before *resource.Doc) []string {
	if h.rules.Warnings == nil {
		return nil
	}
	obj, err := h.form.load(d.Content())
	if err != nil {
		return nil
	}
	old, err := h.loadOld(before)
	if err != nil {
		return nil
	}
	return h.rules.Warnings(ctx, obj, old)
}

// loadOld returns the object before a write, nil for a creation.
func (h *typed[T]) loadOld(before *resource.Doc) (old T, err error) {
	if before == nil {
		return old, nil
	}
	return h.form.load(before.Content())
}

// edit calls change with the typed form of an object and makes the same changes to the object:
// fields that the Go type does not have, or shows although they are absent, stay as they
// are.
func (h *typed[T]) edit(d *resource.Doc, change func(T)) {
	obj, err := h.form.load(d.Content())
	if err != nil {
		return
	}
	before, err := h.form.save(obj.DeepCopyObject().(T))
	if err != nil {
		return
	}
	change(obj)
	after, err := h.form.save(obj)
	if err != nil {
		return
	}
	content := d.Content()
	applyChanges(content, before, after)
	d.SetContent(content)
}

// applyChanges makes in content the changes from before to after. Lists are replaced as a whole.
func applyChanges(content, before, after map[string]any) {
	for name, value := range after {
		was, had := before[name]
		if had && reflect.DeepEqual(was, value) {
			continue
		}
		fields, isMap := value.(map[string]any)
		if !isMap {
			content[name] = value
			continue
		}
		old, _ := was.(map[string]any)
		now, _ := content[name].(map[string]any)
		if now == nil {
			now = map[string]any{}
		}
		applyChanges(now, old, fields)
		content[name] = now
	}
	for name := range before {
		if _, kept := after[name]; !kept {
			delete(content, name)
		}
	}
}
