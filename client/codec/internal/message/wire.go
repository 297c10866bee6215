// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package message

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
)

// Wire types.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

var errMalformed = errors.New("malformed protobuf")

// Field is a field as it travels.
type Field struct {
	Number int
	// Content of a length-delimited field, else nil.
	Content []byte
	// Whole is the field with its tag.
	Whole []byte
}

// Next splits the first field off a message.
func Next(msg []byte) (f Field, rest []byte, err error) {
	head, ok := nextTag(msg)
	if !ok {
		return f, nil, errMalformed
	}
	f.Number = head.number
	switch after := msg[head.size:]; head.wire {
	case wireVarint, wireFixed64:
		_, rest, ok = nextNumber(after, head.wire)
	case wireBytes:
		f.Content, rest, ok = nextBytes(after)
	case wireFixed32:
		if ok = len(after) >= 4; ok {
			rest = after[4:]
		}
	default:
		return f, nil, errMalformed
	}
	if !ok {
		return f, nil, io.ErrUnexpectedEOF
	}
	f.Whole = msg[:len(msg)-len(rest)]
	return f, rest, nil
}

// tag begins a field.
type tag struct{ number, wire, size int }

func nextTag(data []byte) (tag, bool) {
	v, n := uvarint(data)
	if n <= 0 || v>>3 == 0 || v>>3 >= 1<<29 {
		return tag{}, false
	}
	return tag{int(v >> 3), int(v & 7), n}, true
}

// uvarint is binary.Uvarint, for numbers that usually fit into a byte.
func uvarint(data []byte) (uint64, int) {
	if len(data) > 0 && data[0] < 0x80 {
		return uint64(data[0]), 1
	}
	return binary.Uvarint(data)
}

func nextBytes(data []byte) (content, rest []byte, ok bool) {
	length, n := uvarint(data)
	if n <= 0 || length > uint64(len(data)-n) {
		return nil, nil, false
	}
	end := n + int(length)
	return data[n:end:end], data[end:], true
}

func nextNumber(data []byte, wire int) (number uint64, rest []byte, ok bool) {
	if wire == wireFixed64 {
		if len(data) < 8 {
			return 0, nil, false
		}
		return binary.LittleEndian.Uint64(data), data[8:], true
	}
	number, n := uvarint(data)
	if n <= 0 {
		return 0, nil, false
	}
	return number, data[n:], true
}

// run finds how often a field is repeated at the begin of data, and the size of
// all that.
func run(data []byte, head tag) (count, size int, ok bool) {
	prefix, rest := data[:head.size], data
	for bytes.HasPrefix(rest, prefix) {
		if head.wire == wireBytes {
			_, rest, ok = nextBytes(rest[head.size:])
		} else {
			_, rest, ok = nextNumber(rest[head.size:], head.wire)
		}
		if !ok {
			return 0, 0, false
		}
		count++
	}
	return count, len(data) - len(rest), true
}
