// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"fmt"
	"net/http"
	"reflect"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/client"
	"github.com/steer-dev/steer/trace"
)

// Object is a pointer to the Go type of a kind.
type Object interface {
	comparable
	client.Object
}

// Defaulter completes objects before they are stored. Its method is called at the
// same time by many requests, with an object of its own each time, for CREATE and
// UPDATE as the rules of the webhook say. It is called again on what it made, so it
// must leave that as it is. An error denies the request; see [Errored].
type Defaulter[T Object] interface {
	Default(ctx context.Context, obj T) error
}

// Validator admits objects or denies them. Its methods are called at the same time by
// many requests; what they do to their objects has no effect. A nil error admits the
// change; an error denies it; see [Errored]. The warnings are shown to the user in
// both cases.
type Validator[T Object] interface {
	ValidateCreate(ctx context.Context, obj T) (Warnings, error)
	ValidateUpdate(ctx context.Context, oldObj, newObj T) (Warnings, error)
	ValidateDelete(ctx context.Context, obj T) (Warnings, error)
}

// kind is what the handlers of a Go type know of it.
type kind[T Object] struct {
	gvk schema.GroupVersionKind
	of  reflect.Type
}

func kindOf[T Object](s *Server) (kind[T], error) {
	of := reflect.TypeFor[T]()
	if of.Kind() != reflect.Pointer || of.Elem().Kind() != reflect.Struct {
		return kind[T]{}, fmt.Errorf("%v is no kind: use a pointer to a Go type of a kind, or AddHandler", of)
	}
	gvk, err := client.KindOf(s.opts.Scheme, reflect.New(of.Elem()).Interface().(client.Object))
	return kind[T]{gvk, of.Elem()}, err
}

func (k kind[T]) decode(raw []byte, field string) (T, error) {
	obj := reflect.New(k.of).Interface().(T)
	return obj, decode(raw, obj, field)
}

// accepts refuses a request about another kind.
func (k kind[T]) accepts(r *Request) error {
	if got := (schema.GroupVersionKind{Group: r.Kind.Group, Version: r.Kind.Version, Kind: r.Kind.Kind}); got != k.gvk {
		return fmt.Errorf("this webhook is for %s, and was sent a %s: correct the rules of its configuration, or leave matchPolicy at Equivalent", k.gvk, got)
	}
	return nil
}

// defaulting is a [Defaulter] as a [Handler].
type defaulting[T Object] struct {
	kind[T]
	defaulter Defaulter[T]
	onMistake func(error)
}

// Handle implements Handler.
func (d defaulting[T]) Handle(ctx context.Context, r *Request) Response {
	if r.Operation != admissionv1.Create && r.Operation != admissionv1.Update {
		return Allowed()
	}
	if err := d.accepts(r); err != nil {
		return failed(http.StatusBadRequest, err)
	}
	obj, err := d.decode(r.Object.Raw, "object")
	if err != nil {
		return failed(http.StatusBadRequest, err)
	}
	before := obj.DeepCopyObject()
	if err := d.defaulter.Default(ctx, obj); err != nil {
		return Errored(err)
	}
	d.again(ctx, obj)
	if reflect.DeepEqual(before, any(obj)) {
		return Allowed()
	}
	return Patched(r, before, obj)
}

// again calls the defaulter with what it has returned, where the options ask for that.
func (d defaulting[T]) again(ctx context.Context, obj T) {
	if d.onMistake == nil {
		return
	}
	second := obj.DeepCopyObject().(T)
	var differ trace.Differ
	if err := d.defaulter.Default(ctx, second); err != nil {
		d.onMistake(&NotIdempotentError{d.gvk, "an error: " + err.Error()})
	} else if fields := differ.Changed(obj, second); fields != "" {
		d.onMistake(&NotIdempotentError{d.gvk, fields})
	}
}

// NotIdempotentError reports a defaulter that changes what it has returned, when it is
// called with it.
type NotIdempotentError struct {
	Kind schema.GroupVersionKind
	// Fields are the paths that the second call changes, joined by commas, or its error.
	Fields string
}

func (e *NotIdempotentError) Error() string {
	return fmt.Sprintf("the defaulter of %s is not idempotent: a second call with what the first has returned changes %s", e.Kind.Kind, e.Fields)
}

// validating is a [Validator] as a [Handler].
type validating[T Object] struct {
	kind[T]
	validator Validator[T]
}

// Handle implements Handler.
func (v validating[T]) Handle(ctx context.Context, r *Request) Response {
	if r.Operation == admissionv1.Connect {
		return Allowed()
	}
	if err := v.accepts(r); err != nil {
		return failed(http.StatusBadRequest, err)
	}
	warnings, err, malformed := v.judge(ctx, r)
	if malformed != nil {
		return failed(http.StatusBadRequest, malformed)
	}
	response := Allowed()
	if err != nil {
		response = Errored(err)
	}
	response.Warnings = warnings
	return response
}

// judge calls the method of the operation. malformed says that the request cannot be
// read.
func (v validating[T]) judge(ctx context.Context, r *Request) (warnings Warnings, err, malformed error) {
	var obj, old T
	if r.Operation != admissionv1.Delete {
		if obj, malformed = v.decode(r.Object.Raw, "object"); malformed != nil {
			return nil, nil, malformed
		}
	}
	if r.Operation != admissionv1.Create {
		if old, malformed = v.decode(r.OldObject.Raw, "oldObject"); malformed != nil {
			return nil, nil, malformed
		}
	}
	switch r.Operation {
	case admissionv1.Create:
		warnings, err = v.validator.ValidateCreate(ctx, obj)
	case admissionv1.Update:
		warnings, err = v.validator.ValidateUpdate(ctx, old, obj)
	case admissionv1.Delete:
		warnings, err = v.validator.ValidateDelete(ctx, old)
	default:
		malformed = fmt.Errorf("the operation %q is unknown", r.Operation)
	}
	return warnings, err, malformed
}
