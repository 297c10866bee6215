// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/auth"
	"github.com/steer-dev/steer/controlplane/internal/step"
)

// identity returns the user that a part of the plane acts as: the server itself
// as a master, the others under their roles.
func identity(name string) *auth.User {
	groups := []string{auth.Authenticated}
	if name == step.APIServer {
		groups = append(groups, auth.Masters)
	}
	if rest, ok := strings.CutPrefix(name, "system:serviceaccount:"); ok {
		namespace, _, _ := strings.Cut(rest, ":")
		groups = append(groups, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	}
	if strings.HasPrefix(name, step.NodePrefix) {
		groups = append(groups, "system:nodes")
	}
	return &auth.User{Name: name, Groups: groups}
}

// userAgent is how the parts of a plane present themselves; it names them as
// field managers.
func userAgent(user string) string {
	switch {
	case user == step.APIServer:
		return "kube-apiserver"
	case user == step.Scheduler:
		return "kube-scheduler"
	case strings.HasPrefix(user, step.NodePrefix):
		return "kubelet"
	}
	return "kube-controller-manager"
}

// send carries out one request of a built-in controller. Deleting what is gone
// counts as done.
func (p *Plane) send(ctx context.Context, r step.Request) error {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, "https://in-process.invalid"+r.Path, body)
	if err != nil {
		return fmt.Errorf("controlplane: %s %s: %w", r.Method, r.Path, err)
	}
	request.URL.RawQuery = r.Query.Encode()
	request.Header.Set("User-Agent", userAgent(r.User))
	if r.Body != nil {
		request.Header.Set("Content-Type", r.ContentType)
	}
	response, err := p.server.RoundTripper(identity(r.User)).RoundTrip(request)
	if err != nil {
		return fmt.Errorf("controlplane: %s %s: %w", r.Method, r.Path, err)
	}
	defer response.Body.Close()
	if response.StatusCode < 300 || response.StatusCode == http.StatusNotFound && r.Method == http.MethodDelete {
		return nil // the answer is not needed
	}
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("controlplane: %s %s: %w", r.Method, r.Path, err)
	}
	return &refusedError{request: r, status: response.StatusCode, message: messageOf(answer)}
}

// sendFor carries out what a subresource asks of another resource. A refusal is
// handed on as the server put it.
func (p *Plane) sendFor(ctx context.Context, method, path string, body []byte) error {
	err := p.send(ctx, step.Request{User: step.APIServer, Method: method, Path: path, ContentType: step.JSON, Body: body})
	var refused *refusedError
	if !errors.As(err, &refused) {
		return err
	}
	return &apierrors.StatusError{ErrStatus: refused.Status()}
}

// refusedError is a request that the server refused.
type refusedError struct {
	request step.Request
	status  int
	message string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s %s: %d: %s", e.request.Method, e.request.Path, e.status, e.message)
}

// Status implements [apierrors.APIStatus], so that controllers and admission plugins see a
// conflict as such.
func (e *refusedError) Status() metav1.Status {
	reason := metav1.StatusReasonUnknown
	if e.status == http.StatusConflict {
		reason = metav1.StatusReasonConflict
	}
	return metav1.Status{
		Status: metav1.StatusFailure, Code: int32(e.status), Reason: reason, Message: e.message, //nolint:gosec // an HTTP status
	}
}

// Message is what the server said.
func (e *refusedError) Message() string { return e.message }

// messageOf returns the message of a Status, or the answer as it is.
func messageOf(answer []byte) string {
	var status struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(answer, &status) == nil && status.Message != "" {
		return status.Message
	}
	return string(answer)
}
