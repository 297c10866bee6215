// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/steer-dev/steer/client/codec"
	"github.com/steer-dev/steer/webhook/internal/jsonpatch"
)

// Warnings are shown to the user who made the request, one a line; kubectl prints
// them. Keep each below 120 characters, and do not begin it with "Warning:".
type Warnings []string

// Request is what the API server asks: whether a change is admitted, and how it
// becomes complete.
type Request struct {
	admissionv1.AdmissionRequest
}

// IsDryRun reports whether the request changes nothing that lasts. A handler with
// effects of its own leaves them out then.
func (r *Request) IsDryRun() bool { return r.DryRun != nil && *r.DryRun }

// Decode reads the object, which a DELETE does not have, into a pointer to a Go type or an
// unstructured object.
func (r *Request) Decode(into runtime.Object) error { return decode(r.Object.Raw, into, "object") }

// DecodeOld reads the object before the change, which a CREATE does not have.
func (r *Request) DecodeOld(into runtime.Object) error {
	return decode(r.OldObject.Raw, into, "oldObject")
}

func decode(raw []byte, into runtime.Object, field string) error {
	if len(raw) == 0 {
		return fmt.Errorf("the request has no %s", field)
	}
	if err := codec.UnmarshalJSON(raw, into); err != nil {
		return fmt.Errorf("read %s as %T: %w", field, into, err)
	}
	return nil
}

// Response answers a [Request]. Make it with [Allowed], [Denied], [Errored] or
// [Patched].
type Response struct {
	// Allowed admits the change.
	Allowed bool
	// Patch completes the object; only mutating webhooks may have one. See [Patched].
	Patch []PatchOperation
	// Status is shown to the user when the change is not admitted.
	Status *metav1.Status
	// Warnings are shown to the user in any case.
	Warnings Warnings
	// AuditAnnotations are added to the API server's audit log, with keys such as
	// "image-policy".
	AuditAnnotations map[string]string
}

// PatchOperation is one operation of a JSON patch (RFC 6902).
type PatchOperation = jsonpatch.Operation

// Handler answers admission requests. It is called at the same time by many requests;
// its context ends when the API server stops waiting, and carries the request
// ([RequestFromContext]) and its record in the flight recorder. A panic denies the
// request.
type Handler interface {
	Handle(ctx context.Context, r *Request) Response
}

// HandlerFunc is a function as a [Handler].
type HandlerFunc func(ctx context.Context, r *Request) Response

// Handle calls f.
func (f HandlerFunc) Handle(ctx context.Context, r *Request) Response { return f(ctx, r) }

// Allowed admits a change as it is.
func Allowed(warnings ...string) Response { return Response{Allowed: true, Warnings: warnings} }

// Denied does not admit a change. The reason is for the user: what is not allowed,
// and what is.
func Denied(reason string) Response {
	return Response{Status: &metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: reason,
	}}
}

// Errored does not admit a change because of an error. An error of the API machinery,
// such as that of apierrors.NewInvalid, keeps its code, reason and details; any other
// denies the request with its message.
func Errored(err error) Response {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return Denied(err.Error())
	}
	s := status.Status()
	if s.Code < http.StatusBadRequest {
		s.Code = http.StatusForbidden
	}
	return Response{Status: &s}
}

// failed answers a request that could not be judged.
func failed(code int32, err error) Response {
	return Response{Status: &metav1.Status{Status: metav1.StatusFailure, Code: code, Message: err.Error()}}
}

// Patched admits a change, with its object as it should be. A Go type may lack fields
// of the kind: to keep those, give Patched the object of [Request.Decode] as well, as it
// was before it was changed; nil replaces the object by the changed one.
func Patched(r *Request, before, after runtime.Object) Response {
	patch, err := patchOf(r.Object.Raw, before, after)
	if err != nil {
		return failed(http.StatusInternalServerError, err)
	}
	return Response{Allowed: true, Patch: patch}
}

func patchOf(received []byte, before, after runtime.Object) ([]PatchOperation, error) {
	is, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("write the changed object: %w", err)
	}
	if before == nil {
		return patchBetween(received, received, is)
	}
	was, err := json.Marshal(before)
	if err != nil {
		return nil, fmt.Errorf("write the object: %w", err)
	}
	return patchBetween(received, was, is)
}

// patchBetween makes the patch of an object as received that does what was changed
// between two encodings of its Go type.
func patchBetween(received, before, after []byte) ([]PatchOperation, error) {
	var values [3]any
	for i, text := range [][]byte{received, before, after} {
		if err := utiljson.Unmarshal(text, &values[i]); err != nil {
			return nil, fmt.Errorf("compare objects: %w", err)
		}
	}
	return jsonpatch.Diff(values[0], jsonpatch.Rebase(values[0], values[1], values[2])), nil
}

type requestKey struct{}

// RequestFromContext returns the request that a defaulter, a validator or a handler
// is called for: its user, operation, dry run, subresource, resource. ok is false
// outside of them.
func RequestFromContext(ctx context.Context) (r *Request, ok bool) {
	r, ok = ctx.Value(requestKey{}).(*Request)
	return r, ok
}

// NewContext returns a context that carries a request, for tests that call a defaulter
// or validator themselves.
func NewContext(ctx context.Context, r *Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}
