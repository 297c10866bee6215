// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/steer-dev/steer/apiserver"
	"github.com/steer-dev/steer/apiserver/auth"
)

// pipes is a listener without sockets, so that the clock of a synctest bubble advances.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	close    sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.accepted <- server
	return client, nil
}

// piped is a server of widgets over pipes, with 4 slots for reads and 4 for writes, of which a user has half.
type piped struct {
	*pipes
	t      *testing.T
	server *apiserver.Server
	client *http.Client // a client that reads and writes normally
	http2  bool
}

const pipedLimit = 20 * time.Second

func newPiped(t *testing.T, role string, over2 bool) *piped {
	t.Helper()
	s := newServerAs(t, role, func(o *apiserver.Options) {
		o.Limits.Reads, o.Limits.Writes, o.Limits.RequestTimeout, o.Authorizer = 4, 4, pipedLimit, auth.AllowAll{}
	})
	p := &piped{pipes: &pipes{accepted: make(chan net.Conn), closed: make(chan struct{})}, t: t, server: s, http2: over2}
	server := s.HTTPServer()
	server.Protocols.SetUnencryptedHTTP2(over2)
	served := make(chan error)
	go func() { served <- server.Serve(p.pipes) }()
	transport := &http.Transport{DialContext: p.dial, Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(over2)
	transport.Protocols.SetHTTP1(!over2)
	p.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	for i := range 8 { // more than a connection buffers
		if got := send(t, s.RoundTripper(admin), http.MethodPost, widgetsPath, large(i)); got.code != 201 {
			t.Fatalf("%d: %s", got.code, got.body)
		}
	}
	return p
}

func large(i int) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d"},"spec":{"text":"%s"}}`, i, strings.Repeat("x", 16<<10))
}

// code returns the status code that a normal client gets.
func (p *piped) code(method, path, body string) int {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), method, "http://steer"+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode
}

// hostile is a connection whose client sends part of a request and then stalls.
type hostile struct {
	conn     net.Conn
	mu       sync.Mutex
	received strings.Builder
}

// listen reads what comes.
func (h *hostile) listen() {
	buffer := make([]byte, 4096)
	for {
		n, err := h.conn.Read(buffer)
		h.mu.Lock()
		h.received.Write(buffer[:n])
		h.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// misbehave sends a request whose body, if there is one, never ends. A client that does
// not listen reads nothing; over HTTP/2 one that listens grants no window.
func (p *piped) misbehave(method, path, body string, listens bool) *hostile {
	p.t.Helper()
	conn, err := p.dial(p.t.Context(), "", "")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { _ = conn.Close() })
	h := &hostile{conn: conn}
	if listens {
		go h.listen()
	}
	var text strings.Builder
	if !p.http2 {
		fmt.Fprintf(&text, "%s %s HTTP/1.1\r\nHost: steer\r\nContent-Type: application/json\r\n", method, path)
		if body != "" {
			fmt.Fprintf(&text, "Content-Length: %d\r\n", len(body)+1000)
		}
		text.WriteString("\r\n" + body)
	} else {
		p.frames(&text, method, path, body, listens)
	}
	if _, err := io.WriteString(conn, text.String()); err != nil {
		p.t.Fatal(err)
	}
	return h
}

// frames writes the HTTP/2 frames of a request.
func (p *piped) frames(out *strings.Builder, method, path, body string, listens bool) {
	window := uint32(1<<31 - 1)
	if listens && body == "" {
		window = 0
	}
	var block strings.Builder
	enc := hpack.NewEncoder(&block)
	for _, f := range [][2]string{{":method", method}, {":scheme", "http"}, {":authority", "steer"}, {":path", path}, {"content-type", "application/json"}} {
		_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
	}
	out.WriteString(http2.ClientPreface)
	framer := http2.NewFramer(out, nil)
	_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: window})
	_ = framer.WriteSettingsAck()
	_ = framer.WriteWindowUpdate(0, 1<<30)
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte(block.String()), EndHeaders: true, EndStream: body == ""})
	if body != "" {
		_ = framer.WriteData(1, false, []byte(body))
	}
}

// TestDeadlinesFreeTheSlotsOfStalledClients: the slot of a request whose client
// stalls is taken until the request times out, and free then.
func TestDeadlinesFreeTheSlotsOfStalledClients(t *testing.T) {
	t.Parallel()
	inEachRole(t, testDeadlinesFreeTheSlotsOfStalledClients)
}

