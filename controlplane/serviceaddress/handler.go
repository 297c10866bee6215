// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package serviceaddress

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/steer-dev/steer/apiserver/auth"
)

const (
	mergePatch = "application/merge-patch+json"
	// mostBytes of a patch are read.
	mostBytes = 1 << 20
)

// Handlers are those of a changeable table, by their path; another has none.
func (t *Table) Handlers() map[string]http.Handler {
	if t == nil || !t.changeable {
		return nil
	}
	return map[string]http.Handler{Path: http.HandlerFunc(t.serve)}
}

// serve answers GET with an object whose members are NAMESPACE/NAME[:PORT] with addresses, and
// PATCH, which is a JSON merge patch of that object, with the new one. Users are members of
// system:masters: roles do not grant it, because who leads a Service elsewhere reads what is sent to
// its webhooks.
func (t *Table) serve(w http.ResponseWriter, r *http.Request) {
	err := t.answer(r)
	if err == nil {
		writeJSON(w, http.StatusOK, t.All())
		return
	}
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		status = apierrors.NewBadRequest(err.Error())
	}
	s := status.Status()
	s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if s.Code == http.StatusMethodNotAllowed {
		w.Header().Set("Allow", "GET, PATCH")
	}
	writeJSON(w, int(s.Code), s)
}

// answer carries a request out.
func (t *Table) answer(r *http.Request) error {
	if user := auth.UserFrom(r.Context()); user == nil || !slices.Contains(user.Groups, auth.Masters) {
		return apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf("%s is for members of %s alone", Path, auth.Masters))
	}
	switch r.Method {
	case http.MethodGet:
		return nil
	case http.MethodPatch:
	default:
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
			Message: fmt.Sprintf("%s is not a method of %s: GET and PATCH are", r.Method, Path),
		}}
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != mergePatch {
		return &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
			Message: fmt.Sprintf("the body of the request is of type %q: send %s", r.Header.Get("Content-Type"), mergePatch),
		}}
	}
	text, err := io.ReadAll(io.LimitReader(r.Body, mostBytes+1))
	if err != nil {
		return fmt.Errorf("read the patch: %w", err)
	}
	if len(text) > mostBytes {
		return apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", mostBytes))
	}
	var addresses map[string]*string
	if err := json.Unmarshal(text, &addresses); err != nil {
		return fmt.Errorf("the patch is no object of addresses: %w", err)
	}
	return t.Change(addresses)
}

func writeJSON(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // the client may have gone
}
