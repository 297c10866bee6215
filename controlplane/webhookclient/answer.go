// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhookclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxErrorBytes of an answer that is an error are quoted.
const maxErrorBytes = 2048

// read returns the body of an answer, or the error that it is.
func read(r *http.Response, limit int64) ([]byte, error) {
	body, err := readBounded(r, limit)
	if err != nil {
		return nil, err
	}
	if r.StatusCode >= http.StatusMultipleChoices && r.StatusCode < http.StatusBadRequest {
		return nil, fmt.Errorf("the webhook answers with a redirect (status %d), and redirects are not followed: configure the address that it leads to", r.StatusCode)
	}
	if r.StatusCode < http.StatusOK || r.StatusCode > http.StatusPartialContent {
		return nil, failure(r, body)
	}
	return body, nil
}

// readBounded reads a body and fails if it is longer than the limit, in bytes.
func readBounded(r *http.Response, limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, tooLong(limit)
	}
	if r.ContentLength >= 0 {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return nil, broken(err)
		}
		return body, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	switch {
	case err != nil:
		return nil, broken(err)
	case int64(len(body)) > limit:
		return nil, tooLong(limit)
	}
	return body, nil
}

func broken(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("unexpected error when reading response body. Please retry. Original error: %w", err)
}

func tooLong(limit int64) error {
	return fmt.Errorf("the answer of the webhook is longer than %d bytes", limit)
}

// failure is the error of an answer with a status that says so: the Status in its body, or what
// client-go makes of the code.
func failure(r *http.Response, body []byte) error {
	message := "unknown"
	if kind := r.Header.Get("Content-Type"); kind == "" || strings.HasPrefix(kind, "text/") {
		message = strings.TrimSpace(string(body[:min(len(body), maxErrorBytes)]))
	}
	retryAfter, _ := strconv.Atoi(r.Header.Get("Retry-After")) // 0 if there is none
	err := apierrors.NewGenericServerResponse(r.StatusCode, http.MethodPost, schema.GroupResource{}, "", message, retryAfter, true)
	if !apierrors.IsUnexpectedServerError(err) {
		return err
	}
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Kind == "Status" && status.APIVersion == "v1" && status.Status != metav1.StatusSuccess {
		return apierrors.FromObject(&status)
	}
	return err
}
