// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	wire "golang.org/x/net/http2"
)

// TestWrongFramesEndTheConnection holds that what no client may send is answered
// with the error that RFC 9113 asks for.
func TestWrongFramesEndTheConnection(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	for name, c := range map[string]struct {
		send func(*peer)
		want wire.ErrCode
	}{
		"headers on stream 2":            {func(p *peer) { p.ask(2, "GET", "/", true) }, wire.ErrCodeProtocol},
		"data on a stream never begun":   {func(p *peer) { _ = p.framer.WriteData(9, true, []byte("x")) }, wire.ErrCodeProtocol},
		"window of a stream never begun": {func(p *peer) { _ = p.framer.WriteWindowUpdate(9, 1) }, wire.ErrCodeProtocol},
		"reset of a stream never begun":  {func(p *peer) { _ = p.framer.WriteRSTStream(9, 0) }, wire.ErrCodeProtocol},
		"window too large":               {func(p *peer) { _ = p.framer.WriteWindowUpdate(0, 1<<31-1) }, wire.ErrCodeFlowControl},
		"window of nothing":              {func(p *peer) { _ = p.framer.WriteWindowUpdate(0, 0) }, wire.ErrCodeProtocol},
		"push": {func(p *peer) {
			_ = p.framer.WritePushPromise(wire.PushPromiseParam{StreamID: 1, PromiseID: 2, EndHeaders: true})
		}, wire.ErrCodeProtocol},
		"settings with a frame too small": {func(p *peer) { _ = p.framer.WriteSettings(wire.Setting{ID: wire.SettingMaxFrameSize, Val: 1}) }, wire.ErrCodeProtocol},
		"settings of a bad window": {func(p *peer) {
			_ = p.framer.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1 << 31})
		}, wire.ErrCodeFlowControl},
		"a frame too large": {func(p *peer) { _ = p.framer.WriteRawFrame(wire.FrameData, 0, 1, make([]byte, 16385)) }, wire.ErrCodeFrameSize},
		"a ping of 7 bytes": {func(p *peer) { _ = p.framer.WriteRawFrame(wire.FramePing, 0, 0, make([]byte, 7)) }, wire.ErrCodeFrameSize},
		"compression that makes no sense": {func(p *peer) {
			_ = p.framer.WriteRawFrame(wire.FrameHeaders, wire.FlagHeadersEndHeaders, 1, []byte{0xff, 0xff, 0xff, 0xff})
		}, wire.ErrCodeCompression},
		"a continuation of nothing": {func(p *peer) { _ = p.framer.WriteContinuation(1, true, nil) }, wire.ErrCodeProtocol},
		"something among the headers": {func(p *peer) {
			_ = p.framer.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: p.headers(":method", "GET")})
			_ = p.framer.WritePing(false, [8]byte{})
		}, wire.ErrCodeProtocol},
		"headers without end": {func(p *peer) {
			_ = p.framer.WriteHeaders(wire.HeadersFrameParam{StreamID: 1, BlockFragment: p.headers(":method", "GET")})
			for range 400 {
				_ = p.framer.WriteContinuation(1, false, p.headers("x", strings.Repeat("y", 12_000)))
			}
		}, wire.ErrCodeProtocol},
		"more body than all windows": {func(p *peer) {
			for id := range uint32(2) {
				p.ask(2*id+1, "POST", "/", false)
				for range 60 {
					_ = p.framer.WriteData(2*id+1, false, make([]byte, 16_000))
				}
			}
		}, wire.ErrCodeFlowControl},
		"pings": {func(p *peer) {
			for range 10_001 {
				_ = p.framer.WritePing(false, [8]byte{})
			}
		}, wire.ErrCodeEnhanceYourCalm},
		"settings again and again": {func(p *peer) {
			for range 10_001 {
				_ = p.framer.WriteSettings()
			}
		}, wire.ErrCodeEnhanceYourCalm},
		"data of nothing": {func(p *peer) {
			p.ask(1, "POST", "/", false)
			for range 10_001 {
				_ = p.framer.WriteData(1, false, nil)
			}
		}, wire.ErrCodeEnhanceYourCalm},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := s.greet(t)
			// What it says at the end has to be read while the rest is sent.
			go func() {
				c.send(p)
				_, _ = p.conn.Write(p.out.Bytes())
			}()
			if got := p.farewell(); got != c.want {
				t.Errorf("the server said %v, want %v", got, c.want)
			}
		})
	}
}

