// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import "encoding/binary"

// protoPrefix marks protobuf that says its own type.
const protoPrefix = "k8s\x00"

// Envelope wraps the protobuf of an object so that it says its type.
func Envelope(apiVersion, kind string, raw []byte) []byte {
	open := OpenEnvelope(apiVersion, kind, len(raw), len(raw)+len(EnvelopeEnd))
	return append(append(open, raw...), EnvelopeEnd...)
}

// OpenEnvelope returns what stands before the protobuf of an object of a size,
// with room for so much more. [EnvelopeEnd] follows the object.
func OpenEnvelope(apiVersion, kind string, size, room int) []byte {
	typeMeta := AppendString(nil, 1, apiVersion)
	typeMeta = AppendString(typeMeta, 2, kind)
	out := make([]byte, 0, len(protoPrefix)+len(typeMeta)+20+room)
	out = append(out, protoPrefix...)
	out = AppendBytes(out, 1, typeMeta)
	return AppendHead(out, 2, size)
}

// EnvelopeEnd are contentEncoding and contentType, which are always written,
// empty.
const EnvelopeEnd = "\x1a\x00\x22\x00"

// Enveloped returns what follows the mark of protobuf that says its own type.
func Enveloped(data []byte) ([]byte, bool) {
	if len(data) < len(protoPrefix) || string(data[:len(protoPrefix)]) != protoPrefix {
		return nil, false
	}
	return data[len(protoPrefix):], true
}

// AppendHead appends what stands before the value of a length-delimited protobuf
// field.
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

// EventFrame returns one length-delimited protobuf watch event around an
// object in its envelope.
func EventFrame(eventType string, object []byte) []byte {
	raw := AppendBytes(nil, 1, object)
	event := AppendString(make([]byte, 0, len(raw)+len(eventType)+16), 1, eventType)
	event = AppendBytes(event, 2, raw)
	out := binary.BigEndian.AppendUint32(make([]byte, 0, len(event)+4), uint32(len(event)))
	return append(out, event...)
}
