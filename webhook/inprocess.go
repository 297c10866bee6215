// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
)

// RoundTrip implements http.RoundTripper: an API server in the same process calls the
// webhooks by it, without a socket and a certificate. The reviews still travel as bytes. A
// request whose context ends returns at once, as over the network; its handler goes on
// until it returns.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		body, err = io.ReadAll(r.Body)
		if closing := r.Body.Close(); err == nil {
			err = closing
		}
		if err != nil {
			return nil, err
		}
	}
	in := r.Clone(r.Context())
	in.Body, in.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answered := make(chan *answer, 1)
	go func() {
		a := &answer{header: http.Header{}}
		s.ServeHTTP(a, in)
		answered <- a
	}()
	select {
	case a := <-answered:
		return a.response(r), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// answer is an http.ResponseWriter that keeps what is written.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter.
func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

// Write implements http.ResponseWriter.
func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(b)
}

func (a *answer) response(r *http.Request) *http.Response {
	a.WriteHeader(http.StatusOK)
	return &http.Response{
		Status: strconv.Itoa(a.status) + " " + http.StatusText(a.status), StatusCode: a.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: a.header, Body: io.NopCloser(&a.body), ContentLength: int64(a.body.Len()), Request: r,
	}
}
