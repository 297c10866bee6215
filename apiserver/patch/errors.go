// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/mergepatch"
)

// Causes of a JSON patch failure; they are the end of the status message.
var (
	// ErrTestFailed reports that a test operation found another value.
	ErrTestFailed = errors.New("test failed")

	errMissing      = errors.New("missing value")
	errInvalidIndex = errors.New("invalid index referenced")
	errShift        = errors.New("too many elements of lists are shifted")
)

func badRequest(format string, args ...any) error {
	return apierrors.NewBadRequest(fmt.Sprintf(format, args...))
}

// MismatchError reports that a well-formed patch does not fit the object. Clients get a
// 422 whose message has no reason, as from kube-apiserver; the reason is for logs and
// for users of this package.
type MismatchError struct {
	status *apierrors.StatusError
	reason error
}

func unprocessable(reason error) error {
	return &MismatchError{
		status: apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", reason.Error(), 0, false),
		reason: reason,
	}
}

// Error returns the reason, for example which test operation failed.
func (e *MismatchError) Error() string { return e.reason.Error() }

// Status returns the status that clients get.
func (e *MismatchError) Status() metav1.Status { return e.status.ErrStatus }

// Unwrap gives access to the status error and to the reason.
func (e *MismatchError) Unwrap() []error { return []error{e.status, e.reason} }

func tooManyOperations(limit, got int) error {
	return apierrors.NewRequestEntityTooLargeError(
		fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", limit, got))
}

func tooMuchShifted() error {
	return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The operations of a JSON patch may shift %d elements of lists altogether: "+
		"add to the end of a long list, or replace the list", maxShift))
}

// unsupported lists the patch types that the object supports, as kube-apiserver does:
// apply is always among them although it is not parsed here.
func unsupported(o Options) error {
	accepted := []string{string(types.JSONPatchType), string(types.MergePatchType)}
	if o.Schema != nil {
		accepted = append(accepted, string(types.StrategicMergePatchType))
	}
	accepted = append(accepted, string(types.ApplyYAMLPatchType))
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure,
		Code:   http.StatusUnsupportedMediaType,
		Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " +
			strings.Join(accepted, ", "),
	}}
}

// strategicError classifies a failure of the strategic merge: malformed directives are
// a bad request, everything else is a patch that does not fit.
func strategicError(err error) error {
	switch {
	case errors.Is(err, mergepatch.ErrBadJSONDoc),
		errors.Is(err, mergepatch.ErrBadPatchFormatForPrimitiveList),
		errors.Is(err, mergepatch.ErrBadPatchFormatForRetainKeys),
		errors.Is(err, mergepatch.ErrBadPatchFormatForSetElementOrderList),
		errors.Is(err, mergepatch.ErrUnsupportedStrategicMergePatchFormat):
		return apierrors.NewBadRequest(err.Error())
	case errors.Is(err, mergepatch.ErrNoListOfLists),
		errors.Is(err, mergepatch.ErrPatchContentNotMatchRetainKeys):
		return unprocessable(err)
	default:
		return err
	}
}