// TestWrongRequestsEndTheirStreamAlone holds the same for what only spoils one
// request.
func TestWrongRequestsEndTheirStreamAlone(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		_, _ = io.WriteString(w, "ok")
	}, func(s *http.Server) { s.MaxHeaderBytes = 8 << 10 })
	headers := func(p *peer, id uint32, ended bool, pairs ...string) {
		_ = p.framer.WriteHeaders(wire.HeadersFrameParam{StreamID: id, BlockFragment: p.headers(pairs...), EndHeaders: true, EndStream: ended})
	}
	p := s.greet(t)
	id := uint32(1)
	for _, c := range []struct {
		name   string
		send   func(id uint32)
		status int
		want   wire.ErrCode
	}{
		{"no path", func(id uint32) { headers(p, id, true, ":method", "GET", ":scheme", "https") }, 0, wire.ErrCodeProtocol},
		{"a path that is none", func(id uint32) { p.ask(id, "GET", "x y", true) }, 0, wire.ErrCodeProtocol},
		{"an unknown scheme", func(id uint32) { headers(p, id, true, ":method", "GET", ":scheme", "ftp", ":path", "/") }, 0, wire.ErrCodeProtocol},
		{"an unknown pseudo header", func(id uint32) { p.ask(id, "GET", "/", true, ":x", "y") }, 0, wire.ErrCodeProtocol},
		{"upper case", func(id uint32) { p.ask(id, "GET", "/", true, "X-Upper", "y") }, 0, wire.ErrCodeProtocol},
		{"connection headers", func(id uint32) { p.ask(id, "GET", "/", true, "connection", "close") }, 400, 0},
		{"te", func(id uint32) { p.ask(id, "GET", "/", true, "te", "gzip") }, 400, 0},
		{"a large header", func(id uint32) {
			p.ask(id, "GET", "/", true, "x", strings.Repeat("y", 5000), "z", strings.Repeat("y", 5000))
		}, 431, 0},
		{"a length that is none", func(id uint32) { p.ask(id, "POST", "/", false, "content-length", "-1") }, 0, wire.ErrCodeProtocol},
		{"two lengths", func(id uint32) { p.ask(id, "POST", "/", false, "content-length", "1", "content-length", "2") }, 0, wire.ErrCodeProtocol},
		{"a length and no body", func(id uint32) { p.ask(id, "POST", "/", true, "content-length", "1") }, 0, wire.ErrCodeProtocol},
		{"more than declared", func(id uint32) {
			p.ask(id, "POST", "/", false, "content-length", "1")
			_ = p.framer.WriteData(id, true, []byte("xy"))
		}, 0, wire.ErrCodeProtocol},
		{"less than declared", func(id uint32) {
			p.ask(id, "POST", "/", false, "content-length", "3")
			_ = p.framer.WriteData(id, true, []byte("xy"))
		}, 0, wire.ErrCodeProtocol},
		{"trailers that do not end", func(id uint32) {
			p.ask(id, "POST", "/", false)
			headers(p, id, false, "x", "y")
		}, 0, wire.ErrCodeProtocol},
		{"a priority over itself", func(id uint32) {
			_ = p.framer.WriteHeaders(wire.HeadersFrameParam{StreamID: id, EndHeaders: true, EndStream: true, Priority: wire.PriorityParam{StreamDep: id},
				BlockFragment: p.headers(":method", "GET", ":scheme", "https", ":path", "/")})
		}, 0, wire.ErrCodeProtocol},
		{"window too large", func(id uint32) {
			p.ask(id, "POST", "/", false)
			_ = p.framer.WriteWindowUpdate(id, 1<<31-1)
		}, 0, wire.ErrCodeFlowControl},
		{"padding", func(id uint32) {
			p.ask(id, "POST", "/", false, "content-length", "2")
			_ = p.framer.WriteDataPadded(id, true, []byte("xy"), make([]byte, 200))
		}, 200, 0},
		{"nothing wrong", func(id uint32) { p.ask(id, "GET", "/", true) }, 200, 0},
	} {
		p.send(func() { c.send(id) })
		if status, _, code := p.answer(id); code != c.want || status != c.status {
			t.Errorf("%s: %d, %v, want %d, %v", c.name, status, code, c.status, c.want)
		}
		id += 2
	}
}

