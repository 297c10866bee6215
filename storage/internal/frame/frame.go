// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package frame reads and writes the files of a store: a header and checksummed frames,
// numbered in ascending order.
//
//	file    = header *frame
//	header  = magic(8) version(4) 0(4) first(8) salt(8) crc(4) 0(4)
//	frame   = length(4) crc(4) number(8) payload(length) padding to 8 bytes
//
// All numbers are little-endian. The checksums are CRC-32C; that of a frame covers the
// salt of its file, so that a frame is never taken for one of another file, whatever
// values it contains. A frame without payload marks the end of a complete file; a
// header of zeros is space that was never written.
package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Sizes in bytes.
const (
	HeaderSize = 40
	frameSize  = 16
	align      = 8
	// MaxPayload bounds a frame, and what a reader allocates for a damaged length.
	MaxPayload = 64 << 20
)

// Kind is the magic of a kind of file.
type Kind string

// The kinds.
const (
	Log      Kind = "steerlog"
	Snapshot Kind = "steersnp"
)

// version is the version of the format.
const version = 1

// castagnoli returns the table of the CRC-32C polynomial. The library builds it on
// first use.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }

// Header begins a file.
type Header struct {
	Kind Kind
	// First is the first revision in a log, or the revision of a snapshot.
	First uint64
	// Salt is random.
	Salt uint64
}

// Append appends the header to b.
func (h Header) Append(b []byte) []byte {
	start := len(b)
	b = append(b, h.Kind...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint64(b, h.First)
	b = binary.LittleEndian.AppendUint64(b, h.Salt)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli()))
	return binary.LittleEndian.AppendUint32(b, 0)
}

// HeaderError is the reason why a file has no valid header.
type HeaderError string

func (e HeaderError) Error() string { return string(e) }

// VersionError is the version of a file that a newer program wrote.
type VersionError uint32

func (e VersionError) Error() string {
	return fmt.Sprintf("the file has format version %d, this program knows %d; use a newer program", uint32(e), version)
}

// ParseHeader reads the header at the beginning of b. It fails with a
// [HeaderError] or a [VersionError].
func ParseHeader(b []byte, kind Kind) (Header, error) {
	if len(b) < HeaderSize {
		return Header{}, HeaderError(fmt.Sprintf("it has %d bytes, fewer than a header", len(b)))
	}
	h := Header{
		Kind:  Kind(b[:8]),
		First: binary.LittleEndian.Uint64(b[16:]),
		Salt:  binary.LittleEndian.Uint64(b[24:]),
	}
	switch v := binary.LittleEndian.Uint32(b[8:]); {
	case h.Kind != kind:
		return Header{}, HeaderError(fmt.Sprintf("it begins with %q, not with %q", string(b[:8]), kind))
	case crc32.Checksum(b[:32], castagnoli()) != binary.LittleEndian.Uint32(b[32:]), !blank(b[36:HeaderSize]):
		return Header{}, HeaderError("the checksum of its header is wrong")
	case v != version:
		return Header{}, VersionError(v)
	}
	return h, nil
}

// Begin appends room for a frame's header. The payload follows, then End.
func Begin(b []byte) []byte { return append(b, make([]byte, frameSize)...) }

// TooLargeError is the length of a payload of more than [MaxPayload] bytes, which could
// be written but not be read again.
type TooLargeError int

func (e TooLargeError) Error() string {
	return fmt.Sprintf("a frame of %d bytes is larger than %d", int(e), MaxPayload)
}

// End completes the frame that Begin started at an offset. It fails with a
// [TooLargeError]. A frame without payload marks the end of a file.
func (h Header) End(b []byte, start int, number uint64) ([]byte, error) {
	length := len(b) - start - frameSize
	if length > MaxPayload {
		return nil, TooLargeError(length)
	}
	binary.LittleEndian.PutUint32(b[start:], uint32(length))
	binary.LittleEndian.PutUint64(b[start+8:], number)
	binary.LittleEndian.PutUint32(b[start+4:], h.checksum(b[start:start+frameSize], b[start+frameSize:]))
	return append(b, make([]byte, padded(length)-length)...), nil
}

