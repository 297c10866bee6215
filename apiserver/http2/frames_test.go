// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// tape is a connection that plays what a client said and checks what it is told.
type tape struct {
	net.Conn
	in  *bytes.Reader
	out bytes.Buffer
}

func (c *tape) Read(p []byte) (int, error)       { return c.in.Read(p) }
func (c *tape) Write(p []byte) (int, error)      { return c.out.Write(p) }
func (c *tape) Close() error                     { return nil }
func (c *tape) SetReadDeadline(time.Time) error  { return nil }
func (c *tape) SetWriteDeadline(time.Time) error { return nil }

// FuzzFrames holds that whatever a client sends, the connection ends without panic
// when the client does, no handler is left, and everything sent was whole frames.
func FuzzFrames(f *testing.F) {
	var block, out bytes.Buffer
	encoder, framer := hpack.NewEncoder(&block), http2.NewFramer(&out, nil)
	framer.AllowIllegalWrites = true
	for _, pair := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", "/x"}, {"content-length", "3"}, {"trailer", "x"}} {
		if err := encoder.WriteField(hpack.HeaderField{Name: pair[0], Value: pair[1]}); err != nil {
			f.Fatal(err)
		}
	}
	seed := func(frames func() error) {
		out.Reset()
		if err := frames(); err != nil {
			f.Fatal(err)
		}
		f.Add(bytes.Clone(out.Bytes()))
	}
	headers := func(id uint32, ended bool) error {
		return framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: ended})
	}
	seed(func() error {
		_ = framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 0})
		_ = headers(1, false)
		_ = framer.WriteData(1, true, []byte("abc"))
		_ = framer.WriteWindowUpdate(1, 100)
		_ = framer.WritePing(false, [8]byte{})
		return framer.WriteGoAway(0, 0, nil)
	})
	seed(func() error {
		_ = framer.WriteSettings()
		_ = headers(1, false)
		_ = headers(3, false)
		_ = framer.WriteRSTStream(1, http2.ErrCodeCancel)
		_ = framer.WriteDataPadded(3, false, []byte("ab"), []byte{0, 0})
		_ = headers(3, true)
		_ = framer.WritePriority(5, http2.PriorityParam{StreamDep: 5})
		return headers(5, true)
	})
	f.Fuzz(func(t *testing.T, frames []byte) {
		server := &http.Server{ErrorLog: nil}
		h := &host{server: server, limits: limitsOf(server), connections: map[*connection]struct{}{}}
		h.limits.stall = 0
		h.buffers.New = func() any { return new(payload) }
		conn := &tape{in: bytes.NewReader(append([]byte(http2.ClientPreface), frames...))}
		c := newConnection(context.Background(), h, conn, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
			_, _ = io.WriteString(w, r.URL.Path)
		}))
		c.serve()
		if c.running != 0 || len(c.streams) != 0 {
			t.Errorf("%d handlers and %d streams are left", c.running, len(c.streams))
		}
		sent := http2.NewFramer(nil, &conn.out)
		sent.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
		for {
			if _, err := sent.ReadFrame(); err == io.EOF { //nolint:errorlint // it ends at a frame's end
				break
			} else if err != nil {
				t.Fatalf("what was sent is not whole frames: %v", err)
			}
		}
	})
}

// TestPayloadsAreCutIntoFrames holds that however a payload is written and cut, the
// frames carry it whole.
func TestPayloadsAreCutIntoFrames(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 9, frameSize - headerSize, frameSize - headerSize + 1, 2 * frameSize, 5*frameSize + 7} {
		for _, step := range []int{1 << 20, frameSize, frameSize - headerSize, 10_007, 100, 8} {
			body := make([]byte, size)
			for i := range body {
				body[i] = byte(i * 7)
			}
			var p payload
			for rest := body; len(rest) > 0; {
				n := min(len(rest), step+3)
				p.write(rest[:n])
				rest = rest[n:]
			}
			var wire, got bytes.Buffer
			for rest := p.rest(); rest > 0; rest = p.rest() {
				n := min(rest, step)
				wire.Write(p.cut(5, n, n == rest))
			}
			framer, ended := http2.NewFramer(nil, &wire), false
			for !ended {
				f, err := framer.ReadFrame()
				if err != nil {
					t.Fatalf("%d by %d: %v", size, step, err)
				}
				data := f.(*http2.DataFrame)
				got.Write(data.Data())
				ended = data.StreamEnded()
			}
			if !bytes.Equal(got.Bytes(), body) || wire.Len() > 0 {
				t.Errorf("%d by %d: got %d bytes, %d more after the end", size, step, got.Len(), wire.Len())
			}
		}
	}
}