func TestLateFramesAreNoError(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
	p := s.greet(t)
	p.send(func() { p.ask(1, "POST", "/", false) })
	if status, _, _ := p.answer(1); status != 200 {
		t.Error(status)
	}
	p.send(func() {
		_ = p.framer.WriteWindowUpdate(1, 10)
		_ = p.framer.WriteData(1, true, []byte("nobody reads this"))
		_ = p.framer.WriteRSTStream(1, 0)
		_ = p.framer.WritePriority(99, wire.PriorityParam{})
		_ = p.framer.WriteRawFrame(0x77, 0, 5, []byte("an extension"))
		p.ask(3, "GET", "/", true)
	})
	if status, _, _ := p.answer(3); status != 200 {
		t.Error(status)
	}
}

func TestWhatIsNotHTTP2IsHungUpOn(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {})
	p := s.dial(t)
	p.send(func() { p.out.WriteString("GET / HTTP/1.1\r\nHost: example.com\r\n\r\n") })
	p.farewell()
	p = s.dial(t)
	p.send(func() {
		p.out.WriteString(wire.ClientPreface)
		_ = p.framer.WritePing(false, [8]byte{})
	})
	if got := p.farewell(); got != wire.ErrCodeProtocol {
		t.Errorf("a ping before settings: %v", got)
	}
}

// TestResetStreamsStillCount holds that a client that resets its requests cannot
// make more handlers run than it may have streams, nor leave many behind.
func TestResetStreamsStillCount(t *testing.T) {
	t.Parallel()
	const streams = 10
	var running, most, all atomic.Int64
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) {
		all.Add(1)
		if n := running.Add(1); n > most.Load() {
			most.Store(n)
		}
		<-release // it does not look at its context
		running.Add(-1)
	}, func(s *http.Server) { s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams} })
	p := s.greet(t)
	id := uint32(1)
	p.send(func() {
		for range 5 * streams {
			p.ask(id, "GET", "/", true)
			_ = p.framer.WriteRSTStream(id, wire.ErrCodeCancel)
			id += 2
		}
		p.ask(id, "GET", "/", true)
	})
	if got := p.farewell(); got != wire.ErrCodeEnhanceYourCalm {
		t.Errorf("the server said %v", got)
	}
	close(release)
	if most.Load() > streams {
		t.Errorf("%d handlers ran at once, %d may", most.Load(), streams)
	}

	s = serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(s *http.Server) {
		s.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: streams}
	})
	p = s.greet(t)
	p.send(func() {
		for id := range uint32(streams + 1) {
			p.ask(2*id+1, "POST", "/", false)
		}
	})
	if _, _, code := p.answer(2*streams + 1); code != wire.ErrCodeRefusedStream {
		t.Errorf("one stream too many: %v", code)
	}
}

// TestWhoDoesNotReadHoldsUpNobodyElse holds that a stream whose window is used up
// waits alone, goes on when there is room, and ends when it is reset.
func TestWhoDoesNotReadHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	large := bytes.Repeat([]byte("x"), 100_000)
	wrote := make(chan error, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/large" {
			_, err := w.Write(large)
			if err == nil {
				err = http.NewResponseController(w).Flush()
			}
			wrote <- err
		}
	})
	p := s.greet(t, wire.Setting{ID: wire.SettingInitialWindowSize, Val: 10})
	p.send(func() { p.ask(1, "GET", "/large", true) })
	got := 0
	for got < 10 {
		if f, ok := p.next().(*wire.DataFrame); ok {
			got += len(f.Data())
		}
	}
	p.send(func() { p.ask(3, "GET", "/", true) })
	if status, _, _ := p.answer(3); status != 200 {
		t.Error(status)
	}
	// A larger window for all, then for this one and for the connection.
	p.send(func() { _ = p.framer.WriteSettings(wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1000}) })
	for got < 1000 {
		if f, ok := p.next().(*wire.DataFrame); ok {
			got += len(f.Data())
		}
	}
	p.send(func() {
		_ = p.framer.WriteWindowUpdate(1, 1<<20)
		_ = p.framer.WriteWindowUpdate(0, 1<<20)
	})
	_, rest, code := p.answer(1)
	if err := <-wrote; err != nil || code != 0 || got+len(rest) != len(large) {
		t.Errorf("%v, %v: %d and %d bytes of %d", err, code, got, len(rest), len(large))
	}
	p.send(func() { p.ask(5, "GET", "/large", true) })
	for {
		if f, ok := p.next().(*wire.DataFrame); ok && f.StreamID == 5 {
			break
		}
	}
	p.send(func() { _ = p.framer.WriteRSTStream(5, wire.ErrCodeCancel) })
	if err := <-wrote; err == nil {
		t.Error("a write to a stream that was reset succeeded")
	}
}

