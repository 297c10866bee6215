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

// send carries out one request of a built-in controller. Deleting what is gone
// counts as done.
func (p *Plane) send(ctx context.Context, r step.Request) error {
	answer, err := p.fetch(ctx, r)
	var refused *refusedError
	switch {
	case err == nil:
		return answer.Close() // the answer is not needed
	case r.Method == http.MethodDelete && errors.As(err, &refused) && refused.status.Code == http.StatusNotFound:
		return nil
	}
	return err
}

// fetch implements [step.Fetcher].
func (p *Plane) fetch(ctx context.Context, r step.Request) (io.ReadCloser, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	request, err := http.NewRequestWithContext(ctx, r.Method, "https://in-process.invalid"+r.Path, body)
	if err != nil {
		return nil, fmt.Errorf("controlplane: %s %s: %w", r.Method, r.Path, err)
	}
	request.URL.RawQuery = r.Query.Encode()
	request.Header.Set("User-Agent", step.UserAgent(r.User))
	if r.Accept != "" {
		request.Header.Set("Accept", r.Accept)
	}
	if r.Body != nil {
		request.Header.Set("Content-Type", r.ContentType)
	}
	response, err := p.server.Reserved(identity(r.User)).RoundTrip(request)
	if err != nil {
		return nil, fmt.Errorf("controlplane: %s %s: %w", r.Method, r.Path, err)
	}
	if response.StatusCode < 300 {
		return response.Body, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, mostRefusalBytes))
	if err != nil {
		return nil, fmt.Errorf("controlplane: %s %s: %w", r.Method, r.Path, err)
	}
	return nil, &refusedError{request: r, status: statusOf(response.StatusCode, answer)}
}

// mostRefusalBytes are read of the answer to a request that is refused: it may come from
// another server.
const mostRefusalBytes = 1 << 20

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
	status  metav1.Status
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s %s: %d: %s", e.request.Method, e.request.Path, e.status.Code, e.status.Message)
}

// Status implements [apierrors.APIStatus], so that controllers and admission plugins see a
// conflict as such.
func (e *refusedError) Status() metav1.Status { return e.status }

// Message is what the server said.
func (e *refusedError) Message() string { return e.status.Message }

// statusOf returns the Status that an answer is, or one with the answer as its message.
func statusOf(code int, answer []byte) metav1.Status {
	var status metav1.Status
	if json.Unmarshal(answer, &status) != nil || status.Message == "" {
		status = metav1.Status{Message: string(answer)}
	}
	status.Status, status.Code = metav1.StatusFailure, int32(code) // an HTTP status
	return status
}