func testDeadlinesFreeTheSlotsOfStalledClients(t *testing.T, role string) {
	t.Parallel()
	for name, c := range map[string]struct {
		http2, listens     bool
		method, path, body string
	}{
		"HTTP/1.1, half a body":        {false, true, http.MethodPost, widgetsPath, `{"apiVersion":`},
		"HTTP/1.1, stalled reader":     {false, false, http.MethodGet, widgetsPath, ""},
		"HTTP/1.1, an earlier timeout": {false, true, http.MethodPost, widgetsPath + "?timeout=10s", `{"apiVersion":`},
		"HTTP/2, half a body":          {true, true, http.MethodPost, widgetsPath, `{"apiVersion":`},
		"HTTP/2, no window":            {true, true, http.MethodGet, widgetsPath, ""},
		"HTTP/2, stalled reader":       {true, false, http.MethodGet, widgetsPath, ""},
		"HTTP/2, an earlier timeout":   {true, true, http.MethodPost, widgetsPath + "?timeout=10s", `{"apiVersion":`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPiped(t, role, c.http2)
				clients := []*hostile{p.misbehave(c.method, c.path, c.body, c.listens), p.misbehave(c.method, c.path, c.body, c.listens)}
				synctest.Wait()
				others, code := func() int { return p.code(http.MethodGet, widgetsPath+"/w0", "") }, http.StatusOK
				if c.body != "" {
					others, code = func() int { return p.code(http.MethodPost, widgetsPath, large(100)) }, http.StatusCreated
				}
				limit := pipedLimit
				if strings.Contains(c.path, "timeout=10s") {
					limit = 10 * time.Second
				}
				time.Sleep(limit - time.Second)
				if got := others(); got != http.StatusTooManyRequests {
					t.Errorf("others are answered %d before the time is up", got)
				}
				time.Sleep(time.Second + time.Second + time.Millisecond)
				if got := others(); got != code {
					t.Errorf("others are answered %d after the time is up, want %d", got, code)
				}
				if c.body == "" {
					return
				}
				for _, h := range clients {
					h.mu.Lock()
					if got := h.received.String(); !strings.Contains(got, `{"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout"`) {
						t.Errorf("a client that sent half a body got %q", got)
					}
					h.mu.Unlock()
				}
			})
		})
	}
}

func (p *piped) longRunning() string {
	p.t.Helper()
	got := send(p.t, p.server.RoundTripper(admin), http.MethodGet, "/metrics", "")
	for line := range strings.Lines(got.body) {
		if count, found := strings.CutPrefix(line, "apiserver_longrunning_requests "); found {
			return strings.TrimSpace(count)
		}
	}
	p.t.Fatalf("no number of watches in %s", got.body)
	return ""
}

// TestWatchesOutliveTheRequestTimeout: watches last while their clients read, and no
// longer.
func TestWatchesOutliveTheRequestTimeout(t *testing.T) {
	t.Parallel()
	inEachRole(t, testWatchesOutliveTheRequestTimeout)
}

func testWatchesOutliveTheRequestTimeout(t *testing.T, role string) {
	t.Parallel()
	for _, over2 := range []bool{false, true} {
		t.Run(fmt.Sprintf("HTTP/2 %t", over2), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPiped(t, role, over2)
				r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://steer"+widgetsPath+"?watch=true&resourceVersion=1", http.NoBody)
				if err != nil {
					t.Fatal(err)
				}
				answer, err := p.client.Do(r)
				if err != nil {
					t.Fatal(err)
				}
				events := make(chan string)
				go func() {
					defer close(events)
					for {
						buffer := make([]byte, 64<<10)
						n, err := answer.Body.Read(buffer)
						if err != nil {
							return
						}
						events <- string(buffer[:n])
					}
				}()
				p.misbehave(http.MethodGet, widgetsPath+"?watch=true", "", false)
				if over2 {
					p.misbehave(http.MethodGet, widgetsPath+"?watch=true", "", true)
				}
				synctest.Wait()
				for range 10 {
					time.Sleep(pipedLimit)
					drain(events)
				}
				if got := p.longRunning(); got != "1" {
					t.Errorf("%s watches go on, want that which is read", got)
				}
				if got := send(t, p.server.RoundTripper(admin), http.MethodPost, widgetsPath, large(100)); got.code != 201 {
					t.Fatalf("%d: %s", got.code, got.body)
				}
				if got := <-events; !strings.Contains(got, "w100") {
					t.Errorf("the watch that is read got %q", got)
				}
				_ = answer.Body.Close()
				for range events { // until the reader has ended
				}
			})
		})
	}
}

// drain discards the events that have arrived.
func drain(events <-chan string) {
	for {
		synctest.Wait()
		select {
		case _, more := <-events:
			if !more {
				return
			}
		default:
			return
		}
	}
}

// TestConnectionsWithoutRequestsEnd: a connection lasts while its client sends requests
// or answers pings.
func TestConnectionsWithoutRequestsEnd(t *testing.T) {
	t.Parallel()
	inEachRole(t, testConnectionsWithoutRequestsEnd)
}

func testConnectionsWithoutRequestsEnd(t *testing.T, role string) {
	t.Parallel()
	usual := "GET " + widgetsPath + "/w0 HTTP/1.1\r\nHost: steer\r\n\r\n"
	for name, c := range map[string]struct {
		http2 bool
		sent  string
		lasts time.Duration
	}{
		"HTTP/1.1, nothing sent":      {false, "", 10 * time.Second},
		"HTTP/1.1, half a header":     {false, usual[:40], 10 * time.Second},
		"HTTP/1.1, after a request":   {false, usual, 90 * time.Second},
		"HTTP/1.1, half of a second":  {false, usual + usual[:40], 10 * time.Second},
		"HTTP/2, nothing but preface": {true, http2.ClientPreface, 2 * time.Second},
		"HTTP/2, silent":              {true, http2.ClientPreface + "\x00\x00\x00\x04\x00\x00\x00\x00\x00", 45 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPiped(t, role, c.http2)
				conn, err := p.dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				begin := time.Now()
				go func() { _, _ = io.WriteString(conn, c.sent) }()
				if _, err := io.Copy(io.Discard, conn); err != nil {
					t.Fatal(err)
				}
				if lasted := time.Since(begin); lasted < c.lasts || lasted > c.lasts+5*time.Second {
					t.Errorf("the connection lasted %v, want %v", lasted, c.lasts)
				}
			})
		})
	}
}
