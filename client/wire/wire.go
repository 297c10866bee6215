// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire sends requests to an API server and reads its answers: base URL,
// credentials, retries that honour Retry-After, warnings, and status errors. It
// knows HTTP and metav1.Status; kinds and objects are the business of the
// packages above.
package wire

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

// Media types of requests and answers.
const (
	JSON     = "application/json"
	Protobuf = "application/vnd.kubernetes.protobuf"
)

// maxRetries of one request that the server asks to be retried, and of a read
// whose connection broke.
const (
	maxRetries       = 10
	maxBrokenRetries = 3
)

// Options of New. The zero value works.
type Options struct {
	// HTTPClient sends the requests. Nil means one made from the config. Its
	// Timeout applies to requests, never to streams.
	HTTPClient *http.Client
	// OnAttempt is told of every round trip, retries included. Nil is not called.
	OnAttempt func(Attempt)
	// Warnings takes the text of Warning headers. Nil drops them.
	Warnings func(ctx context.Context, text string)
	// Log takes retries at debug level. Nil means slog.Default().
	Log *slog.Logger
}

// Attempt is one round trip.
type Attempt struct {
	Verb   string // Request.Verb
	Method string
	Host   string
	// Code is the HTTP status, or "<error>" when there was no answer.
	Code string
	// Retry counts from 0.
	Retry int
	// Waited is the time spent in the client-side rate limiter.
	Waited time.Duration
	// Took is the time until the answer's header.
	Took                        time.Duration
	RequestBytes, ResponseBytes int64 // ResponseBytes is -1 where unknown
}

// Request is what to send.
type Request struct {
	// Verb in Kubernetes' words, for metrics and messages.
	Verb   string
	Method string
	// Path is absolute and joined to the path of the config's host.
	Path        string
	Query       url.Values
	ContentType string
	Accept      string
	// IfNoneMatch makes an unchanged answer a Response with status 304.
	IfNoneMatch string
	Body        []byte
}

// Response is a whole answer.
type Response struct {
	Status      int
	ContentType string
	ETag        string
	Body        []byte
}

// Stream is an answer whose body is read as it comes.
type Stream struct {
	ContentType string
	Body        io.ReadCloser
}

// Conn is the way to one API server. It is safe for concurrent use.
type Conn struct {
	base    *url.URL
	client  *http.Client // with the config's timeout
	stream  *http.Client // without
	limiter flowcontrol.RateLimiter
	opts    Options
}

// New makes a Conn. Nothing is sent.
func New(cfg *rest.Config, opts Options) (*Conn, error) {
	if cfg == nil {
		return nil, errors.New("no rest.Config: load a kubeconfig or use the in-cluster one")
	}
	base, _, err := rest.DefaultServerUrlFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("server address %q: %w", cfg.Host, err)
	}
	httpClient := opts.HTTPClient
	if httpClient == nil {
		if cfg.UserAgent == "" {
			cfg = rest.CopyConfig(cfg)
			cfg.UserAgent = rest.DefaultKubernetesUserAgent()
		}
		if httpClient, err = rest.HTTPClientFor(cfg); err != nil {
			return nil, fmt.Errorf("HTTP client for %s: %w", base.Host, err)
		}
	}
	stream := *httpClient
	stream.Timeout = 0
	c := &Conn{base: base, client: httpClient, stream: &stream, limiter: cfg.RateLimiter, opts: opts}
	if c.limiter == nil && cfg.QPS > 0 {
		c.limiter = flowcontrol.NewTokenBucketRateLimiter(cfg.QPS, max(cfg.Burst, 1))
	}
	if c.opts.Log == nil {
		c.opts.Log = slog.Default()
	}
	return c, nil
}

// HTTPClient is the client requests are sent with.
func (c *Conn) HTTPClient() *http.Client { return c.client }

// Do sends req and reads the whole answer. A status of 400 and above is a
// *apierrors.StatusError.
func (c *Conn) Do(ctx context.Context, req Request) (*Response, error) {
	for retry := 0; ; retry++ {
		resp, err := c.send(ctx, c.client, req, retry)
		var body []byte
		if err == nil {
			body, err = readAll(resp)
		}
		again, waitErr := c.retry(ctx, req, resp, err, retry)
		switch {
		case waitErr != nil:
			return nil, waitErr
		case again:
			continue
		case err != nil:
			return nil, fmt.Errorf("%s %s: %w", req.Method, req.Path, err)
		case resp.StatusCode >= http.StatusBadRequest:
			return nil, statusError(req, resp, body)
		}
		return &Response{
			Status: resp.StatusCode, ContentType: resp.Header.Get("Content-Type"),
			ETag: resp.Header.Get("ETag"), Body: body,
		}, nil
	}
}