// TestWhoNeverReadsIsCutOff holds that a client that does not empty its socket
// loses its connection, and with it all that waits for it.
func TestWhoNeverReadsIsCutOff(t *testing.T) {
	t.Parallel()
	wrote := make(chan error, 1)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for {
			if _, err := w.Write(make([]byte, 1<<20)); err != nil {
				wrote <- err
				return
			}
		}
	}, func(s *http.Server) { s.HTTP2 = &http.HTTP2Config{WriteByteTimeout: 50 * time.Millisecond} })
	p := s.greet(t, wire.Setting{ID: wire.SettingInitialWindowSize, Val: 1<<31 - 1})
	p.send(func() {
		_ = p.framer.WriteWindowUpdate(0, 1<<30)
		p.ask(1, "GET", "/", true)
	})
	select {
	case <-wrote:
	case <-time.After(time.Minute):
		t.Error("it still waits")
	}
}

// patient is what a server waits where the client of a test, on a machine that is
// slow for a while, has to be faster.
const patient = 10 * time.Second

func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	s := serve(t, func(http.ResponseWriter, *http.Request) {}, func(s *http.Server) { s.IdleTimeout = patient })
	p := s.greet(t)
	p.send(func() { p.ask(1, "GET", "/", true) })
	p.answer(1)
	if got := p.farewell(); got != wire.ErrCodeNo {
		t.Errorf("the server said %v", got)
	}
}

func TestConnectionsThatNeverSayWhatTheyAreAreClosed(t *testing.T) {
	t.Parallel()
	// The handshake has to be over by then, too.
	s := serve(t, func(http.ResponseWriter, *http.Request) {}, func(s *http.Server) { s.ReadHeaderTimeout = patient })
	s.dial(t).farewell()
}

func TestSilentClientsAreAskedWhetherTheyLive(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, func(s *http.Server) {
		s.HTTP2 = &http.HTTP2Config{SendPingTimeout: 20 * time.Millisecond, PingTimeout: patient / 2}
	})
	p := s.greet(t)
	p.send(func() { p.ask(1, "GET", "/", true) })
	for asked := 0; asked < 2; {
		f, ok := p.next().(*wire.PingFrame)
		if !ok {
			continue
		}
		asked++
		p.send(func() { _ = p.framer.WritePing(true, f.Data) })
	}
	p.farewell() // it does not answer the next one
}

func TestShutdownLetsRequestsEnd(t *testing.T) {
	t.Parallel()
	begun, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		close(begun)
		<-release
		_, _ = w.Write(bytes.Repeat([]byte("x"), 50_000))
	})
	idle := s.greet(t)
	p := s.greet(t)
	p.send(func() { p.ask(1, "GET", "/", true) })
	<-begun
	done := make(chan error, 1)
	go func() { done <- s.server.Shutdown(context.Background()) }()
	if got := idle.farewell(); got != wire.ErrCodeNo {
		t.Errorf("the server said %v", got)
	}
	for {
		if f, ok := p.next().(*wire.GoAwayFrame); ok {
			if f.LastStreamID != 1 || f.ErrCode != wire.ErrCodeNo {
				t.Errorf("%v", f)
			}
			break
		}
	}
	p.send(func() { p.ask(3, "GET", "/", true) }) // nobody answers
	close(release)
	if status, body, code := p.answer(1); status != 200 || len(body) != 50_000 || code != 0 {
		t.Errorf("%d, %d bytes, %v", status, len(body), code)
	}
	p.farewell()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan struct{})
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		_, err := r.Body.Read(make([]byte, 1))
		if err == nil || errors.Is(err, io.EOF) {
			t.Error(err)
		}
		<-r.Context().Done()
		close(ended)
	})
	p := s.greet(t)
	p.send(func() { p.ask(1, "POST", "/", false) })
	<-begun
	if err := s.server.Close(); err != nil {
		t.Error(err)
	}
	<-ended
	p.farewell()
}