// padded rounds a length up to the alignment.
func padded(length int) int { return (length + align - 1) &^ (align - 1) }

func (h Header) checksum(head, payload []byte) uint32 {
	var b [20]byte
	binary.LittleEndian.PutUint64(b[:], h.Salt)
	copy(b[8:], head[:4])
	copy(b[12:], head[8:16])
	return crc32.Update(crc32.Checksum(b[:], castagnoli()), castagnoli(), payload)
}

// whole reports whether a frame is complete and undamaged.
func (h Header) whole(head, payload, padding []byte) bool {
	return h.checksum(head, payload) == binary.LittleEndian.Uint32(head[4:]) && blank(padding)
}

// Errors of [Reader.Next] in addition to those of reading.
var (
	// ErrEnd: the file ends with an end mark.
	ErrEnd = errors.New("end of file mark")
	// ErrBlank: the file ends, or continues with zeros.
	ErrBlank = errors.New("nothing was written here")
	// ErrBad: the bytes are not a valid frame.
	ErrBad = errors.New("the checksum is wrong")
)

// Reader reads the frames of a file in order.
type Reader struct {
	Header
	// Offset is that of the next frame.
	Offset int64

	r       io.Reader
	payload []byte
}

// NewReader reads the header of a file. In addition to errors of reading, it fails as
// [ParseHeader] does.
func NewReader(r io.Reader, kind Kind) (*Reader, error) {
	b := make([]byte, HeaderSize)
	n, err := io.ReadFull(r, b)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	h, err := ParseHeader(b[:n], kind)
	if err != nil {
		return nil, err
	}
	return &Reader{Header: h, Offset: HeaderSize, r: r}, nil
}

// Next returns the next frame; the payload is valid until the next call.
func (r *Reader) Next() (number uint64, payload []byte, err error) {
	var head [frameSize]byte
	n, err := io.ReadFull(r.r, head[:])
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return 0, nil, err
	case head == [frameSize]byte{}:
		return 0, nil, ErrBlank
	case n < frameSize:
		return 0, nil, ErrBad
	}
	length := int(binary.LittleEndian.Uint32(head[:]))
	number = binary.LittleEndian.Uint64(head[8:])
	if length > MaxPayload {
		return 0, nil, ErrBad
	}
	size := padded(length)
	if err := r.fill(size); err != nil {
		return 0, nil, err
	}
	payload = r.payload[:length]
	if !r.whole(head[:], payload, r.payload[length:]) {
		return 0, nil, ErrBad
	}
	r.Offset += int64(frameSize + size)
	if length == 0 {
		return number, nil, ErrEnd
	}
	return number, payload, nil
}

// blank reports whether b is all zeros.
func blank(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

// fill reads n bytes, allocating at most twice the bytes that the file has.
func (r *Reader) fill(n int) error {
	r.payload = r.payload[:0]
	for len(r.payload) < n {
		have := len(r.payload)
		step := min(n-have, max(64<<10, have))
		r.payload = append(r.payload, make([]byte, step)...)
		_, err := io.ReadFull(r.r, r.payload[have:])
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return ErrBad
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Find returns the offset of the first whole frame in b with a number above another, or
// -1. It distinguishes damage in the middle of a file from a torn end.
func (h Header) Find(b []byte, above uint64) int {
	for at := 0; at+frameSize <= len(b); at += align {
		head, rest := b[at:at+frameSize], b[at+frameSize:]
		length := int(binary.LittleEndian.Uint32(head))
		number := binary.LittleEndian.Uint64(head[8:])
		// An end mark repeats the last number.
		if number < above || length == 0 && number == 0 || padded(length) > len(rest) {
			continue
		}
		if h.whole(head, rest[:length], rest[length:padded(length)]) {
			return at
		}
	}
	return -1
}
