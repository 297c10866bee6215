// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// initialWindow is what either side may send before settings say otherwise.
const initialWindow = 65535

var (
	errClosed   = errors.New("http2: the connection is closed")
	errSilent   = errors.New("http2: the client does not answer")
	errPreface  = errors.New("http2: what came is not HTTP/2")
	errFinished = errors.New("http2: the connection has ended in order")
)

// connection is one connection. Its reader calls the methods that take frames;
// handlers those that take answers.
type connection struct {
	host    *host
	conn    net.Conn
	socket  *socket // nil when nothing holds back writes
	handler http.Handler
	ctx     context.Context
	cancel  context.CancelFunc
	// values is ctx without its end, of which streams are told by the connection:
	// to be told by ctx, each would enter and leave a set of ctx's.
	values context.Context

	tls    *tls.ConnectionState
	remote string
	// insecure tells that the cipher is not good enough.
	insecure bool

	framer  *http2.Framer
	input   *bufio.Reader
	source  source
	repeats repeats

	handlers sync.WaitGroup

	// mu guards what follows, and everything of streams that both the reader and
	// handlers use.
	mu      sync.Mutex
	streams map[uint32]*stream
	// last is the newest stream of the client.
	last uint32
	// running counts handlers, also those whose stream has been reset; waiting are
	// streams for which there was none.
	running int
	waiting []*stream
	// parked goroutines take their next stream from next.
	parked int
	next   chan *stream
	// room is how much may be sent on all streams; streamRoom what a new stream
	// begins with.
	room, streamRoom int64
	// allowed is how much the client may send on all streams; owed what has been
	// read and not yet been given back.
	allowed, owed int
	// begun tells that our settings are out, settled that the client's have come,
	// away that the client was asked to go, ending that nothing is left to do but
	// wait until it is gone.
	begun, settled, away, ending bool
	// idleSince is when the last stream ended.
	idleSince time.Time
	nuisance  nuisance
	out       output
	err       error // why the connection ended
}

func newConnection(ctx context.Context, h *host, conn net.Conn, handler http.Handler) *connection {
	c := &connection{
		host: h, conn: conn, handler: handler,
		streams: map[uint32]*stream{}, next: make(chan *stream, maxParked), idleSince: time.Now(),
		room: initialWindow, streamRoom: initialWindow, allowed: h.limits.connectionWindow,
	}
	c.ctx, c.cancel = context.WithCancel(ctx)
	c.values = context.WithoutCancel(c.ctx)
	c.source = source{c: c, heard: time.Now()}
	c.readFrom(bufio.NewReader(&c.source))
	c.out.init(&c.mu)
	return c
}

// readFrom says where frames come from.
func (c *connection) readFrom(input *bufio.Reader) {
	c.input = input
	c.framer = http2.NewFramer(nil, input)
	c.framer.SetMaxReadFrameSize(frameSize)
	c.framer.SetReuseFrames()
	c.framer.ReadMetaHeaders = hpack.NewDecoder(c.host.limits.table, nil)
	c.framer.MaxHeaderListSize = uint32(c.host.limits.headers)
}

// serve reads until the connection ends, and waits for its handlers.
func (c *connection) serve() {
	defer c.handlers.Wait()
	defer c.cancel()
	stop := context.AfterFunc(c.ctx, c.cancelStreams)
	err := c.begin()
	for err == nil {
		err = c.step()
	}
	stop()
	c.end(err)
}

// cancelStreams tells the handlers that the server's context has ended.
func (c *connection) cancelStreams() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, st := range c.streams {
		st.cancel()
	}
}

// begin exchanges the prefaces.
func (c *connection) begin() error {
	if c.insecure {
		return http2.ConnectionError(http2.ErrCodeInadequateSecurity)
	}
	l := &c.host.limits
	c.mu.Lock()
	c.out.settings(
		http2.Setting{ID: http2.SettingMaxFrameSize, Val: frameSize},
		http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: uint32(l.streams)},
		http2.Setting{ID: http2.SettingMaxHeaderListSize, Val: uint32(l.headers)},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: uint32(l.streamWindow)},
	)
	if more := l.connectionWindow - initialWindow; more > 0 {
		c.out.windowUpdate(0, more)
	}
	c.begun = true
	if c.away {
		c.out.goAway(0, http2.ErrCodeNo)
	}
	err := c.flush(nil)
	c.mu.Unlock()
	if err != nil {
		return err
	}
	if err := c.source.arm(time.Now()); err != nil {
		return err
	}
	preface := make([]byte, len(http2.ClientPreface))
	if _, err := io.ReadFull(c.input, preface); err != nil {
		return err
	}
	if string(preface) != http2.ClientPreface {
		return errPreface
	}
	return nil
}

