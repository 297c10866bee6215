// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/steer-dev/steer/trace"
)

// The form of a segment: the magic, its version and that of encoded records, then
// frames. A frame is the length of its payload and a checksum of it, each in four bytes,
// then the payload: how many records were dropped before this one, then the record.
const (
	magic       = "steerrec"
	version     = 1
	headerSize  = len(magic) + 2
	frameHeader = 8
	// maxFrame bounds what one frame may ask a reader for.
	maxFrame = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func appendHeader(b []byte) []byte {
	return append(append(b, magic...), version, trace.EncodingVersion)
}

// appendFrame adds a frame.
func appendFrame(b, encoded []byte, missed int) []byte {
	at := len(b)
	b = append(b, make([]byte, frameHeader)...)
	b = binary.AppendUvarint(b, uint64(missed))
	b = append(b, encoded...)
	payload := b[at+frameHeader:]
	binary.LittleEndian.PutUint32(b[at:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(b[at+4:], crc32.Checksum(payload, castagnoli))
	return b
}

// ErrVersion is wrapped by errors about files that another version of Steer wrote.
var ErrVersion = errors.New("the records are of another version: read them with the version of Steer that wrote them")

// DamagedError says that a segment ends with what is no whole record: a process was
// killed, or the disk was full, while it was written, or the file was changed. What is
// before it was read.
type DamagedError struct {
	// File and the byte from which on it could not be read.
	File   string
	Offset int64
	Reason string
}

// Error says where the damage is.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("records: %s cannot be read from byte %d on: %s; what is before it is whole", e.File, e.Offset, e.Reason)
}

// Reasons of damage that the end of a segment has while it is written, too.
const (
	shorter      = "it is shorter than its header"
	withinRecord = "it ends within a record"
)

// readHeader checks the begin of a segment.
func readHeader(name string, r io.Reader) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return &DamagedError{name, 0, shorter}
	}
	if string(header[:len(magic)]) != magic {
		return &DamagedError{name, 0, "it is no file of records"}
	}
	if got := header[len(magic):]; got[0] != version || got[1] != trace.EncodingVersion {
		return fmt.Errorf("records: %s: %w (it has %d.%d, this one reads %d.%d)", name, ErrVersion, got[0], got[1], version, trace.EncodingVersion)
	}
	return nil
}

// frames reads the frames of a segment one after the other.
type frames struct {
	name   string
	r      *bufio.Reader
	offset int64 // of the next frame
	buf    []byte
}

// next returns the next record; false at the end.
func (f *frames) next() (record trace.Record, ok bool, err error) {
	var header [frameHeader]byte
	switch n, err := io.ReadFull(f.r, header[:]); {
	case err == io.EOF && n == 0:
		return record, false, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return record, false, f.damaged(withinRecord)
	case err != nil:
		return record, false, fmt.Errorf("records: read %s: %w", f.name, err)
	}
	size := binary.LittleEndian.Uint32(header[:])
	if size > maxFrame {
		return record, false, f.damaged(fmt.Sprintf("a record of %d bytes, %d are possible", size, maxFrame))
	}
	if cap(f.buf) < int(size) {
		f.buf = make([]byte, size)
	}
	payload := f.buf[:size]
	if _, err := io.ReadFull(f.r, payload); errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return record, false, f.damaged(withinRecord)
	} else if err != nil {
		return record, false, fmt.Errorf("records: read %s: %w", f.name, err)
	}
	if crc32.Checksum(payload, castagnoli) != binary.LittleEndian.Uint32(header[4:]) {
		return record, false, f.damaged("the checksum of a record is wrong")
	}
	if record, err = decodePayload(payload); err != nil {
		return record, false, f.damaged(err.Error())
	}
	f.offset += frameHeader + int64(size)
	return record, true, nil
}

func (f *frames) damaged(reason string) error { return &DamagedError{f.name, f.offset, reason} }

func decodePayload(payload []byte) (trace.Record, error) {
	missed, n := binary.Uvarint(payload)
	if n <= 0 || missed > 1<<62 {
		return trace.Record{}, errors.New("a record without its begin")
	}
	record, err := trace.Decode(payload[n:])
	record.Missed = int(missed)
	return record, err
}
