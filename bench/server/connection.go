// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// How much a server may send before it has to wait for the client. These are
// the figures of Go's own client, which Kubernetes' clients use.
const (
	streamWindow     = 4 << 20
	connectionWindow = 1 << 30
)

// exchangeTimeout is how long an answer, or the next event of a watch, may take.
const exchangeTimeout = 60 * time.Second

// connection is HTTP/2 over TLS with one request at a time, on the goroutine of
// its user: no goroutines, no queues, and no more decoding than it takes to
// find the status and the end of the answer. A client that costs little
// measures the server. It is for one goroutine.
type connection struct {
	host   string
	conn   net.Conn
	out    *bufio.Writer
	framer *http2.Framer

	// encoder writes into headers; decoder finds status in what comes.
	encoder *hpack.Encoder
	decoder *hpack.Decoder
	headers writer
	status  int
	// warnings of the answer so far.
	warnings int

	stream uint32
	// owed is what was received and not yet given back to the windows of the
	// connection and of the stream.
	owedConnection, owedStream uint32
	// room is what may be sent before the server gives back some of its window.
	room, initialRoom, maxFrame int64
}

// writer is a buffer that hpack writes into.
type writer struct{ bytes []byte }

func (w *writer) Write(p []byte) (int, error) {
	w.bytes = append(w.bytes, p...)
	return len(p), nil
}

// dial connects and exchanges settings.
func dial(ctx context.Context, base string, secure *tls.Config) (*connection, error) {
	address, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	config := secure.Clone()
	config.NextProtos = []string{"h2"}
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address.Host)
	if err != nil {
		return nil, err
	}
	c := &connection{host: address.Host, conn: conn, out: bufio.NewWriterSize(conn, 16<<10), initialRoom: 65535, room: 65535, maxFrame: 16 << 10}
	c.framer = http2.NewFramer(c.out, bufio.NewReaderSize(conn, 32<<10))
	c.framer.SetReuseFrames()
	c.encoder = hpack.NewEncoder(&c.headers)
	c.decoder = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		switch f.Name {
		case ":status":
			c.status, _ = strconv.Atoi(f.Value) // the caller refuses 0
		case "warning":
			c.warnings++
		}
	})
	_, err = c.out.WriteString(http2.ClientPreface)
	err = errors.Join(err,
		c.framer.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: streamWindow}),
		c.framer.WriteWindowUpdate(0, connectionWindow-65535),
		c.out.Flush())
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return c, nil
}

// send begins an exchange.
func (c *connection) send(method, path, kind, accept, token string, body []byte) error {
	if err := c.conn.SetDeadline(time.Now().Add(exchangeTimeout)); err != nil {
		return err
	}
	if c.stream == 0 {
		c.stream = 1
	} else {
		c.stream += 2
	}
	c.owedStream, c.status, c.warnings = 0, 0, 0
	c.headers.bytes = c.headers.bytes[:0]
	field := func(name, value string) { _ = c.encoder.WriteField(hpack.HeaderField{Name: name, Value: value}) } // into memory
	field(":method", method)
	field(":scheme", "https")
	field(":authority", c.host)
	field(":path", path)
	field("user-agent", "bench")
	field("accept", accept)
	if token != "" {
		field("authorization", "Bearer "+token)
	}
	if kind != "" {
		field("content-type", kind)
	}
	if body != nil {
		field("content-length", strconv.Itoa(len(body)))
	}
	err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: c.stream, BlockFragment: c.headers.bytes, EndHeaders: true, EndStream: body == nil})
	if err != nil {
		return err
	}
	streamRoom := c.initialRoom
	for body != nil {
		n := min(int64(len(body)), c.maxFrame)
		if n > c.room || n > streamRoom {
			return fmt.Errorf("%s %s: the server takes only %d bytes at once", method, path, c.room)
		}
		c.room -= n
		streamRoom -= n
		last := int(n) == len(body)
		if err := c.framer.WriteData(c.stream, last, body[:n]); err != nil {
			return err
		}
		if body = body[n:]; last {
			break
		}
	}
	return c.out.Flush()
}

// receive returns the next piece of the answer, valid until the next call, and
// whether it was the last.
func (c *connection) receive() (piece []byte, last bool, err error) {
	for {
		frame, err := c.framer.ReadFrame()
		if err != nil {
			return nil, false, err
		}
		switch f := frame.(type) {
		case *http2.HeadersFrame:
			if !f.HeadersEnded() {
				return nil, false, errors.New("headers in more than one frame")
			}
			if _, err := c.decoder.Write(f.HeaderBlockFragment()); err != nil {
				return nil, false, err
			}
			if err := c.decoder.Close(); err != nil {
				return nil, false, err
			}
			if f.StreamID == c.stream {
				return nil, f.StreamEnded(), nil
			}
		case *http2.DataFrame:
			if err := c.giveBack(f); err != nil {
				return nil, false, err
			}
			if f.StreamID == c.stream {
				return f.Data(), f.StreamEnded(), nil
			}
		default:
			if err := c.control(frame); err != nil {
				return nil, false, err
			}
		}
	}
}

// giveBack lets the server send more once half of a window is used.
func (c *connection) giveBack(f *http2.DataFrame) error {
	n := f.Length
	c.owedConnection += n
	c.owedStream += n
	if c.owedStream > streamWindow/2 && !f.StreamEnded() {
		if err := c.framer.WriteWindowUpdate(f.StreamID, c.owedStream); err != nil {
			return err
		}
		c.owedStream = 0
		if err := c.out.Flush(); err != nil {
			return err
		}
	}
	if c.owedConnection > connectionWindow/2 {
		if err := c.framer.WriteWindowUpdate(0, c.owedConnection); err != nil {
			return err
		}
		c.owedConnection = 0
		return c.out.Flush()
	}
	return nil
}

// control answers what is not part of an answer.
func (c *connection) control(frame http2.Frame) error {
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return nil
		}
		if v, ok := f.Value(http2.SettingInitialWindowSize); ok {
			c.initialRoom = int64(v)
		}
		if v, ok := f.Value(http2.SettingMaxFrameSize); ok {
			c.maxFrame = int64(v)
		}
		if v, ok := f.Value(http2.SettingHeaderTableSize); ok {
			c.encoder.SetMaxDynamicTableSizeLimit(v)
		}
		return errors.Join(c.framer.WriteSettingsAck(), c.out.Flush())
	case *http2.PingFrame:
		if f.IsAck() {
			return nil
		}
		return errors.Join(c.framer.WritePing(true, f.Data), c.out.Flush())
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.room += int64(f.Increment)
		}
	case *http2.RSTStreamFrame:
		if f.StreamID == c.stream {
			return fmt.Errorf("the server gave up: %v", f.ErrCode)
		}
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server closes the connection: %v", f.ErrCode)
	}
	return nil
}

func (c *connection) close() error { return c.conn.Close() }
