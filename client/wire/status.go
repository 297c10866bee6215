// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// protoMagic begins every protobuf body of Kubernetes.
const protoMagic = "k8s\x00"

// statusError is the error for an answer of 400 and above: the server's Status
// where it sent one, else one made from the code and what text there was.
func statusError(req Request, resp *http.Response, body []byte) error {
	if status, ok := DecodeStatus(body); ok && status.Status != metav1.StatusSuccess {
		if status.Code == 0 {
			status.Code = int32(resp.StatusCode)
		}
		return &apierrors.StatusError{ErrStatus: *status}
	}
	retryAfter, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	text := string(body[:min(len(body), 2048)])
	return apierrors.NewGenericServerResponse(resp.StatusCode, strings.ToLower(req.Method),
		schema.GroupResource{}, req.Path, text, retryAfter, true)
}

// DecodeStatus reads a metav1.Status in either encoding; ok is false when body
// is something else.
func DecodeStatus(body []byte) (status *metav1.Status, ok bool) {
	status = &metav1.Status{}
	if rest, isProto := bytes.CutPrefix(body, []byte(protoMagic)); isProto {
		var unknown runtime.Unknown
		if unknown.Unmarshal(rest) != nil || unknown.Kind != "Status" || status.Unmarshal(unknown.Raw) != nil {
			return nil, false
		}
		return status, true
	}
	// Few other answers have the kind as a value somewhere: most are not decoded twice.
	if !bytes.Contains(body, []byte(`"Status"`)) || json.Unmarshal(body, status) != nil || status.Kind != "Status" {
		return nil, false
	}
	return status, true
}

// IsPathMissing says that err is a 404 for the URL itself, not for an object:
// the server does not serve that resource (any more).
func IsPathMissing(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	s := status.Status()
	if s.Code != http.StatusNotFound {
		return false
	}
	if s.Details == nil {
		return true
	}
	for _, cause := range s.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return true
		}
	}
	return s.Details.Kind == "" && s.Details.Name == ""
}
