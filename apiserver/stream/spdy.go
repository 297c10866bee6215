// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/spdystream"
	"github.com/moby/spdystream/spdy"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/steer-dev/steer/apiserver/internal/exchange"
)

// Headers of an upgrade to SPDY and of its streams.
const (
	versionHeader    = "X-Stream-Protocol-Version"
	acceptedHeader   = "X-Accepted-Stream-Protocol-Versions"
	streamTypeHeader = "Streamtype"
)

// creationTimeout is how long a client has to open the streams of a command.
const creationTimeout = 30 * time.Second

// maxStreams bounds the streams of one connection: 256 forwarded connections at once.
const maxStreams = 512

// upgradeSPDY takes over the connection of a request for SPDY with a protocol. conn is nil
// if the request was answered with an error.
func upgradeSPDY(w http.ResponseWriter, r *http.Request, protocol string) (conn net.Conn) {
	var asked []string
	for _, value := range r.Header.Values(versionHeader) {
		for p := range strings.SplitSeq(value, ",") {
			asked = append(asked, strings.TrimSpace(p))
		}
	}
	if !slices.Contains(asked, protocol) {
		w.Header().Set(acceptedHeader, protocol)
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "unable to upgrade: the client supports "+strings.Join(asked, ", ")+", the server "+protocol)
		return nil
	}
	hijackable, ok := exchange.Hijackable(w)
	if !ok {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, "this connection cannot be upgraded: use HTTP/1.1, over a socket")
		return nil
	}
	conn, buffered, err := hijackable.(http.Hijacker).Hijack()
	if err != nil {
		refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "unable to upgrade: "+err.Error())
		return nil
	}
	head := "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n" + versionHeader + ": " + protocol + "\r\n\r\n"
	_ = conn.SetDeadline(time.Time{}) // the write below fails if the connection is gone
	if _, err := io.WriteString(conn, head); err != nil {
		_ = conn.Close() // already broken
		return nil
	}
	return &readAhead{Conn: conn, buffered: buffered.Reader}
}

// readAhead is a connection of which a part was read already.
type readAhead struct {
	net.Conn
	buffered io.Reader
}

// Read implements [net.Conn].
func (c *readAhead) Read(p []byte) (int, error) { return c.buffered.Read(p) }

// spdySession is a connection of SPDY that clients open streams on.
type spdySession struct {
	conn *spdystream.Connection
	net  net.Conn
	// gone is done when the client has closed the connection, or the server ends it.
	gone    context.Context
	cancel  context.CancelFunc
	ended   chan struct{} // no goroutine of the connection is left
	mu      sync.Mutex
	ending  bool // no stream is accepted any more
	streams []*spdystream.Stream
}

// serveSPDY serves a connection until the client closes it or ctx ends. accept is called
// for each stream and must not block; a stream that it does not want is refused. Of the
// headers of a stream those with the names in keep are kept.
func serveSPDY(ctx context.Context, conn net.Conn, keep []string, accept func(s *spdystream.Stream) bool) (*spdySession, error) {
	gone, cancel := context.WithCancel(ctx)
	bounded := newFrames(conn, gone.Done())
	spdy, err := spdystream.NewConnectionWithOptions(bounded, true,
		spdy.WithMaxControlFramePayloadSize(maxControl), spdy.WithMaxHeaderCount(maxHeaders), spdy.WithMaxHeaderFieldSize(maxHeader))
	if err != nil {
		cancel()
		return nil, err
	}
	s := &spdySession{conn: spdy, net: conn, gone: gone, cancel: cancel, ended: make(chan struct{})}
	context.AfterFunc(gone, func() { _ = conn.Close() }) // it may be closed already
	go func() {
		defer cancel()
		<-spdy.CloseChan()
	}()
	go func() {
		defer close(s.ended)
		spdy.Serve(func(stream *spdystream.Stream) {
			maps.DeleteFunc(stream.Headers(), func(name string, values []string) bool {
				return len(values) != 1 || !slices.Contains(keep, name)
			})
			bounded.opened()
			if !s.add(stream, accept) || stream.SendReply(http.Header{}, false) != nil {
				_ = stream.Reset() // forgets it; the connection may be gone
			}
		})
	}()
	return s, nil
}

