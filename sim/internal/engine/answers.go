// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/sim/internal/plan"
)

// refusal is the answer of an API server that fails in a way.
func refusal(r *http.Request, fault plan.FaultType, t target) *http.Response {
	code := fault.Status()
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), // an HTTP status
		Details: &metav1.StatusDetails{Name: t.name, Group: t.group, Kind: t.resource},
	}
	header := http.Header{"Content-Type": {"application/json"}}
	switch fault {
	case plan.Conflict:
		status.Reason = metav1.StatusReasonConflict
		status.Message = "Operation cannot be fulfilled on " + t.resource + ` "` + t.name + `": the object has been modified; please apply your changes to the latest version and try again`
	case plan.TooManyRequests:
		status.Reason, status.Message = metav1.StatusReasonTooManyRequests, "too many requests, please try again later"
		status.Details.RetryAfterSeconds = 1
		header.Set("Retry-After", "1")
	case plan.TimeoutBefore, plan.TimeoutAfter:
		status.Reason, status.Message = metav1.StatusReasonTimeout, "request did not complete within the allotted timeout"
	default:
		status.Reason, status.Message = metav1.StatusReasonInternalError, "Internal error occurred: put here by a simulation"
	}
	body, _ := json.Marshal(status) // it has no value that cannot be encoded
	header.Set("Content-Length", strconv.Itoa(len(body)))
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code,
		Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: header, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}
