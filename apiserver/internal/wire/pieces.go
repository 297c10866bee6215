// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import "bytes"

// Pieces is an encoded object in several byte slices, so that what two encodings of an
// object have in common is in memory once. The slices are immutable.
type Pieces struct {
	Head []byte
	Rest [][]byte
}

// Len returns the number of bytes.
func (r Pieces) Len() int {
	n := len(r.Head)
	for _, p := range r.Rest {
		n += len(p)
	}
	return n
}

// AppendTo appends the bytes.
func (r Pieces) AppendTo(out []byte) []byte {
	out = append(out, r.Head...)
	for _, p := range r.Rest {
		out = append(out, p...)
	}
	return out
}

// EnvelopeSharing is [Envelope], but shares the memory of long parts of raw, which are
// given in their order; own is how much memory is not shared. Parts that raw does not
// contain are skipped.
func EnvelopeSharing(apiVersion, kind string, raw []byte, shared [][]byte) (enveloped Pieces, own int) {
	room := len(raw) + len(EnvelopeEnd)
	places, from := make([]int, len(shared)), 0
	for n, s := range shared {
		if places[n] = Index(raw[from:], s); places[n] >= 0 {
			places[n] += from
			from = places[n] + len(s)
			room -= len(s)
		}
	}
	out := OpenEnvelope(apiVersion, kind, len(raw), room)
	begin := 0
	piece := func() {
		if p := out[begin:len(out):len(out)]; enveloped.Head == nil {
			enveloped.Head = p
		} else {
			enveloped.Rest = append(enveloped.Rest, p)
		}
		begin = len(out)
	}
	if len(shared) > 0 {
		enveloped.Rest = make([][]byte, 0, 2*len(shared))
	}
	from = 0
	for n, s := range shared {
		if places[n] < 0 {
			continue
		}
		out = append(out, raw[from:places[n]]...)
		piece()
		enveloped.Rest = append(enveloped.Rest, s)
		from = places[n] + len(s)
	}
	out = append(append(out, raw[from:]...), EnvelopeEnd...)
	piece()
	return enveloped, len(out)
}

// Index is [bytes.Index] for long parts that mostly differ at the beginning.
func Index(value, part []byte) int {
	const short = 32 // short enough for a search without hashing
	begin := part[:min(len(part), short)]
	for at := 0; ; at++ {
		i := bytes.Index(value[at:], begin)
		if i < 0 {
			return -1
		}
		if at += i; bytes.HasPrefix(value[at:], part) {
			return at
		}
	}
}

// Content returns the pieces of the object in an envelope of [Envelope] or
// [EnvelopeSharing]; size is their total length.
func Content(enveloped Pieces) (size int, pieces func(yield func([]byte) bool)) {
	start, size := contentAt(enveloped.Head)
	return size, func(yield func([]byte) bool) {
		piece, left := enveloped.Head[start:], size
		for i := 0; left > 0; i++ {
			piece = piece[:min(len(piece), left)]
			if left -= len(piece); !yield(piece) || i == len(enveloped.Rest) {
				return
			}
			piece = enveloped.Rest[i]
		}
	}
}
