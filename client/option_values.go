// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
)

// InNamespace restricts to one namespace.
type InNamespace string

// ApplyToList implements ListOption.
func (n InNamespace) ApplyToList(o *ListOptions) { o.Namespace = string(n) }

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (n InNamespace) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { o.Namespace = string(n) }

// MatchingLabels selects objects that carry each of these labels with this value.
type MatchingLabels map[string]string

// ApplyToList implements ListOption.
func (m MatchingLabels) ApplyToList(o *ListOptions) {
	if o.LabelSelector == nil {
		if s, err := labels.ValidatedSelectorFromSet(labels.Set(m)); err == nil {
			o.LabelSelector = s
			return
		}
	}
	for k, v := range m {
		o.require(k, selection.Equals, v)
	}
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m MatchingLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// HasLabels selects objects that carry each of these labels with any value.
type HasLabels []string

// ApplyToList implements ListOption.
func (h HasLabels) ApplyToList(o *ListOptions) {
	for _, k := range h {
		o.require(k, selection.Exists)
	}
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (h HasLabels) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { h.ApplyToList(&o.ListOptions) }

// MatchingLabelsSelector selects by a parsed label selector.
type MatchingLabelsSelector struct{ labels.Selector }

// ApplyToList implements ListOption.
func (m MatchingLabelsSelector) ApplyToList(o *ListOptions) { o.addLabels(m.Selector) }

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m MatchingLabelsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// MatchingFields selects objects whose fields have these values. A live read
// sends them to the server, which knows metadata.name, metadata.namespace and
// the kind's selectable fields; a cached read needs a field index of that name.
type MatchingFields fields.Set

// ApplyToList implements ListOption.
func (m MatchingFields) ApplyToList(o *ListOptions) {
	o.addFields(fields.SelectorFromSet(fields.Set(m)))
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m MatchingFields) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { m.ApplyToList(&o.ListOptions) }

// MatchingFieldsSelector selects by a parsed field selector.
type MatchingFieldsSelector struct{ fields.Selector }

// ApplyToList implements ListOption.
func (m MatchingFieldsSelector) ApplyToList(o *ListOptions) { o.addFields(m.Selector) }

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (m MatchingFieldsSelector) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	m.ApplyToList(&o.ListOptions)
}

// Limit is the most objects in one answer.
type Limit int64

// ApplyToList implements ListOption.
func (l Limit) ApplyToList(o *ListOptions) { o.Limit = int64(l) }

// Continue asks for the page after the one whose metadata.continue this is.
type Continue string

// ApplyToList implements ListOption.
func (c Continue) ApplyToList(o *ListOptions) { o.Continue = string(c) }

// AtLeast is a resourceVersion that the answer must not be older than.
type AtLeast string

// ApplyToGet implements GetOption.
func (a AtLeast) ApplyToGet(o *GetOptions) { o.AtLeast = string(a) }

// ApplyToList implements ListOption.
func (a AtLeast) ApplyToList(o *ListOptions) { o.AtLeast = string(a) }

type live bool

// Live reads from the server even where a cache could answer.
const Live live = true

// ApplyToGet implements GetOption.
func (l live) ApplyToGet(o *GetOptions) { o.Live = bool(l) }

// ApplyToList implements ListOption.
func (l live) ApplyToList(o *ListOptions) { o.Live = bool(l) }

type dryRunAll bool

// DryRunAll runs the whole request and stores nothing.
const DryRunAll dryRunAll = true

// ApplyToWrite implements WriteOption.
func (d dryRunAll) ApplyToWrite(o *WriteOptions) { o.DryRun = bool(d) }

// ApplyToDelete implements DeleteOption.
func (d dryRunAll) ApplyToDelete(o *DeleteOptions) { o.DryRun = bool(d) }

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (d dryRunAll) ApplyToDeleteAllOf(o *DeleteAllOfOptions) { o.DryRun = bool(d) }

// FieldOwner names the manager of the written fields.
type FieldOwner string

// ApplyToWrite implements WriteOption.
func (f FieldOwner) ApplyToWrite(o *WriteOptions) { o.FieldOwner = string(f) }

type forceOwnership bool

// ForceOwnership takes fields over from other managers on Apply.
const ForceOwnership forceOwnership = true

// ApplyToWrite implements WriteOption.
func (f forceOwnership) ApplyToWrite(o *WriteOptions) { o.Force = bool(f) }

// FieldValidation says what happens to unknown and duplicate fields of a
// write: metav1.FieldValidationStrict, FieldValidationWarn or
// FieldValidationIgnore.
type FieldValidation string

// ApplyToWrite implements WriteOption.
func (f FieldValidation) ApplyToWrite(o *WriteOptions) { o.Validation = string(f) }

type subResourceBody struct{ body Object }

// WithSubResourceBody sends body instead of the object itself, for a
// subresource with a type of its own, such as scale.
func WithSubResourceBody(body Object) WriteOption { return subResourceBody{body} }

func (s subResourceBody) ApplyToWrite(o *WriteOptions) { o.SubResourceBody = s.body }

// GracePeriodSeconds before the object goes; 0 means at once.
type GracePeriodSeconds int64

// ApplyToDelete implements DeleteOption.
func (g GracePeriodSeconds) ApplyToDelete(o *DeleteOptions) {
	s := int64(g)
	o.GracePeriodSeconds = &s
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (g GracePeriodSeconds) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	g.ApplyToDelete(&o.DeleteOptions)
}

// PropagationPolicy says what happens to dependents.
type PropagationPolicy metav1.DeletionPropagation

// ApplyToDelete implements DeleteOption.
func (p PropagationPolicy) ApplyToDelete(o *DeleteOptions) {
	policy := metav1.DeletionPropagation(p)
	o.PropagationPolicy = &policy
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (p PropagationPolicy) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	p.ApplyToDelete(&o.DeleteOptions)
}

// Preconditions the object must satisfy to be deleted.
type Preconditions metav1.Preconditions

// ApplyToDelete implements DeleteOption.
func (p Preconditions) ApplyToDelete(o *DeleteOptions) {
	preconditions := metav1.Preconditions(p)
	o.Preconditions = &preconditions
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (p Preconditions) ApplyToDeleteAllOf(o *DeleteAllOfOptions) {
	p.ApplyToDelete(&o.DeleteOptions)
}

// PreconditionsOf deletes exactly the incarnation and version that obj is.
func PreconditionsOf(obj Object) Preconditions {
	var p Preconditions
	if uid := obj.GetUID(); uid != "" {
		p.UID = new(types.UID)
		*p.UID = uid
	}
	if rv := obj.GetResourceVersion(); rv != "" {
		p.ResourceVersion = &rv
	}
	return p
}
