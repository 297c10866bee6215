// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster sends a custom API server's own requests to the cluster that it belongs
// to: reviews, and what registers it.
package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// Limits of a request to the cluster.
const (
	// timeout bounds a request with all its attempts.
	timeout = 10 * time.Second
	// attempts is how often a request is sent that could not be answered, with a pause
	// between them that doubles.
	attempts = 3
	pause    = 200 * time.Millisecond
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 3 << 20
)

// Error is an answer that is not a success.
type Error struct {
	Code    int
	Message string
}

func (e *Error) Error() string { return fmt.Sprintf("the cluster answered %d %s", e.Code, e.Message) }

// Answered reports whether err is an answer with one of some codes.
func Answered(err error, codes ...int) bool {
	e, ok := errors.AsType[*Error](err)
	if ok {
		for _, code := range codes {
			if e.Code == code {
				return true
			}
		}
	}
	return false
}

// Client sends requests to the cluster's API server. It is safe for concurrent use.
type Client struct {
	base *url.URL
	http *http.Client
}

// New returns a client with the credentials of a configuration.
func New(config *rest.Config) (*Client, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the address of the cluster: %w", err)
	}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("the credentials for the cluster: %w", err)
	}
	return &Client{base: base, http: h}, nil
}

// Get reads an object.
func (c *Client) Get(ctx context.Context, path string, into any) error {
	return c.send(ctx, request{method: http.MethodGet, path: path}, nil, into)
}

// Post creates an object and decodes the answer into another one: the object may share
// memory with the user of a request.
func (c *Client) Post(ctx context.Context, path string, obj, into any) error {
	return c.send(ctx, request{method: http.MethodPost, path: path, form: "application/json"}, obj, into)
}

// DryRun is [Client.Post] of an object that is not stored.
func (c *Client) DryRun(ctx context.Context, path string, obj, into any) error {
	return c.send(ctx, request{method: http.MethodPost, path: path, query: url.Values{"dryRun": {metav1.DryRunAll}}, form: "application/json"}, obj, into)
}

// Put replaces an object.
func (c *Client) Put(ctx context.Context, path string, obj, into any) error {
	return c.send(ctx, request{method: http.MethodPut, path: path, form: "application/json"}, obj, into)
}

// Apply applies an object as a field manager, by force if another one owns its fields.
func (c *Client) Apply(ctx context.Context, path, manager string, obj, into any) error {
	query := url.Values{"fieldManager": {manager}, "force": {"true"}}
	return c.send(ctx, request{method: http.MethodPatch, path: path, query: query, form: "application/apply-patch+yaml"}, obj, into)
}

// request is the part of a request that all attempts share.
type request struct {
	method, path, form string
	query              url.Values
	body               []byte
}

// send sends a request, again if the server could not answer it, and decodes the answer.
func (c *Client) send(ctx context.Context, r request, obj, into any) error {
	if obj != nil {
		var err error
		if r.body, err = json.Marshal(obj); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	wait := pause
	for attempt := 1; ; attempt++ {
		again, err := c.once(ctx, r, into)
		if !again || attempt == attempts {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			wait *= 2
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// once sends a request. again reports whether another attempt may succeed.
func (c *Client) once(ctx context.Context, r request, into any) (again bool, err error) {
	to := c.base.JoinPath(r.path)
	to.RawQuery = r.query.Encode()
	h, err := http.NewRequestWithContext(ctx, r.method, to.String(), bytes.NewReader(r.body))
	if err != nil {
		return false, err
	}
	h.Header.Set("Accept", "application/json")
	if r.form != "" {
		h.Header.Set("Content-Type", r.form)
	}
	answer, err := c.http.Do(h)
	if err != nil {
		return ctx.Err() == nil, err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return ctx.Err() == nil, err
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		var status metav1.Status
		_ = json.Unmarshal(text, &status) // the code is what counts
		again = answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode >= http.StatusInternalServerError
		return again, &Error{answer.StatusCode, status.Message}
	}
	return false, json.Unmarshal(text, into)
}
