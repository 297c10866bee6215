// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package frame_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/steer-dev/steer/storage/internal/frame"
)

var header = frame.Header{Kind: frame.Log, First: 7, Salt: 0x1234567890}

// file returns a file of payloads, numbered from 1, and their offsets.
func file(h frame.Header, payloads ...string) (b []byte, offsets []int) {
	b = h.Append(nil)
	for i, p := range payloads {
		offsets = append(offsets, len(b))
		start := len(b)
		var err error
		if b, err = h.End(append(frame.Begin(b), p...), start, uint64(i+1)); err != nil {
			panic(err)
		}
	}
	return b, offsets
}

func TestFramesComeBackInOrder(t *testing.T) {
	t.Parallel()
	payloads := []string{"a", "12345678", "123456789", string(make([]byte, 200<<10))}
	b, offsets := file(header, append(payloads, "")...)
	r, err := frame.NewReader(bytes.NewReader(b), frame.Log)
	if err != nil || r.Header != header {
		t.Fatalf("got %v, %v", r, err)
	}
	for i, want := range payloads {
		if r.Offset != int64(offsets[i]) || r.Offset%8 != 0 {
			t.Fatalf("frame %d is at %d, want %d", i, r.Offset, offsets[i])
		}
		number, payload, err := r.Next()
		if err != nil || number != uint64(i+1) || string(payload) != want {
			t.Fatalf("frame %d: got number %d, %d bytes, %v", i, number, len(payload), err)
		}
	}
	if number, _, err := r.Next(); !errors.Is(err, frame.ErrEnd) || number != 5 {
		t.Fatalf("got number %d, %v, want the end", number, err)
	}
}

// A larger frame would be written, acknowledged, and taken for damage when it is read.
func TestFramesLargerThanReadersAcceptAreRefused(t *testing.T) {
	t.Parallel()
	largest := frame.Begin(header.Append(nil))
	largest = append(largest, make([]byte, frame.MaxPayload)...)
	b, err := header.End(largest, frame.HeaderSize, 1)
	if err != nil {
		t.Fatal(err)
	}
	r, err := frame.NewReader(bytes.NewReader(b), frame.Log)
	if err != nil {
		t.Fatal(err)
	}
	if _, payload, err := r.Next(); err != nil || len(payload) != frame.MaxPayload {
		t.Errorf("read %d bytes, %v", len(payload), err)
	}
	_, err = header.End(append(largest, 0), frame.HeaderSize, 1)
	if _, ok := errors.AsType[frame.TooLargeError](err); !ok {
		t.Errorf("one byte more: got error %v, want a TooLargeError", err)
	}
}

func TestReaderDistinguishesTheEndsOfAFile(t *testing.T) {
	t.Parallel()
	b, _ := file(header, "a")
	for name, tt := range map[string]struct {
		tail []byte
		want error
	}{
		"nothing": {nil, frame.ErrBlank},
		"zeros":   {make([]byte, 100), frame.ErrBlank},
		"garbage": {bytes.Repeat([]byte{7}, 100), frame.ErrBad},
		"a part":  {[]byte{1, 0, 0}, frame.ErrBad},
		"long":    {append([]byte{255, 255, 255, 255}, make([]byte, 100)...), frame.ErrBad},
		"cut":     {append([]byte{200, 0, 0, 0}, make([]byte, 100)...), frame.ErrBad},
	} {
		r, _ := frame.NewReader(bytes.NewReader(append(slices.Clone(b), tt.tail...)), frame.Log)
		if _, _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		if _, _, err := r.Next(); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}

func TestFramesOfAnotherFileAreNotFound(t *testing.T) {
	t.Parallel()
	other := header
	other.Salt++
	b, offsets := file(header, "a", "b", "c")
	stolen, _ := file(other, string(b), "b")
	if at := header.Find(b[offsets[1]:], 2); at != 0 {
		t.Errorf("found at %d, want 0", at)
	}
	if at := header.Find(b[offsets[0]:], 3); at != offsets[2]-offsets[0] {
		t.Errorf("found at %d, want %d", at, offsets[2]-offsets[0])
	}
	if at := header.Find(b[offsets[0]:], 4); at != -1 {
		t.Errorf("found at %d, want none", at)
	}
	if at := other.Find(b, 0); at != -1 {
		t.Errorf("found at %d, want none", at)
	}
	if at := other.Find(stolen[frame.HeaderSize+8:], 0); at < len(b) {
		t.Errorf("found at %d, inside of the payload", at)
	}
}

func TestHeadersAreChecked(t *testing.T) {
	t.Parallel()
	b := header.Append(nil)
	if _, err := frame.ParseHeader(b, frame.Snapshot); err == nil {
		t.Error("a log passed for a snapshot")
	}
	for i := range b {
		damaged := slices.Clone(b)
		damaged[i] ^= 1
		if _, err := frame.ParseHeader(damaged, frame.Log); err == nil {
			t.Errorf("damage at %d went unnoticed", i)
		}
		if _, err := frame.ParseHeader(b[:i], frame.Log); err == nil {
			t.Errorf("%d bytes passed for a header", i)
		}
	}
}

func TestFieldsStayFailed(t *testing.T) {
	t.Parallel()
	b := frame.AppendBytes(frame.AppendBytes(nil, "name"), []byte{})
	for n := range b {
		f := frame.NewFields(b[:n])
		f.Bytes()
		f.Bytes()
		if !errors.Is(f.Err(), frame.ErrFields) || f.More() || f.Number() != 0 {
			t.Errorf("%d bytes: got error %v", n, f.Err())
		}
	}
	f := frame.NewFields(b)
	if got := fmt.Sprintf("%q %q %v %v", f.Bytes(), f.Bytes(), f.More(), f.Err()); got != `"name" "" false <nil>` {
		t.Errorf("got %s", got)
	}
}

func FuzzReader(f *testing.F) {
	b, _ := file(header, "a", "b", "")
	f.Add(b)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := frame.NewReader(bytes.NewReader(data), frame.Log)
		if err != nil {
			return
		}
		for {
			at := r.Offset
			_, payload, err := r.Next()
			if err != nil {
				return
			}
			if len(payload) == 0 || r.Offset <= at || r.Offset > int64(len(data)) {
				t.Fatalf("a frame of %d bytes from %d to %d of %d", len(payload), at, r.Offset, len(data))
			}
			if found := r.Find(data[at:], 0); found != 0 {
				t.Fatalf("the frame at %d is not found there but %d further", at, found)
			}
		}
	})
}
