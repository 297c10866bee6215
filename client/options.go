// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// There are five kinds of option, one per shape of request. An option that
// makes sense for several requests implements several of them.
type (
	// GetOption adjusts a Get.
	GetOption interface{ ApplyToGet(*GetOptions) }
	// ListOption adjusts a List or a Watch.
	ListOption interface{ ApplyToList(*ListOptions) }
	// WriteOption adjusts a Create, Update, Patch or Apply.
	WriteOption interface{ ApplyToWrite(*WriteOptions) }
	// DeleteOption adjusts a Delete.
	DeleteOption interface{ ApplyToDelete(*DeleteOptions) }
	// DeleteAllOfOption adjusts a DeleteAllOf: what to select and how to delete.
	DeleteAllOfOption interface{ ApplyToDeleteAllOf(*DeleteAllOfOptions) }
)

// GetOptions is what GetOptions add up to. It is itself a GetOption that
// overwrites with its non-zero fields.
type GetOptions struct {
	// Live reads from the server even where a cache could answer: everything, as the
	// server has it, whatever the cache selects or transforms. Fields that only an index
	// of the cache knows select among what the server has answered.
	Live bool
	// AtLeast is a resourceVersion: the answer is not older than it. A cached
	// read whose cache has not got there is answered live.
	AtLeast string
}

// ApplyToGet implements GetOption.
func (o *GetOptions) ApplyToGet(to *GetOptions) {
	to.Live = to.Live || o.Live
	to.AtLeast = first(o.AtLeast, to.AtLeast)
}

// ListOptions is what ListOptions add up to.
type ListOptions struct {
	// Namespace restricts to one namespace; empty means all.
	Namespace string
	// LabelSelector and FieldSelector restrict what is returned; nil means all.
	// Several selecting options are joined by "and".
	LabelSelector labels.Selector
	FieldSelector fields.Selector
	// Limit is the most objects in one answer; 0 means all of them. The next
	// page is asked for with Continue, the list's metadata.continue.
	Limit    int64
	Continue string
	// Live and AtLeast are as in GetOptions.
	Live    bool
	AtLeast string

	err error
}

