// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"context"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// takeHeaders begins a stream, or ends it with trailers.
func (c *connection) takeHeaders(f *http2.MetaHeadersFrame) error {
	id := f.StreamID
	wrong := http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
	if id%2 == 0 {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if st := c.streams[id]; st != nil {
		return c.takeTrailers(st, f)
	}
	switch {
	case id <= c.last:
		wrong.Code = http2.ErrCodeStreamClosed
		return wrong
	case c.away:
		return c.nuisance.note() // the client knows that nobody answers
	}
	c.last = id
	switch {
	case len(c.streams) >= c.host.limits.streams:
		wrong.Code = http2.ErrCodeRefusedStream
		return wrong
	case f.HasPriority() && f.Priority.StreamDep == id:
		return wrong
	}
	st := &stream{c: c, id: id, room: c.streamRoom}
	st.changed.L = &c.mu
	st.body.declared, st.body.allowed = -1, c.host.limits.streamWindow
	st.body.ended = f.StreamEnded()
	if !c.request(st, f) {
		return wrong
	}
	return c.open(st)
}

func (c *connection) takeTrailers(st *stream, f *http2.MetaHeadersFrame) error {
	b := &st.body
	switch {
	case b.ended:
		return http2.StreamError{StreamID: st.id, Code: http2.ErrCodeStreamClosed}
	case !f.StreamEnded() || len(f.PseudoFields()) > 0 || b.declared >= 0 && b.got < b.declared:
		return st.wrongEnd()
	}
	for _, field := range f.RegularFields() {
		name := c.host.names.canonicalOf(field.Name)
		if !httpguts.ValidTrailerHeader(name) {
			return st.wrongEnd()
		}
		// net/http shows only those that were announced.
		if _, announced := st.req.Trailer[name]; announced {
			b.trailer = append(b.trailer, hpack.HeaderField{Name: name, Value: field.Value})
		}
	}
	st.endOfBody()
	st.changed.Broadcast()
	return nil
}

// request makes a request of its headers; false says that they are not one.
func (c *connection) request(st *stream, f *http2.MetaHeadersFrame) bool {
	method, path, authority := f.PseudoValue("method"), f.PseudoValue("path"), f.PseudoValue("authority")
	scheme, connect := f.PseudoValue("scheme"), method == http.MethodConnect
	switch {
	case connect && (path != "" || scheme != "" || authority == ""),
		!connect && (method == "" || path == "" || scheme != "https" && scheme != "http"),
		f.PseudoValue("protocol") != "":
		if !f.Truncated { // else they may have been cut off
			return false
		}
	}
	st.ctx, st.cancel = context.WithCancel(c.ctx)
	req := (&http.Request{
		Method: method, Proto: "HTTP/2.0", ProtoMajor: 2, TLS: c.tls, RemoteAddr: c.remote,
		RequestURI: path, Host: authority, Header: c.header(f.RegularFields()), Body: http.NoBody,
	}).WithContext(st.ctx)
	st.req = req
	if !c.target(req, connect, f.Truncated) || !st.expect(req) {
		st.cancel()
		return false
	}
	if req.Host == "" {
		req.Host = req.Header.Get("Host")
	}
	delete(req.Header, "Host")
	switch {
	case f.Truncated:
		st.refusal = http.HandlerFunc(tooLarge)
	case forbidden(req.Header):
		st.refusal = http.HandlerFunc(malformed)
	}
	return true
}

// target parses what the request is for.
func (c *connection) target(req *http.Request, connect, truncated bool) bool {
	if connect {
		req.URL, req.RequestURI = &url.URL{Host: req.Host}, req.Host
		return true
	}
	var err error
	if req.URL, err = url.ParseRequestURI(req.RequestURI); err != nil && truncated {
		req.URL, err = &url.URL{}, nil
	}
	return err == nil
}

// header makes a header of fields; all values share one array.
func (c *connection) header(fields []hpack.HeaderField) http.Header {
	h := make(http.Header, len(fields))
	values := make([]string, len(fields))
	for i, f := range fields {
		name := c.host.names.canonicalOf(f.Name)
		switch present := h[name]; {
		case present == nil:
			values[i] = f.Value
			h[name] = values[i : i+1 : i+1]
		case name == "Cookie":
			present[0] += "; " + f.Value // they may come in pieces
		default:
			h[name] = append(present, f.Value)
		}
	}
	return h
}

// expect prepares for the body of a request; false says that its length is wrong.
func (st *stream) expect(req *http.Request) bool {
	b := &st.body
	if lengths := req.Header["Content-Length"]; lengths != nil {
		n, err := strconv.ParseUint(lengths[0], 10, 63)
		if err != nil {
			return false
		}
		for _, other := range lengths[1:] {
			if other != lengths[0] {
				return false
			}
		}
		b.declared = int64(n)
	}
	if b.ended {
		return b.declared <= 0
	}
	req.Body, req.ContentLength = reader{st}, b.declared
	if n := b.declared; n > 0 {
		b.data = make([]byte, 0, min(n, frameSize))
	}
	if httpguts.HeaderValuesContainsToken(req.Header["Expect"], "100-continue") {
		b.expects = true
		delete(req.Header, "Expect")
	}
	for _, list := range req.Header["Trailer"] {
		for name := range strings.SplitSeq(list, ",") {
			name = textproto.CanonicalMIMEHeaderKey(textproto.TrimString(name))
			if !httpguts.ValidTrailerHeader(name) {
				continue
			}
			if req.Trailer == nil {
				req.Trailer = http.Header{}
			}
			req.Trailer[name] = nil
		}
	}
	delete(req.Header, "Trailer")
	return true
}

// forbidden tells whether there are headers that mean something for a connection
// of HTTP/1.1 alone.
func forbidden(h http.Header) bool {
	for _, name := range connectionHeaders() {
		if _, there := h[name]; there {
			return true
		}
	}
	te := h["Te"]
	return len(te) > 0 && (len(te) > 1 || te[0] != "trailers" && te[0] != "")
}

func connectionHeaders() [5]string {
	return [5]string{"Connection", "Proxy-Connection", "Transfer-Encoding", "Upgrade", "Keep-Alive"}
}

func tooLarge(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "The headers of the request are too large.", http.StatusRequestHeaderFieldsTooLarge)
}

func malformed(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "A header of the request has no place in HTTP/2.", http.StatusBadRequest)
}