// Stream sends req and hands out the body unread. The caller closes it; the
// end of ctx breaks it.
func (c *Conn) Stream(ctx context.Context, req Request) (*Stream, error) {
	for retry := 0; ; retry++ {
		resp, err := c.send(ctx, c.stream, req, retry)
		if err == nil && resp.StatusCode < http.StatusBadRequest {
			return &Stream{ContentType: resp.Header.Get("Content-Type"), Body: resp.Body}, nil
		}
		var body []byte
		if err == nil {
			body, err = readAll(resp)
		}
		again := false
		var waitErr error
		if err == nil { // a stream has a way of its own to begin again
			again, waitErr = c.retry(ctx, req, resp, nil, retry)
		}
		switch {
		case waitErr != nil:
			return nil, waitErr
		case again:
			continue
		case err != nil:
			return nil, fmt.Errorf("%s %s: %w", req.Method, req.Path, err)
		}
		return nil, statusError(req, resp, body)
	}
}

func (c *Conn) send(ctx context.Context, client *http.Client, req Request, retry int) (*http.Response, error) {
	var waited time.Duration
	if c.limiter != nil {
		start := time.Now()
		if err := c.limiter.Wait(ctx); err != nil {
			return nil, fmt.Errorf("client-side rate limit: %w", err)
		}
		waited = time.Since(start)
	}
	u := *c.base
	u.Path = strings.TrimSuffix(u.Path, "/") + req.Path
	u.RawQuery = req.Query.Encode()
	var body io.Reader
	if req.Body != nil {
		body = bytes.NewReader(req.Body)
	}
	hr, err := http.NewRequestWithContext(ctx, req.Method, u.String(), body)
	if err != nil {
		return nil, err
	}
	if req.ContentType != "" {
		hr.Header.Set("Content-Type", req.ContentType)
	}
	if req.Accept != "" {
		hr.Header.Set("Accept", req.Accept)
	}
	if req.IfNoneMatch != "" {
		hr.Header.Set("If-None-Match", req.IfNoneMatch)
	}
	if id := auditID(ctx); id != "" {
		hr.Header.Set("Audit-ID", id)
	}
	start := time.Now()
	resp, err := client.Do(hr)
	if c.opts.OnAttempt != nil {
		a := Attempt{
			Verb: req.Verb, Method: req.Method, Host: u.Host, Code: "<error>", Retry: retry,
			Waited: waited, Took: time.Since(start), RequestBytes: int64(len(req.Body)), ResponseBytes: -1,
		}
		if err == nil {
			a.Code, a.ResponseBytes = strconv.Itoa(resp.StatusCode), resp.ContentLength
		}
		c.opts.OnAttempt(a)
	}
	if err != nil {
		var wrapped *url.Error // repeats method and URL
		if errors.As(err, &wrapped) {
			err = wrapped.Err
		}
		return nil, err
	}
	if c.opts.Warnings != nil {
		if headers := resp.Header.Values("Warning"); len(headers) > 0 {
			warnings, _ := utilnet.ParseWarningHeaders(headers)
			for _, w := range warnings {
				if w.Code == 299 && w.Text != "" {
					c.opts.Warnings(ctx, w.Text)
				}
			}
		}
	}
	return resp, nil
}

// retry says whether to send req again, after having waited as long as the
// server asked. Only what the server asks to be retried is, and reads whose
// connection broke: a write may have happened.
func (c *Conn) retry(ctx context.Context, req Request, resp *http.Response, err error, retry int) (bool, error) {
	if retry >= maxRetries || ctx.Err() != nil {
		return false, nil
	}
	wait := time.Second
	switch {
	case err != nil:
		if req.Method != http.MethodGet || retry >= maxBrokenRetries || !utilnet.IsConnectionReset(err) && !utilnet.IsProbableEOF(err) && !utilnet.IsHTTP2ConnectionLost(err) {
			return false, nil
		}
	case resp.StatusCode == http.StatusTooManyRequests, resp.StatusCode >= http.StatusInternalServerError:
		seconds, convErr := strconv.Atoi(resp.Header.Get("Retry-After"))
		if convErr != nil || seconds < 0 {
			return false, nil
		}
		wait = time.Duration(seconds) * time.Second
	default:
		return false, nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) < wait {
		return false, nil // the caller learns the real reason, not "deadline exceeded"
	}
	c.opts.Log.DebugContext(ctx, "request is retried", "method", req.Method, "path", req.Path, "after", wait, "retry", retry+1)
	if wait == 0 {
		return true, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true, nil
	case <-ctx.Done():
		return false, fmt.Errorf("%s %s: %w", req.Method, req.Path, context.Cause(ctx))
	}
}

func readAll(resp *http.Response) ([]byte, error) {
	defer func() { _ = resp.Body.Close() }()
	if n := resp.ContentLength; n > 0 && n < 64<<20 {
		body := make([]byte, n)
		if _, err := io.ReadFull(resp.Body, body); err != nil {
			return nil, fmt.Errorf("read answer: %w", err)
		}
		return body, nil
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return body, nil
}
