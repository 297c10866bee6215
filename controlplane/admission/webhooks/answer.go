// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"errors"
	"fmt"
	"sync"

	admissionv1 "k8s.io/api/admission/v1"
	admissionv1beta1 "k8s.io/api/admission/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/steer-dev/steer/controlplane/webhookclient"
)

// decoder decodes the answers of webhooks. The zero value is ready for use, by several
// goroutines.
type decoder struct {
	once    sync.Once
	reviews *webhookclient.Decoder
}

func (d *decoder) decode(data []byte, into runtime.Object) error {
	d.once.Do(func() {
		scheme := runtime.NewScheme()
		for _, add := range []func(*runtime.Scheme) error{admissionv1.AddToScheme, admissionv1beta1.AddToScheme} {
			if err := add(scheme); err != nil {
				panic(err) // the types are known
			}
		}
		d.reviews = webhookclient.NewDecoder(scheme, admissionv1beta1.SchemeGroupVersion, admissionv1.SchemeGroupVersion)
	})
	return d.reviews.Decode(data, into)
}

// callError reports that a webhook could not be called, or did not answer as it has to.
// The failure policy decides what it means.
type callError struct {
	hook   string
	reason error
	// code for the metrics, of the status that kube-apiserver has for the reason.
	code int
}

func (e *callError) Error() string {
	return fmt.Sprintf("failed calling webhook %q: %v", e.hook, e.reason)
}

// Unwrap gives access to the reason.
func (e *callError) Unwrap() error { return e.reason }

// read decodes the answer of a hook to the review with a uid, and validates it.
func (d *decoder) read(h *hook, uid types.UID, mutating bool, data []byte) (*admissionv1.AdmissionResponse, error) {
	if h.review == "v1beta1" {
		var a admissionv1beta1.AdmissionReview
		if err := d.decode(data, &a); err != nil {
			return nil, fmt.Errorf("failed to call webhook: %w", err)
		}
		if a.Response == nil {
			return nil, fmt.Errorf("received invalid webhook response: %w", errNoResponse)
		}
		r := &admissionv1.AdmissionResponse{
			Allowed: a.Response.Allowed, Result: a.Response.Result, AuditAnnotations: a.Response.AuditAnnotations, Warnings: a.Response.Warnings,
		}
		if mutating && len(a.Response.Patch) > 0 {
			patch := admissionv1.PatchTypeJSONPatch
			r.Patch, r.PatchType = a.Response.Patch, &patch
		}
		return r, nil
	}
	var a admissionv1.AdmissionReview
	if err := d.decode(data, &a); err != nil {
		return nil, fmt.Errorf("failed to call webhook: %w", err)
	}
	if err := check(&a, uid, mutating); err != nil {
		return nil, fmt.Errorf("received invalid webhook response: %w", err)
	}
	return a.Response, nil
}

var errNoResponse = errors.New("webhook response was absent")

// check validates an answer. The rules are those of v1; v1beta1 has none.
func check(a *admissionv1.AdmissionReview, uid types.UID, mutating bool) error {
	r := a.Response
	if r == nil {
		return errNoResponse
	}
	if r.UID != uid {
		return fmt.Errorf("expected response.uid=%q, got %q", uid, r.UID)
	}
	if want, got := admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"), a.GroupVersionKind(); got != want {
		return fmt.Errorf("expected webhook response of %v, got %v", want, got)
	}
	switch {
	case mutating && len(r.Patch) > 0 && r.PatchType == nil:
		return errors.New("webhook returned response.patch but not response.patchType")
	case mutating && len(r.Patch) == 0 && r.PatchType != nil:
		return errors.New("webhook returned response.patchType but not response.patch")
	case mutating && r.PatchType != nil && *r.PatchType == "":
		return errors.New(`webhook returned invalid response.patchType of ""`)
	case !mutating && len(r.Patch) > 0:
		return errors.New("validating webhook may not return response.patch")
	case !mutating && r.PatchType != nil:
		return errors.New("validating webhook may not return response.patchType")
	}
	return nil
}