// ApplyToList implements ListOption.
func (o *ListOptions) ApplyToList(to *ListOptions) {
	to.Namespace = first(o.Namespace, to.Namespace)
	to.addLabels(o.LabelSelector)
	to.addFields(o.FieldSelector)
	if o.Limit != 0 {
		to.Limit = o.Limit
	}
	to.Continue = first(o.Continue, to.Continue)
	to.Live = to.Live || o.Live
	to.AtLeast = first(o.AtLeast, to.AtLeast)
	to.err = errors.Join(to.err, o.err)
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (o *ListOptions) ApplyToDeleteAllOf(to *DeleteAllOfOptions) { o.ApplyToList(&to.ListOptions) }

// Err is the first mistake of an option, such as an invalid label value.
func (o *ListOptions) Err() error { return o.err }

func (o *ListOptions) addLabels(s labels.Selector) {
	if s == nil || s.Empty() && o.LabelSelector != nil {
		return
	}
	if o.LabelSelector == nil {
		o.LabelSelector = s
		return
	}
	requirements, selectable := s.Requirements()
	if !selectable {
		o.LabelSelector = s
		return
	}
	o.LabelSelector = o.LabelSelector.DeepCopySelector().Add(requirements...)
}

func (o *ListOptions) addFields(s fields.Selector) {
	switch {
	case s == nil:
	case o.FieldSelector == nil:
		o.FieldSelector = s
	default:
		o.FieldSelector = fields.AndSelectors(o.FieldSelector, s)
	}
}

func (o *ListOptions) require(key string, op selection.Operator, values ...string) {
	r, err := labels.NewRequirement(key, op, values)
	if err != nil {
		o.err = errors.Join(o.err, fmt.Errorf("label selector %s: %w", key, err))
		return
	}
	o.addLabels(labels.NewSelector().Add(*r))
}

// WriteOptions is what WriteOptions add up to.
type WriteOptions struct {
	// DryRun runs the whole request, admission included, and stores nothing.
	DryRun bool
	// FieldOwner names the manager of the written fields; empty means
	// Options.FieldOwner, and the server's choice after that. Apply needs one.
	FieldOwner string
	// Validation says what happens to unknown and duplicate fields; empty
	// means Options.FieldValidation, and the server's choice (Warn) after that.
	Validation string
	// Force takes fields over from other managers. Only Apply has it.
	Force bool
	// SubResourceBody is sent instead of the object itself. Only Update and
	// Patch of a subresource have it.
	SubResourceBody Object
}

// ApplyToWrite implements WriteOption.
func (o *WriteOptions) ApplyToWrite(to *WriteOptions) {
	to.DryRun = to.DryRun || o.DryRun
	to.FieldOwner = first(o.FieldOwner, to.FieldOwner)
	to.Validation = first(o.Validation, to.Validation)
	to.Force = to.Force || o.Force
	if o.SubResourceBody != nil {
		to.SubResourceBody = o.SubResourceBody
	}
}

// DeleteOptions is what DeleteOptions add up to.
type DeleteOptions struct {
	// DryRun runs the whole request and deletes nothing.
	DryRun bool
	// GracePeriodSeconds before the object goes; nil means the kind's default,
	// 0 at once.
	GracePeriodSeconds *int64
	// Preconditions the object must satisfy, else the error is a conflict.
	Preconditions *metav1.Preconditions
	// PropagationPolicy for dependents; nil means the kind's default.
	PropagationPolicy *metav1.DeletionPropagation
}

// ApplyToDelete implements DeleteOption.
func (o *DeleteOptions) ApplyToDelete(to *DeleteOptions) {
	to.DryRun = to.DryRun || o.DryRun
	if o.GracePeriodSeconds != nil {
		to.GracePeriodSeconds = o.GracePeriodSeconds
	}
	if o.Preconditions != nil {
		to.Preconditions = o.Preconditions
	}
	if o.PropagationPolicy != nil {
		to.PropagationPolicy = o.PropagationPolicy
	}
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (o *DeleteOptions) ApplyToDeleteAllOf(to *DeleteAllOfOptions) {
	o.ApplyToDelete(&to.DeleteOptions)
}

// DeleteAllOfOptions is what DeleteAllOfOptions add up to.
type DeleteAllOfOptions struct {
	ListOptions
	DeleteOptions
}

// ApplyToDeleteAllOf implements DeleteAllOfOption.
func (o *DeleteAllOfOptions) ApplyToDeleteAllOf(to *DeleteAllOfOptions) {
	o.ApplyToList(&to.ListOptions)
	o.ApplyToDelete(&to.DeleteOptions)
}

// ResolveGet, and the functions below, fold options into one value. Wrappers of
// a Client use them to see what was asked for.
func ResolveGet(opts []GetOption) GetOptions {
	var o GetOptions
	for _, opt := range opts {
		opt.ApplyToGet(&o)
	}
	return o
}

// ResolveList folds opts; see ListOptions.Err.
func ResolveList(opts []ListOption) ListOptions {
	var o ListOptions
	for _, opt := range opts {
		opt.ApplyToList(&o)
	}
	return o
}

// ResolveWrite folds opts.
func ResolveWrite(opts []WriteOption) WriteOptions {
	var o WriteOptions
	for _, opt := range opts {
		opt.ApplyToWrite(&o)
	}
	return o
}

// ResolveDelete folds opts.
func ResolveDelete(opts []DeleteOption) DeleteOptions {
	var o DeleteOptions
	for _, opt := range opts {
		opt.ApplyToDelete(&o)
	}
	return o
}

// ResolveDeleteAllOf folds opts; see ListOptions.Err.
func ResolveDeleteAllOf(opts []DeleteAllOfOption) DeleteAllOfOptions {
	var o DeleteAllOfOptions
	for _, opt := range opts {
		opt.ApplyToDeleteAllOf(&o)
	}
	return o
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
