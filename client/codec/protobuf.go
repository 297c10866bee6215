// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"encoding/binary"
	"errors"
	"io"
)

// The numbers below are the same in every Kubernetes message: an object's
// metadata is field 1 and a list's items are field 2; managedFields is field 17
// of ObjectMeta.
const (
	fieldMetadata      = 1
	fieldItems         = 2
	fieldManagedFields = 17
	wireBytes          = 2 // length-delimited
)

var errProtobuf = errors.New("malformed protobuf")

// nextField splits the first field off a message: its number, wire type, the
// content of a length-delimited field, the field's bytes as a whole, and what
// follows.
func nextField(msg []byte) (number int, wireType int, content, whole, rest []byte, err error) {
	tag, n := binary.Uvarint(msg)
	if n <= 0 {
		return 0, 0, nil, nil, nil, errProtobuf
	}
	number, wireType = int(tag>>3), int(tag&7)
	size := n
	switch wireType {
	case 0:
		_, m := binary.Uvarint(msg[n:])
		if m <= 0 {
			return 0, 0, nil, nil, nil, errProtobuf
		}
		size += m
	case 1:
		size += 8
	case wireBytes:
		length, m := binary.Uvarint(msg[n:])
		if m <= 0 || length > uint64(len(msg)) || n+m+int(length) > len(msg) {
			return 0, 0, nil, nil, nil, errProtobuf
		}
		size += m + int(length)
		content = msg[n+m : size]
	case 5:
		size += 4
	default:
		return 0, 0, nil, nil, nil, errProtobuf
	}
	if size > len(msg) {
		return 0, 0, nil, nil, nil, io.ErrUnexpectedEOF
	}
	return number, wireType, content, msg[:size], msg[size:], nil
}

// withoutManagedFields is msg, an object, without its managedFields. It changes
// msg in place and uses, and returns, a buffer that the next call may use again.
// What does not look as expected comes back as it was.
func withoutManagedFields(msg, buffer []byte) (out, kept []byte) {
	number, wireType, metadata, whole, after, err := nextField(msg)
	if err != nil || number != fieldMetadata || wireType != wireBytes {
		return msg, buffer
	}
	kept = buffer[:0]
	for rest := metadata; len(rest) > 0; {
		var field []byte
		number, _, _, field, rest, err = nextField(rest)
		if err != nil {
			return msg, kept
		}
		if number != fieldManagedFields {
			kept = append(kept, field...)
		}
	}
	if len(kept) == len(metadata) {
		return msg, kept
	}
	// The new field is shorter than the old one: it fits before what follows.
	var space [16]byte
	head := binary.AppendUvarint(space[:0], fieldMetadata<<3|wireBytes)
	head = binary.AppendUvarint(head, uint64(len(kept)))
	start := len(whole) - len(kept) - len(head)
	out = msg[start : len(whole)+len(after)]
	copy(out, head)
	copy(out[len(head):], kept)
	return out, kept
}
