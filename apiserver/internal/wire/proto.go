// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

// Package wire has the envelopes of protobuf, and encoded objects in several pieces.
package wire

import (
	"encoding/binary"
	"math/bits"
)

// protoPrefix is the magic number before a runtime.Unknown envelope.
const protoPrefix = "k8s\x00"

// Envelope wraps the protobuf of an object in a runtime.Unknown with its type, after
// the magic number.
func Envelope(apiVersion, kind string, raw []byte) []byte {
	open := OpenEnvelope(apiVersion, kind, len(raw), len(raw)+len(EnvelopeEnd))
	return append(append(open, raw...), EnvelopeEnd...)
}

// OpenEnvelope returns the bytes before the protobuf of an object of size bytes, with
// capacity for room further bytes. [EnvelopeEnd] follows the object.
func OpenEnvelope(apiVersion, kind string, size, room int) []byte {
	typeMeta := AppendString(nil, 1, apiVersion)
	typeMeta = AppendString(typeMeta, 2, kind)
	out := make([]byte, 0, len(protoPrefix)+len(typeMeta)+20+room)
	out = append(out, protoPrefix...)
	out = AppendBytes(out, 1, typeMeta)
	return AppendHead(out, 2, size)
}

// EnvelopeEnd are contentEncoding and contentType, which are always written, empty.
const EnvelopeEnd = "\x1a\x00\x22\x00"

// Enveloped returns the runtime.Unknown after the magic number; false if data does not
// begin with it.
func Enveloped(data []byte) ([]byte, bool) {
	if len(data) < len(protoPrefix) || string(data[:len(protoPrefix)]) != protoPrefix {
		return nil, false
	}
	return data[len(protoPrefix):], true
}

// AppendHead appends the tag and the length of a length-delimited protobuf field.
func AppendHead(out []byte, field, size int) []byte {
	out = binary.AppendUvarint(out, uint64(field)<<3|2)
	return binary.AppendUvarint(out, uint64(size))
}

// AppendBytes appends a length-delimited protobuf field.
func AppendBytes(out []byte, field int, value []byte) []byte {
	return append(AppendHead(out, field, len(value)), value...)
}

// AppendString appends a string field.
func AppendString(out []byte, field int, value string) []byte {
	return append(AppendHead(out, field, len(value)), value...)
}

// contentAt returns the position of the object in bytes that begin with an envelope of
// [Envelope].
func contentAt(enveloped []byte) (start, size int) {
	start = len(protoPrefix) + 1
	for field := 1; ; field++ {
		length, n := binary.Uvarint(enveloped[start:])
		if start += n; field == 2 {
			return start, int(length)
		}
		start += int(length) + 1
	}
}

// AppendEvent appends a protobuf watch event around an enveloped object, with a length
// prefix if it is a frame of a stream.
func AppendEvent(out []byte, eventType string, object Pieces, framed bool) []byte {
	size := object.Len()
	raw := 1 + sizeOfUvarint(size) + size
	if framed {
		event := 1 + sizeOfUvarint(len(eventType)) + len(eventType) + 1 + sizeOfUvarint(raw) + raw
		out = binary.BigEndian.AppendUint32(out, uint32(event))
	}
	out = AppendString(out, 1, eventType)
	out = AppendHead(out, 2, raw)
	return object.AppendTo(AppendHead(out, 1, size))
}

func sizeOfUvarint(n int) int { return max(1, (bits.Len(uint(n))+6)/7) }
