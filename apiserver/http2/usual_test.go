// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package http2

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// played are the requests that handlers saw of what a client sent, and why the
// connection ended.
func played(frames []byte, usual bool) string {
	server := &http.Server{}
	h := &host{server: server, limits: limitsOf(server), connections: map[*connection]struct{}{}}
	h.limits.stall = 0
	h.buffers.New = func() any { return new(payload) }
	var mu sync.Mutex
	var seen []string
	conn := &tape{in: bytes.NewReader(append([]byte(http2.ClientPreface), frames...))}
	c := newConnection(context.Background(), h, conn, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, fmt.Sprintf("%s %s %q %s %d %q %q", r.Method, r.RequestURI, r.URL, r.Host, r.ContentLength, r.Header, r.Trailer))
		r.Header.Del("Authorization") // handlers may do as they like with what is theirs
		for _, values := range r.Header {
			values[0] += "!"
		}
	}))
	if !usual {
		c.readFrom(bufio.NewReaderSize(&c.source, 16)) // no room for a frame
	}
	c.serve()
	slices.Sort(seen)
	return fmt.Sprintf("%q\n%v", seen, c.err)
}

// repeating returns frames of a client that asks again and again.
func repeating(tb testing.TB) [][]byte {
	tb.Helper()
	var block, out bytes.Buffer
	encoder, framer := hpack.NewEncoder(&block), http2.NewFramer(&out, nil)
	framer.AllowIllegalWrites = true
	var all [][]byte
	begin := func() {
		out.Reset()
		encoder = hpack.NewEncoder(&block)
		_ = framer.WriteSettings()
	}
	ask := func(id uint32, ended bool, pairs ...string) {
		block.Reset()
		for pairs := slices.Collect(slices.Chunk(append([]string{":method", "POST", ":scheme", "https"}, pairs...), 2)); len(pairs) > 0; pairs = pairs[1:] {
			if err := encoder.WriteField(hpack.HeaderField{Name: pairs[0][0], Value: pairs[0][1]}); err != nil {
				tb.Fatal(err)
			}
		}
		_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: ended})
	}
	end := func() { all = append(all, bytes.Clone(out.Bytes())) }

	begin()
	for id := uint32(1); id < 12; id += 2 { // the same three times, then another, and the first again
		pairs := []string{":path", "/x?a=b", ":authority", "h", "authorization", "Bearer y", "content-length", "3", "cookie", "a", "cookie", "b"}
		if id == 7 {
			pairs[1] = "/y"
		}
		ask(id, false, pairs...)
		_ = framer.WriteData(id, true, []byte("abc"))
	}
	end()
	begin()
	for id := uint32(1); id < 8; id += 2 {
		ask(id, id == 5, ":path", "/x", "expect", "100-continue", "trailer", "x-sum", "te", "trailers")
		_ = framer.WriteDataPadded(id, false, []byte("abc"), []byte{0})
		ask(id, true) // trailers with pseudo headers
	}
	end()
	begin()
	for id := uint32(1); id < 8; id += 2 { // a length and no body, and a stream that went before
		ask(id, true, ":path", "/x", "content-length", "3")
		ask(1, true, ":path", "/x", "content-length", "3")
	}
	end()
	begin()
	ask(1, true, ":path", "/x", "connection", "close")
	ask(3, true, ":path", "/x", "connection", "close")
	encoder.SetMaxDynamicTableSize(0)
	ask(5, true, ":path", "/x", "connection", "close")
	ask(4, true, ":path", "/x")
	end()
	begin()
	ask(1, true, ":path", "/x", "a", "b")
	ask(3, true, ":path", "/x", "a", "b")
	_ = framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 5, BlockFragment: []byte{0x80}, EndHeaders: true}) // refers to nothing
	end()
	return all
}

// TestUsualFramesAreKnown holds that a request that comes again is not decoded
// again, and that the handlers see of it what they would see otherwise.
func TestUsualFramesAreKnown(t *testing.T) {
	t.Parallel()
	for i, frames := range repeating(t) {
		if got, want := played(frames, true), played(frames, false); got != want {
			t.Errorf("%d:\n got %s\nwant %s", i, got, want)
		}
	}
	var r repeats
	block := []byte{0x82, 0x86, 0xbe}
	for range 2 {
		r.candidate = r.candidate[:0]
		if r.find(block) != nil {
			t.Fatal("a block is known that nobody remembered")
		}
		if r.remember(&head{}); r.find(block) == nil {
			t.Fatal("a block is not known that has come before")
		}
		r.candidate = r.candidate[:0]
		if r.find([]byte{0x40, 1, 'a', 1, 'b'}) != nil || r.find(block) != nil {
			t.Fatal("a block is known although the table may have changed")
		}
	}
}

// FuzzUsualFrames holds that whatever a client sends, the handlers see the same
// requests, and the connection ends for the same reason, with and without the way
// of usual frames.
func FuzzUsualFrames(f *testing.F) {
	for _, frames := range repeating(f) {
		f.Add(frames)
	}
	f.Fuzz(func(t *testing.T, frames []byte) {
		if got, want := played(frames, true), played(frames, false); got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
	})
}
