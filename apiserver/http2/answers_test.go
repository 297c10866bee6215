// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync"
	"testing"
	"time"

	wire "golang.org/x/net/http2"
)

// TestAnswersAreThoseOfNetHTTP sends the same requests to this server and to that
// of net/http and compares what a client sees.
func TestAnswersAreThoseOfNetHTTP(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 20_000)
	handler := func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/echo":
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.Copy(w, r.Body)
		case "/describe":
			fmt.Fprintf(w, "%s %s %s %s %d %q %v %v", r.Method, r.RequestURI, r.Host, r.Proto, r.ContentLength, r.Header["X-Many"], r.Header["Cookie"], r.TLS.HandshakeComplete)
		case "/large":
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			_, _ = io.WriteString(w, large)
		case "/pieces":
			for range 3 {
				_, _ = io.WriteString(w, "piece\n")
				w.(http.Flusher).Flush()
			}
		case "/empty":
		case "/status":
			w.WriteHeader(http.StatusTeapot)
		case "/nothing":
			w.WriteHeader(http.StatusNoContent)
			if _, err := io.WriteString(w, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
				t.Errorf("a body of 204: %v", err)
			}
		case "/unchanged":
			w.WriteHeader(http.StatusNotModified)
		case "/html":
			_, _ = io.WriteString(w, "<html><body>x</body></html>")
		case "/late":
			w.Header().Set("X-In-Time", "yes")
			w.WriteHeader(200)
			w.Header().Set("X-Late", "yes")
			_, _ = io.WriteString(w, "x")
		case "/trailers":
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, "x")
			w.Header().Set("X-Sum", "1")
			w.Header().Set(http.TrailerPrefix+"X-Unannounced", "2")
		case "/connection":
			w.Header().Set("Connection", "keep-alive")
			w.Header().Set("Transfer-Encoding", "chunked")
			_, _ = io.WriteString(w, "x")
		case "/read-trailers":
			_, _ = io.Copy(io.Discard, r.Body)
			fmt.Fprintf(w, "%v", r.Trailer)
		}
	}
	ours, theirs := serve(t, handler), start(t, handler)
	ourClient, theirClient := ours.client(t), theirs.client(t)
	for _, c := range []struct {
		method, path, body string
		trailers           bool
	}{
		{"GET", "/describe", "", false}, {"POST", "/describe?x=1&y=%20", "abc", false}, {"POST", "/echo", "hello", false},
		{"POST", "/echo", large, false}, {"GET", "/large", "", false}, {"HEAD", "/large", "", false}, {"HEAD", "/html", "", false},
		{"GET", "/pieces", "", false}, {"GET", "/empty", "", false}, {"HEAD", "/empty", "", false}, {"GET", "/status", "", false},
		{"GET", "/nothing", "", false}, {"GET", "/unchanged", "", false}, {"GET", "/html", "", false}, {"GET", "/late", "", false},
		{"GET", "/trailers", "", false}, {"GET", "/connection", "", false},
		{"POST", "/read-trailers", "abc", true}, {"PATCH", "/large", "not read", false}, {"OPTIONS", "/describe", "", false},
	} {
		want := seen(t, theirClient, theirs, c.method, c.path, c.body, c.trailers)
		got := seen(t, ourClient, ours, c.method, c.path, c.body, c.trailers)
		if got != want {
			t.Errorf("%s %s:\n got %.600s\nwant %.600s", c.method, c.path, got, want)
		}
	}
}

func TestMoreThanDeclaredIsRefused(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "3")
		if r.URL.Path == "/more" {
			if _, err := io.WriteString(w, "four"); !errors.Is(err, http.ErrContentLength) {
				t.Errorf("more than declared: %v", err)
			}
		}
	})
	p := s.greet(t)
	for i, path := range []string{"/more", "/less"} {
		id := uint32(2*i + 1)
		p.send(func() { p.ask(id, "GET", path, true) })
		if _, body, code := p.answer(id); code != wire.ErrCodeInternal || body != "" {
			t.Errorf("%s: %q, %v", path, body, code)
		}
	}
}

// seen is everything that a client sees of an answer.
func seen(t *testing.T, client *http.Client, s *served, method, path, body string, trailers bool) string {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.url(path), content)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "example.com"
	r.Header["X-Many"] = []string{"a", "b"}
	r.Header["Cookie"] = []string{"a=1", "b=2"}
	r.Header.Set("Accept-Encoding", "identity")
	if trailers {
		r.ContentLength = -1
		r.Trailer = http.Header{"X-After": {"all"}}
	}
	res, err := client.Do(r)
	if err != nil {
		return "error"
	}
	defer func() { _ = res.Body.Close() }()
	if res.Header.Get("Date") == "" {
		t.Errorf("%s: no date", path)
	}
	res.Header.Del("Date")
	data, err := io.ReadAll(res.Body)
	return fmt.Sprint(res.Status, res.Proto, res.ContentLength, res.Header, res.Trailer, err != nil, string(data))
}

func TestABodyIsAskedForWhenItIsWanted(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/refuse" {
			http.Error(w, "no", http.StatusForbidden)
			return
		}
		if r.Header.Get("Expect") != "" {
			t.Error("the handler sees Expect")
		}
		_, _ = io.Copy(w, r.Body)
	})
	for path, want := range map[string]int{"/take": 1, "/refuse": 0} {
		asked := 0
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			Got1xxResponse: func(int, textproto.MIMEHeader) error { return nil },
			Got100Continue: func() { asked++ },
		}), http.MethodPost, s.url(path), strings.NewReader("body"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Expect", "100-continue")
		c := s.client(t)
		c.Transport.(*http.Transport).ExpectContinueTimeout = 20 * time.Second
		res, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if asked != want || want == 1 && string(body) != "body" {
			t.Errorf("%s: asked %d times, want %d; %s", path, asked, want, body)
		}
	}
}

func TestAPanicEndsItsStreamAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/panic":
			panic("on purpose")
		case "/abort":
			_, _ = io.WriteString(w, "half")
			panic(http.ErrAbortHandler)
		}
	})
	p := s.greet(t)
	for i, path := range []string{"/panic", "/abort"} {
		id := uint32(2*i + 1)
		p.send(func() { p.ask(id, "GET", path, true) })
		if _, _, code := p.answer(id); code != wire.ErrCodeInternal {
			t.Errorf("%s: %v, want an internal error", path, code)
		}
	}
	p.send(func() { p.ask(5, "GET", "/", true) })
	if status, _, _ := p.answer(5); status != 200 {
		t.Errorf("the connection is no good any more: %d", status)
	}
	_ = s.server.Close()
	if text := s.log.String(); !strings.Contains(text, "on purpose") || strings.Count(text, "panic serving") != 1 {
		t.Errorf("logged %q", text)
	}
}

func TestTheContextOfARequestEndsWithItsStreamAndWithTheConnection(t *testing.T) {
	t.Parallel()
	ended, begun := make(chan error, 1), make(chan struct{}, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- r.Context().Err()
	})
	p := s.greet(t)
	p.send(func() { p.ask(1, "GET", "/", true) })
	<-begun
	p.send(func() { _ = p.framer.WriteRSTStream(1, wire.ErrCodeCancel) })
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.send(func() { p.ask(3, "GET", "/", true) })
	<-begun
	_ = p.conn.NetConn().Close()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestTheContextOfTheServerEndsThoseOfItsRequests(t *testing.T) {
	t.Parallel()
	base, cancel := context.WithCancel(context.Background())
	ended, begun := make(chan error, 2), make(chan struct{}, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		<-r.Context().Done()
		ended <- r.Context().Err()
	}, func(server *http.Server) { server.BaseContext = func(net.Listener) context.Context { return base } })
	p := s.greet(t)
	p.send(func() { p.ask(1, "GET", "/", true) })
	<-begun
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	p.send(func() { p.ask(3, "GET", "/", true) }) // begins when it has ended already
	<-begun
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestHandlersSeeTheClientsCertificate(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.TLS.PeerCertificates[0].Subject.CommonName, r.RemoteAddr != "", r.Context().Value(http.ServerContextKey) != nil, r.Context().Value(http.LocalAddrContextKey) != nil)
	})
	if got, want := get(t, s.client(t, certificate(t)), s.url("/")), "testtrue true true"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHTTP1StaysWithNetHTTP(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) })
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"http/1.1"}}}} //nolint:gosec // a test
	defer c.CloseIdleConnections()
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url("/"), nil)
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if body, _ := io.ReadAll(res.Body); string(body) != "HTTP/1.1" {
		t.Errorf("got %s", body)
	}
}

// TestManyStreamsShareAConnection has many requests of all sizes under way at once,
// over one connection, and compares every byte.
func TestManyStreamsShareAConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		buffer := make([]byte, 3000)
		for {
			n, err := r.Body.Read(buffer)
			_, _ = w.Write(buffer[:n])
			if n%2 == 1 {
				w.(http.Flusher).Flush()
			}
			if err != nil {
				return
			}
		}
	})
	c := s.client(t)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for _, size := range []int{0, 1, 16_374, 16_375, 16_376, 65_535, 100_000 + i*7919, 3 << 20} {
				sent := bytes.Repeat([]byte{byte(i), byte(size)}, size/2)
				if size == 3<<20 && i%8 > 0 {
					continue
				}
				r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url("/"), bytes.NewReader(sent))
				res, err := c.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(res.Body)
				_ = res.Body.Close()
				if err != nil || !bytes.Equal(got, sent) {
					t.Errorf("%d bytes came back as %d: %v", len(sent), len(got), err)
				}
			}
		})
	}
	group.Wait()
}

// TestAHandlerMayAskClientsToLeave holds that Connection: close, which HTTP/2 does
// not have, ends the connection in order.
func TestAHandlerMayAskClientsToLeave(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "bye")
	})
	p := s.greet(t)
	p.send(func() { p.ask(1, "GET", "/", true) })
	if status, body, code := p.answer(1); status != 200 || body != "bye" || code != 0 {
		t.Errorf("%d, %q, %v", status, body, code)
	}
	if got := p.farewell(); got != wire.ErrCodeNo {
		t.Errorf("the server said %v", got)
	}
}

// TestInterimAnswersComeBeforeTheAnswer holds that a handler may send hints.
func TestInterimAnswersComeBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</x>")
		w.WriteHeader(http.StatusEarlyHints)
		_, _ = io.WriteString(w, "answer")
	})
	var hints []string
	ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{Got1xxResponse: func(code int, header textproto.MIMEHeader) error {
		hints = append(hints, fmt.Sprint(code, header.Get("Link")))
		return nil
	}})
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url("/"), nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := s.client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "answer" || fmt.Sprint(hints) != "[103</x>]" {
		t.Errorf("%q, %v, %q", body, err, hints)
	}
}