// add takes a stream if it is wanted and there is a place for it.
func (s *spdySession) add(stream *spdystream.Stream, accept func(*spdystream.Stream) bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending || len(s.streams) >= maxStreams || !accept(stream) {
		return false
	}
	s.streams = append(s.streams, stream)
	return true
}

// forget releases the places of streams that have ended.
func (s *spdySession) forget(streams ...*spdystream.Stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams = slices.DeleteFunc(s.streams, func(one *spdystream.Stream) bool { return slices.Contains(streams, one) })
}

// probe writes an empty frame of data to one of the streams: a client that is gone is
// noticed by it while its input, which is not read, stands before its end.
func (s *spdySession) probe() error {
	s.mu.Lock()
	streams := s.streams[:min(1, len(s.streams))]
	s.mu.Unlock()
	for _, one := range streams {
		return one.WriteData(nil, false)
	}
	return nil
}

// end closes the connection and returns when nothing of it is left.
func (s *spdySession) end() {
	s.cancel()
	_ = s.net.Close() // it may be closed already
	s.mu.Lock()
	s.ending = true
	left := slices.Clone(s.streams)
	s.mu.Unlock()
	for _, stream := range left {
		_ = stream.Reset() // frees what waits for a reader
	}
	<-s.ended
}

// commandOverSPDY runs a command over SPDY.
func commandOverSPDY(ctx context.Context, w http.ResponseWriter, h *http.Request, o Options, run func(context.Context, *Session) metav1.Status) {
	conn := upgradeSPDY(w, h, protocolV4)
	if conn == nil {
		return
	}
	defer func() { _ = conn.Close() }() // it may be closed already
	want := map[string]bool{"error": true, "stdin": o.Stdin, "stdout": o.Stdout, "stderr": o.Stderr, "resize": o.TTY}
	count := 0
	for _, wanted := range want {
		if wanted {
			count++
		}
	}
	opened := make(chan *spdystream.Stream, count)
	spdy, err := serveSPDY(ctx, conn, []string{streamTypeHeader}, func(s *spdystream.Stream) bool {
		name := s.Headers().Get(streamTypeHeader)
		if !want[name] {
			return false
		}
		want[name] = false // each one once
		opened <- s
		return true
	})
	if err != nil {
		return
	}
	session := &Session{gone: spdy.gone.Done()}
	defer session.copying.Wait()
	defer spdy.end()
	defer watch(spdy.gone, spdy.cancel, spdy.probe)()
	streams := collect(spdy.gone, opened, count)
	if streams == nil {
		return
	}
	if s := streams["stdin"]; s != nil {
		session.Stdin = s
	}
	if s := streams["stdout"]; s != nil {
		session.Stdout = s
	}
	if s := streams["stderr"]; s != nil {
		session.Stderr = s
	}
	if s := streams["resize"]; s != nil {
		session.Resize = sizes(s)
	}
	encoded, _ := json.Marshal(run(spdy.gone, session)) // a Status always encodes
	_ = conn.SetDeadline(time.Now().Add(closeTimeout))
	_, _ = streams["error"].Write(encoded) // the client may be gone
	for _, s := range streams {
		_ = s.Close() // as above
	}
	<-spdy.gone.Done() // the client has taken everything and closes, or the deadline ends
}

// collect returns the streams of a command by their names, nil if the client does not open
// all of them.
func collect(ctx context.Context, opened <-chan *spdystream.Stream, count int) map[string]*spdystream.Stream {
	timeout := time.NewTimer(creationTimeout)
	defer timeout.Stop()
	streams := map[string]*spdystream.Stream{}
	for len(streams) < count {
		select {
		case s := <-opened:
			streams[s.Headers().Get(streamTypeHeader)] = s
		case <-timeout.C:
			return nil
		case <-ctx.Done():
			return nil
		}
	}
	return streams
}
