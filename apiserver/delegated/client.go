// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package delegated

import (
	"bytes"
	"context"
	"encoding/json"
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
	// askTimeout bounds a question with all its attempts.
	askTimeout = 10 * time.Second
	// attempts is how often a question is asked that could not be answered, with a pause
	// between them that doubles.
	attempts = 3
	pause    = 200 * time.Millisecond
	// maxAnswer bounds an answer, in bytes.
	maxAnswer = 3 << 20
)

// client asks the cluster's API server.
type client struct {
	base *url.URL
	http *http.Client
}

func newClient(config *rest.Config) (*client, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("delegated: the address of the cluster: %w", err)
	}
	h, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("delegated: the credentials for the cluster: %w", err)
	}
	return &client{base: base, http: h}, nil
}

// post creates a review and decodes the answer into another one: the review shares memory
// with the user of a request.
func (c *client) post(ctx context.Context, path string, review, answer any) error {
	body, err := json.Marshal(review)
	if err != nil {
		return err
	}
	return c.ask(ctx, http.MethodPost, path, body, answer)
}

// ask sends a request, again if the server could not answer it, and decodes the answer.
func (c *client) ask(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	wait := pause
	for attempt := 1; ; attempt++ {
		again, err := c.once(ctx, method, path, body, into)
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
func (c *client) once(ctx context.Context, method, path string, body []byte, into any) (again bool, err error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(r)
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
		return again, fmt.Errorf("the cluster answered %d %s", answer.StatusCode, status.Message)
	}
	return false, json.Unmarshal(text, into)
}