// step reads one frame and does what it says.
func (c *connection) step() error {
	if err := c.answer(c.input.Buffered() == 0); err != nil {
		return err
	}
	took, err := c.usual()
	if !took {
		var frame http2.Frame
		if frame, err = c.framer.ReadFrame(); err == nil {
			err = c.take(frame)
		}
	}
	if e, ok := errors.AsType[http2.StreamError](err); ok {
		return c.refuse(e)
	}
	return err
}

// answer sends what the reader has to say, once there is nothing more to read or
// it has become much. A client that makes it talk and does not listen is not read
// from meanwhile.
func (c *connection) answer(now bool) error {
	const much = 4 << 10
	c.mu.Lock()
	defer c.mu.Unlock()
	if !now && len(c.out.pending) < much {
		return c.out.err
	}
	return c.flush(nil)
}

// refuse ends a stream that the client has got wrong.
func (c *connection) refuse(e http2.StreamError) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.nuisance.note(); err != nil {
		return err
	}
	c.last = max(c.last, e.StreamID)
	if st := c.streams[e.StreamID]; st != nil {
		c.drop(st, e)
	}
	c.out.reset(e.StreamID, e.Code)
	return nil
}

// goAway asks the client to send no more requests here. Those that it has sent
// are answered.
func (c *connection) goAway() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.away || c.err != nil {
		return
	}
	if c.away = true; !c.begun {
		return // begin says it
	}
	c.out.goAway(c.last, http2.ErrCodeNo)
	_ = c.flush(nil) // else there is nobody to tell
}

// finish lets the reader end once the last answer of a connection that goes away
// has been sent. Whoever ends a stream or a write calls it; c.mu is held.
func (c *connection) finish() {
	if c.away && !c.ending && len(c.streams) == 0 && !c.out.writing && len(c.out.pending) == 0 {
		c.ending = true
		_ = c.conn.SetReadDeadline(time.Now().Add(lingering)) // fails only if it is closed already
	}
}

// end closes everything, and tells the client why if it has to be told.
func (c *connection) end(err error) {
	c.mu.Lock()
	if code, ok := errors.AsType[http2.ConnectionError](err); ok {
		c.out.goAway(c.last, http2.ErrCode(code))
		_ = c.flush(nil) // it is closed either way
	} else if errors.Is(err, http2.ErrFrameTooLarge) {
		c.out.goAway(c.last, http2.ErrCodeFrameSize)
		_ = c.flush(nil)
	}
	c.fail(errors.Join(errClosed, err))
	c.mu.Unlock()
	c.cancel()
	c.linger(err)
	_ = c.conn.Close() // nobody is left to tell
}

// hangUp ends the reader. TLS would try to say goodbye, to a client that does not
// listen.
func (c *connection) hangUp() {
	beneath := c.conn
	if secured, ok := c.conn.(*tls.Conn); ok {
		beneath = secured.NetConn()
	}
	_ = beneath.Close() // nobody is left to tell
}

// linger waits until the client has read why it is turned away. Closing while
// something of it is unread would take that back.
func (c *connection) linger(err error) {
	_, wrong := errors.AsType[http2.ConnectionError](err)
	half, ok := c.conn.(interface{ CloseWrite() error })
	if !wrong || !ok || half.CloseWrite() != nil || c.conn.SetReadDeadline(time.Now().Add(lingering)) != nil {
		return
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(c.conn, 1<<20))
}

// fail ends all streams; c.mu is held.
func (c *connection) fail(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	for _, st := range c.streams {
		c.drop(st, err)
	}
	c.waiting = nil
	close(c.next)
	c.out.fail(err)
}
