// Copyright The Steer Authors.
// SPDX-License-Identifier: Apache-2.0

package frame

import (
	"encoding/binary"
	"errors"
)

// ErrFields: a payload with a correct checksum is malformed.
var ErrFields = errors.New("the contents do not follow the format")

// AppendBytes appends the length of p and p.
func AppendBytes[T string | []byte](b []byte, p T) []byte {
	b = binary.AppendUvarint(b, uint64(len(p)))
	return append(b, p...)
}

// Fields decodes a payload. After a failure, which Err reports, all fields are zero.
type Fields struct {
	rest   []byte
	failed bool
}

// NewFields returns the fields of a payload.
func NewFields(payload []byte) *Fields { return &Fields{rest: payload} }

// More reports whether there is another field.
func (f *Fields) More() bool { return len(f.rest) > 0 && !f.failed }

// Err returns [ErrFields] if a field was malformed.
func (f *Fields) Err() error {
	if f.failed {
		return ErrFields
	}
	return nil
}

// Fail marks the payload as malformed.
func (f *Fields) Fail() { f.failed = true }

// Number reads a number that was appended with binary.AppendUvarint.
func (f *Fields) Number() uint64 {
	v, n := binary.Uvarint(f.rest)
	if n <= 0 || f.failed {
		f.failed = true
		return 0
	}
	f.rest = f.rest[n:]
	return v
}

// Bytes reads what AppendBytes appended; the result shares the memory of the payload.
func (f *Fields) Bytes() []byte {
	n := f.Number()
	if n > uint64(len(f.rest)) || f.failed {
		f.failed = true
		return nil
	}
	p := f.rest[:n:n]
	f.rest = f.rest[n:]
	return p
}
